"""Who may speak as a host: those that an operator enrolled, until they are expelled."""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Callable, Iterator, Sequence

from nova import errors
from nova.conductor.engine.deps import Deps
from nova.db import enrolments, services
from nova.db.engine import Connection, Database
from nova.model.base import HostName
from nova.model.services import EnrolledHost

LOG = logging.getLogger(__name__)

LONGEST = 200  # with what queues' names have beside it, of 255
NAME = re.compile(rf"[A-Za-z0-9._-]{{1,{LONGEST}}}")

HOST_DAEMONS = services.ON_HOSTS  # what a host may be enrolled to run, as its daemons register


class EnrolledKeys:
    """Hosts' secrets (``nova.rpc.proofs.HostKeys``): those that are remembered first, then the database's word."""

    def __init__(self, cell: Database) -> None:
        self._cell = cell
        self._known: dict[str, tuple[str, ...]] = {}
        self._stamp: enrolments.Stamp | None = None

    def __call__(self, host: str, introducing: bool = False) -> Iterator[str]:
        known = self._known.get(host, ())
        yield from known
        stamp = self._stamp
        with self._cell.reading() as tx:
            found = enrolments.keys(tx, host)
        fresh = tuple(filter(None, (found.secret, found.former)))
        if stamp is self._stamp:  # else the host may have been expelled since it was read
            self._known[host] = fresh
        yield from (secret for secret in fresh if secret not in known)
        if introducing and found.token:
            yield found.token

    def forget_changed(self) -> bool:
        """Every two seconds: whether any host was enrolled, expelled, or has another secret since the last time."""
        with self._cell.reading() as tx:
            newest = enrolments.stamp(tx)
        if newest == self._stamp:
            return False
        self._stamp, self._known = newest, {}
        return True


class HostExchanges:
    """Keeps what enrolled hosts' queues are bound to on the broker: a host may not make it itself."""

    def __init__(self, cell: Database, declare: Callable[[Sequence[str]], None], connected: Callable[[], int]) -> None:
        """``connected``: how often a connection to the broker was made; a broker that is new knows nothing."""
        self._cell, self._declare, self._connected = cell, declare, connected
        self._made: set[str] = set()
        self._made_at = -1

    def keep(self) -> None:
        """Make those that are missing. daemon.RpcBrokerAway."""
        connected = self._connected()
        if connected != self._made_at:
            self._made = set()
        with self._cell.reading() as tx:
            missing = [host for host in enrolments.names(tx) if host not in self._made]
        if missing or connected != self._made_at:
            self._declare(missing)
            self._made |= set(missing)
            self._made_at = self._connected()


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
        self.deps.cell.transact(lambda tx: enrolments.enroll(tx, host, runs, token, addresses))
        LOG.info("%s is enrolled to run %s, and may bring its secret within a day", host, ", ".join(runs))
        return token

    def list_enrolled_hosts(self) -> tuple[EnrolledHost, ...]:
        """All that were ever let in, those that were expelled too."""
        with self.deps.cell.reading() as tx:
            return enrolments.listed(tx)

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
