"""Enrolment: the hosts that an operator has admitted, until they are revoked."""

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
from nova.model.placement.accepted_capacity import Capacities
from nova.model.security.secret_wrap import SecretWrap
from nova.model.security.security_modes import SecurityMode
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.interface import parse_version
from nova.rpc.proofs import FIRST_CONTACT

LOG = logging.getLogger(__name__)

WRAPS_SINCE = (1, 5)  # first ConductorRPC version whose conductors read wrapped secrets
LONGEST = 200  # queue names, with their other parts, have at most 255 characters
NAME = re.compile(rf"[A-Za-z0-9._-]{{1,{LONGEST}}}")

HOST_DAEMONS = services.ON_HOSTS  # binaries that a host may be enrolled to run, by the names that they register with


class EnrolledKeys:
    """Secrets of hosts (``nova.rpc.proofs.HostKeys``): cached ones first, then those in the database. ``shared``: for
    the vhost that hosts share with the control daemons, in upstream mode. There, an unknown host may introduce itself,
    and an isolated host is refused."""

    def __init__(self, cell: Database, wrap: SecretWrap, shared: bool = False) -> None:
        self._cell, self._wrap, self._shared = cell, wrap, shared
        self.mode = SecurityMode.UPSTREAM if shared else SecurityMode.BOUNDED  # as of the last refresh
        self._known: dict[str, tuple[str, ...]] = {}
        self._sealed: set[str] = set()  # hosts already logged because no key decrypts their secrets
        self._stamp: enrolments.Stamp | None = None

    def __call__(self, host: str, introducing: bool = False) -> Iterator[str]:
        # a readmitted host must not register by its former, cached secret
        known = () if introducing else self._known.get(host, ())
        yield from known
        stamp = self._stamp
        with self._cell.reading() as tx:
            found = enrolments.keys(tx, host)
        if self._shared and (found.isolated and not found.may_return or self.mode is SecurityMode.BOUNDED):
            raise errors.daemon.RpcIsolated(host=host)
        fresh = tuple(filter(None, (self._opened(host, found.secret), self._opened(host, found.former))))
        if stamp is self._stamp:  # otherwise the host may have been revoked since the read
            self._known[host] = fresh
        yield from (secret for secret in fresh if secret not in known)
        if introducing and found.token:
            yield self._opened(host, found.token)
        if introducing and not found.known and self._shared and self.mode is SecurityMode.UPSTREAM:
            yield FIRST_CONTACT

    def _opened(self, host: str, kept: str) -> str:
        """Return the decrypted secret, or "" if no key decrypts it: the host then counts as not enrolled."""
        try:
            return self._wrap.opened(host, kept)
        except errors.host.SecretSealed as error:
            if host not in self._sealed:
                self._sealed.add(host)
                LOG.error("%s %s", error.message, error.cure)
            return ""

    def hosts_if_changed(self) -> tuple[str, ...] | None:
        """Return the enrolled hosts of this vhost, or None if no enrolment changed since the last call. Called every
        two seconds. Enrolling, revoking or isolating a host, or a new secret, is a change."""
        with self._cell.reading() as tx:
            self.mode = security.mode(tx) or self.mode
            newest = enrolments.stamp(tx)
            if newest == self._stamp:
                return None
            hosts = enrolments.names(tx)
        self._stamp, self._known, self._sealed = newest, {}, set()
        return tuple(hosts)


def encrypt_clear_secrets(deps: Deps) -> None:
    """Encrypt the secrets that the previous release stored in clear, once no conductor of that release is alive: it
    could not read them. Safe to interrupt, and to run twice at the same time: each host has its own transaction."""
    with deps.cell.reading() as tx:
        clear = enrolments.in_clear(tx)
        lowest = {one.name: parse_version(one.version)
                  for one in services.lowest_versions(tx, deps.settings.service_down_time)} if clear else {}
    if not clear:
        return
    if lowest.get(ConductorRPC.__name__, WRAPS_SINCE) < WRAPS_SINCE:
        LOG.info("secrets of %d hosts stay in clear text until all conductors run this release", len(clear))
        return
    for host in clear:
        deps.cell.transact(functools.partial(enrolments.rewrap, host=host, wrap=deps.secret_wrap))
        LOG.warning("the secret of host %s was stored in clear text; encrypted it", host)


class Enrolments:
    """The operations behind ``nova-manage host``."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def enroll_host(self, host: HostName, runs: tuple[str, ...], addresses: tuple[str, ...] = (),
                    cell: str = "") -> str:
        """Enroll the host and return its one-time token, by which it introduces itself. ``cell`` is ignored: by it,
        MergedHostRecords has chosen this cell. Raises host.NoHostDaemon, host.BadName."""
        if not NAME.fullmatch(host):
            raise errors.host.BadName(host=host, longest=LONGEST)
        for binary in runs:
            if binary not in HOST_DAEMONS:
                raise errors.host.NoHostDaemon(host=host, binary=binary)
        token = secrets.token_hex(32)
        wrapped = self.deps.secret_wrap.wrapped(host, token)
        self.deps.cell.transact(lambda tx: enrolments.enroll(tx, host, runs, wrapped, addresses))
        LOG.info("host %s is enrolled to run %s; it must register its key within a day", host, ", ".join(runs))
        return token

    def list_enrolled_hosts(self) -> tuple[EnrolledHost, ...]:
        """Return all hosts that were ever enrolled, including revoked ones."""
        with self.deps.cell.reading() as tx:
            return enrolments.listed(tx, self.deps.secret_wrap)

    def accept_host(self, host: HostName, room: Mapping[str, int]) -> None:
        """Accept this capacity of a host: it is capped at the amounts that the operator saw, not at later reports.
        Repeating the call is safe, and completes an interrupted one. Raises host.NotEnrolled."""
        def write(tx: Connection) -> tuple[Capacities, Inventory | None]:
            return enrolments.accept_capacity(tx, host, room), audits.report(tx, host)
        limits, inventory = self.deps.cell.transact(write)
        LOG.info("host %s is accepted with a capacity of %s",
                 host, ", ".join(f"{amount} {name}" for name, amount in sorted(room.items())))
        if inventory is not None:
            self.deps.api.transact(lambda tx: reports.write_providers(tx, inventory, limits))
            self.deps.feed.host_changed(host)

    def expel_host(self, host: HostName) -> None:
        """Revoke the host: within seconds its messages are refused and it gets no orders. Its servers can be evacuated.
        Raises host.NotEnrolled."""
        def write(tx: Connection) -> bool:
            if not enrolments.expel(tx, host):
                raise errors.host.NotEnrolled(host=host)
            return services.has_compute(tx, host)
        is_compute = self.deps.cell.transact(write)
        LOG.warning("host %s is revoked: its messages are refused, and it gets no orders", host)
        if is_compute:
            self.deps.feed.host_changed(host)
