"""Who may speak as a host: those that an operator enrolled, until they are expelled."""

from __future__ import annotations

import functools
import logging
import re
import secrets
from collections.abc import Iterator, Mapping

from nova import errors
from nova.conductor.engine.deps import Deps
from nova.db.host import enrolments, reports, security, services
from nova.db.placement import audits
from nova.db.sql.engine import Connection, Database
from nova.model.base import HostName
from nova.model.host.hosts import Inventory
from nova.model.host.services import EnrolledHost
from nova.model.placement.room import Room
from nova.model.security.secret_wrap import SecretWrap
from nova.model.security.security_modes import SecurityMode
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.interface import parse_version
from nova.rpc.proofs import FIRST_CONTACT

LOG = logging.getLogger(__name__)

WRAPS_SINCE = (1, 5)  # the ConductorRPC of conductors that read wrapped secrets
LONGEST = 200  # with what queues' names have beside it, of 255
NAME = re.compile(rf"[A-Za-z0-9._-]{{1,{LONGEST}}}")

HOST_DAEMONS = services.ON_HOSTS  # what a host may be enrolled to run, as its daemons register


class EnrolledKeys:
    """Hosts' secrets (``nova.rpc.proofs.HostKeys``): those that are remembered first, then the database's word.
    ``shared``: of the vhost that hosts share with the control daemons, in upstream mode. There, who is not known may
    introduce itself, and a host that is isolated is not believed."""

    def __init__(self, cell: Database, wrap: SecretWrap, shared: bool = False) -> None:
        self._cell, self._wrap, self._shared = cell, wrap, shared
        self.mode = SecurityMode.UPSTREAM if shared else SecurityMode.BOUNDED  # as of the last look
        self._known: dict[str, tuple[str, ...]] = {}
        self._sealed: set[str] = set()  # hosts whose secrets no key opens, and the log says so
        self._stamp: enrolments.Stamp | None = None

    def __call__(self, host: str, introducing: bool = False) -> Iterator[str]:
        # a host that was readmitted a moment ago does not register by a secret that is gone
        known = () if introducing else self._known.get(host, ())
        yield from known
        stamp = self._stamp
        with self._cell.reading() as tx:
            found = enrolments.keys(tx, host)
        if self._shared and (found.isolated and not found.may_return or self.mode is SecurityMode.BOUNDED):
            raise errors.daemon.RpcIsolated(host=host)
        fresh = tuple(filter(None, (self._opened(host, found.secret), self._opened(host, found.former))))
        if stamp is self._stamp:  # else the host may have been expelled since it was read
            self._known[host] = fresh
        yield from (secret for secret in fresh if secret not in known)
        if introducing and found.token:
            yield self._opened(host, found.token)
        if introducing and not found.known and self._shared and self.mode is SecurityMode.UPSTREAM:
            yield FIRST_CONTACT

    def _opened(self, host: str, kept: str) -> str:
        """Nothing where no key opens it: the host is as good as not enrolled."""
        try:
            return self._wrap.opened(host, kept)
        except errors.host.SecretSealed as error:
            if host not in self._sealed:
                self._sealed.add(host)
                LOG.error("%s %s", error.message, error.cure)
            return ""

    def hosts_if_changed(self) -> tuple[str, ...] | None:
        """Every two seconds: all enrolled hosts that speak here, where any was enrolled, expelled, isolated, or has
        another secret since the last time. None: nothing has changed."""
        with self._cell.reading() as tx:
            self.mode = security.mode(tx) or self.mode
            newest = enrolments.stamp(tx)
            if newest == self._stamp:
                return None
            hosts = enrolments.names(tx)
        self._stamp, self._known, self._sealed = newest, {}, set()
        return tuple(hosts)


def wrap_clear(deps: Deps) -> None:
    """Wrap the secrets that the release before kept in clear, once no conductor of it is alive: it could not read
    them. May be cut off anywhere, and run twice at a time: each host is a transaction of its own."""
    with deps.cell.reading() as tx:
        clear = enrolments.in_clear(tx)
        lowest = {one.name: parse_version(one.version)
                  for one in services.lowest_versions(tx, deps.settings.service_down_time)} if clear else {}
    if not clear:
        return
    if lowest.get(ConductorRPC.__name__, WRAPS_SINCE) < WRAPS_SINCE:
        LOG.info("secrets of %d hosts are in clear until all conductors are of this release", len(clear))
        return
    for host in clear:
        deps.cell.transact(functools.partial(enrolments.wrap_anew, host=host, wrap=deps.secret_wrap))
        LOG.warning("the secret of %s was in the database in clear; now it is wrapped", host)


class Enrolments:
    """What ``nova-manage host`` asks."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def enroll_host(self, host: HostName, runs: tuple[str, ...], addresses: tuple[str, ...] = ()) -> str:
        """The token that the host introduces itself with, once. host.NoHostDaemon, host.BadName."""
        if not NAME.fullmatch(host):
            raise errors.host.BadName(host=host, longest=LONGEST)
        for binary in runs:
            if binary not in HOST_DAEMONS:
                raise errors.host.NoHostDaemon(host=host, binary=binary)
        token = secrets.token_hex(32)
        wrapped = self.deps.secret_wrap.wrapped(host, token)
        self.deps.cell.transact(lambda tx: enrolments.enroll(tx, host, runs, wrapped, addresses))
        LOG.info("%s is enrolled to run %s, and may bring its secret within a day", host, ", ".join(runs))
        return token

    def list_enrolled_hosts(self) -> tuple[EnrolledHost, ...]:
        """All that were ever let in, those that were expelled too."""
        with self.deps.cell.reading() as tx:
            return enrolments.listed(tx, self.deps.secret_wrap)

    def accept_host(self, host: HostName, room: Mapping[str, int]) -> None:
        """So much is believed and used of what it claims: what an operator saw, not what it says by then. Done again,
        too, where this died in between. host.NotEnrolled."""
        def write(tx: Connection) -> tuple[Room, Inventory | None]:
            return enrolments.accept_room(tx, host, room), audits.report(tx, host)
        limits, inventory = self.deps.cell.transact(write)
        LOG.info("%s is accepted with %s", host, ", ".join(f"{amount} {name}" for name, amount in sorted(room.items())))
        if inventory is not None:
            self.deps.api.transact(lambda tx: reports.write_providers(tx, inventory, limits))
            self.deps.feed.host_changed(host)

    def expel_host(self, host: HostName) -> None:
        """Within seconds nothing is believed of the host, and no order goes there; its servers can be evacuated.
        host.NotEnrolled."""
        def write(tx: Connection) -> bool:
            if not enrolments.expel(tx, host):
                raise errors.host.NotEnrolled(host=host)
            return services.has_compute(tx, host)
        is_compute = self.deps.cell.transact(write)
        LOG.warning("%s is expelled: nothing that it says is believed, and no order goes there", host)
        if is_compute:
            self.deps.feed.host_changed(host)
