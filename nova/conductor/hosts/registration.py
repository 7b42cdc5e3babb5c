"""Registration and heartbeats of daemons: written in batches, evaluated by the database's clock."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Collection

from nova import errors, failures
from nova.conductor.engine import announce
from nova.conductor.engine.deps import Deps
from nova.db.host import host_cleanups, report_gaps, security, services
from nova.db.network import networks
from nova.db.schema import revisions
from nova.db.sql.engine import Connection
from nova.model.base import HostName, Time, utcnow
from nova.model.host.services import Alive, ContractVersion, Heartbeat, Registered, Registration
from nova.rpc.client import Peers
from nova.rpc.rpc_watchdog import NOT_RECEIVING_S
from nova.version import OLDEST_BESIDE, RELEASE, is_too_old

LOG = logging.getLogger(__name__)

#: The reason for disabling a new nova-compute, as os-services shows it.
NEW_IS_DISABLED = "New compute services start disabled (enable_new_services)."

Times = tuple[tuple[str, Time], ...]  # (host, time at which it was last seen)
SLOW_S = 2.0  # a cast that takes longer is waiting for the broker
CLEANUPS_S = 1.0  # seconds for which one read of pending cleanups serves all heartbeats
CLOCK_S = 5.0  # a heartbeat may be in transit for a while; a larger offset means a wrong clock


class ServiceRegistry:
    """``register``, ``heartbeat`` and ``ping`` for control daemons; ``host_service`` adds the checks for hosts."""

    def __init__(self, deps: Deps, clock: Callable[[], float] = time.monotonic) -> None:
        self.deps, self._clock = deps, clock
        self._heartbeats: dict[tuple[str, str], float | None] = {}  # clock offset, if it is large
        self._known: set[tuple[str, str]] = set()
        self._lowest: tuple[ContractVersion, ...] = ()
        self._hosts_with_cleanups: set[str] = set()
        self._cleanups_read_at = float("-inf")
        self._reported_at: dict[str, float] = {}  # by binary, the last heartbeat's time; see nova.db.host.report_gaps
        self._reached, self._casting_since = False, float("inf")  # if the last cast came through; start of one
        self._bridging = False
        self._lock = threading.Lock()

    def register(self, registration: Registration) -> Registered:
        """Register a daemon and return its service's facts. Called at each start, and when a heartbeat's answer asks
        for it; the service's row stays the same. Networks without a host are assigned to a registering nova-network.
        Raises host.WrongIdentity, host.Renamed, daemon.ReleaseTooOld."""
        if is_too_old(registration.release):
            raise errors.daemon.ReleaseTooOld(binary=registration.binary, host=registration.host, ours=RELEASE,
                                              release=registration.release, oldest=OLDEST_BESIDE)

        def write(tx: Connection) -> tuple[services.RegisteredService, Times]:
            excused = self._end_report_gap(tx, {registration.binary})
            is_disabled = registration.binary == services.COMPUTE and not self.deps.settings.enable_new_services
            kept = services.register(tx, registration, NEW_IS_DISABLED if is_disabled else None)
            if registration.binary == "nova-network":
                networks.claim_unhosted(tx, registration.host)
            return kept, excused
        kept, excused = self.deps.cell.transact(write)
        self._note_reports({registration.binary})
        with self.deps.cell.reading() as tx:
            pending = host_cleanups.pending(tx, registration.host) if registration.host_id else ()
            self._lowest = services.lowest_versions(tx, self.deps.settings.service_down_time)
            mode = security.mode(tx)
        with self._lock:
            self._known.add((registration.host, registration.binary))
        if kept.new:
            LOG.info("%s on host %s registered for the first time", registration.binary, registration.host)
            announce.registered(self.deps, registration.host, registration.binary)
        if registration.binary == "nova-compute":
            self.deps.feed.host_changed(registration.host)
        if excused:
            self.deps.feed.alive(*self._alive(set(), excused))
        return Registered(service_id=kept.id, report_interval_s=self.deps.settings.report_interval, cleanups=pending,
                          lowest=self._lowest, mode=mode.value if mode else "")

    def heartbeat(self, beat: Heartbeat) -> Alive:
        """Record a heartbeat in memory until the next flush: all heartbeats together need one statement a second."""
        name = (str(beat.host), beat.binary)
        receives = self._receives_rpc(beat)
        with self._lock:
            known = name in self._known
        known = known or self._look_up(name)
        if known and receives:
            with self._lock:
                self._heartbeats[name] = clock_off_s(beat)
        return Alive(known=known, lowest=self._lowest, cleanups_pending=self._has_cleanups(name[0]))

    @staticmethod
    def _receives_rpc(beat: Heartbeat) -> bool:
        """True if the daemon receives RPC. Otherwise it is marked down, because messages to it would have no consumer.
        It restarts automatically."""
        if beat.rpc_silent_s > NOT_RECEIVING_S:
            LOG.warning("%s on %s sends heartbeats but has received no RPC for %.0f s; marked down. If it does not "
                        "restart automatically, restart it", beat.binary, beat.host, beat.rpc_silent_s)
        return beat.rpc_silent_s <= NOT_RECEIVING_S

    def _has_cleanups(self, host: str) -> bool:
        """True if the host has pending cleanups; it learns of new ones by its next heartbeat. One read a second serves
        all hosts. Without a database the last answer is used, because a heartbeat must not fail for that."""
        now = self._clock()
        if now - self._cleanups_read_at >= CLEANUPS_S:
            self._cleanups_read_at = now
            with contextlib.suppress(errors.Unavailable), self.deps.cell.reading() as tx:
                self._hosts_with_cleanups = host_cleanups.hosts_with_pending(tx)
        return host in self._hosts_with_cleanups

    def _look_up(self, name: tuple[str, str]) -> bool:
        with self.deps.cell.reading() as tx:
            found = services.known(tx)
        with self._lock:
            self._known = found
        return name in found

    def flush(self) -> None:
        """Write the heartbeats since the last flush, and send the schedulers the hosts that are alive."""
        with self._lock:
            heartbeats, self._heartbeats = self._heartbeats, {}
        if not heartbeats:
            return
        binaries = {binary for _host, binary in heartbeats}

        def write(tx: Connection) -> Times:
            excused = self._end_report_gap(tx, binaries)
            services.record_heartbeats(tx, heartbeats)
            return excused

        def undo() -> None:
            with self._lock:
                # A minute without a database must not mark hosts down.
                self._heartbeats = {**heartbeats, **self._heartbeats}
        with failures.on_failure(undo, on=errors.Unavailable):
            excused = self.deps.cell.transact(write)
        self._note_reports(binaries)
        self._cast(*self._alive({host for host, binary in heartbeats if binary == services.COMPUTE}, excused))

    def _cast(self, alive: Times, now: Time | None) -> None:
        self._casting_since = self._clock()
        try:
            self._reached = self.deps.feed.alive(alive, now)
        finally:
            self._casting_since = float("inf")

    def bridge_report_gap(self) -> None:
        """Keep services up while no conductor runs, or while this one cannot reach the broker: daemons cannot report
        then."""
        down = self.deps.settings.service_down_time
        if self._reached and self._clock() - self._casting_since < SLOW_S:
            return
        excused = self.deps.cell.transact(lambda tx: report_gaps.bridge(tx, down))
        count = sum(len(one.hosts) for one in excused.values())
        if count and not self._bridging:
            LOG.info("no service reported for %.0f s because the broker or all conductors were away; keeping %d "
                     "services that were up as up until they can report",
                     max(one.silent_s for one in excused.values()),
                     count)
        self._bridging = bool(count)

    def _alive(self, hosts: set[str], excused: Times) -> tuple[Times, Time | None]:
        if not hosts and not excused:
            return (), None
        with self.deps.cell.reading() as tx:
            now = services.now(tx)
        return (*excused, *((host, now) for host in sorted(hosts))), now

    def _end_report_gap(self, tx: Connection, binaries: Collection[str]) -> Times:
        """Return the compute hosts that get a grace period after a service report gap, and their new last-seen times.
        Must run before these binaries' heartbeats are written. Reads the database only if this process has received no
        heartbeat of a binary for long."""
        down, now = self.deps.settings.service_down_time, self._clock()
        unheard = [one for one in binaries if now - self._reported_at.get(one, float("-inf")) > down / 2]
        if not unheard:
            return ()
        ended = report_gaps.end(tx, unheard, down)
        for binary, excused in ended.items():
            LOG.info("no %s reported for %.0f s; the %d that were up have %.0f s to report", binary,
                     excused.silent_s, len(excused.hosts), down / 2)
        if services.COMPUTE not in ended:
            return ()
        excused = ended[services.COMPUTE]
        return tuple((host, excused.seen_at) for host in excused.hosts)

    def _note_reports(self, binaries: Collection[str]) -> None:
        """Note the heartbeats of these binaries, after the commit: a repeated transaction must find the service report
        gap again."""
        self._reported_at.update(dict.fromkeys(binaries, self._clock()))

    def refresh(self, peers: Peers | None = None) -> None:
        """Forget deleted services; read the versions in use, by hosts and by other daemons."""
        with self.deps.cell.reading() as tx:
            known = services.known(tx)
            lowest = services.lowest_versions(tx, self.deps.settings.service_down_time)
            on_hosts = services.versions_on_hosts(tx)
        with self._lock:
            self._known, self._lowest = known, lowest
        if peers is not None:
            peers.learn(lowest)
            peers.learn_hosts(on_hosts)

    def is_new(self, registration: Registration) -> bool:
        """True if this process knows no row of this service."""
        return (registration.host, registration.binary) not in self._known

    def count(self, binary: str) -> int:
        """Return the number of known rows of this binary."""
        return sum(known == binary for _host, known in self._known)

    def clock(self) -> Time:
        """Return the database's time. Raises Unavailable."""
        with self.deps.cell.reading() as tx:
            return services.now(tx)

    def ping(self, host: HostName) -> str:
        """Check the database and return its product. Raises Unavailable if the database does not answer."""
        return revisions.product(self.deps.cell)


def clock_off_s(beat: Heartbeat) -> float | None:
    """Return the offset of the daemon's clock, in seconds ahead of this conductor's; None if it is small."""
    off = (beat.sent_at - utcnow()).total_seconds() if beat.sent_at else 0.0
    return round(off, 1) if abs(off) > CLOCK_S else None
