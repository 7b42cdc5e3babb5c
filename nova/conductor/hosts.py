"""Daemons that register and beat: written in batches, judged by the database's clock."""

from __future__ import annotations

import logging
import threading

from nova.conductor.world import World
from nova.db import migrate, networks, services
from nova.db.engine import Connection
from nova.model.base import HostName, Time
from nova.model.services import Alive, ContractVersion, Heartbeat, Registered, Registration

LOG = logging.getLogger(__name__)


class Daemons:
    """``register``, ``heartbeat`` and ``ping``, for control daemons; host_service adds the checks for hosts."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._beats: set[tuple[str, str]] = set()
        self._known: set[tuple[str, str]] = set()
        self._lowest: tuple[ContractVersion, ...] = ()
        self._owing: set[str] = set()
        self._lock = threading.Lock()

    def register(self, registration: Registration) -> Registered:
        def write(tx: Connection) -> tuple[int, bool]:
            key, new = services.register(tx, registration)
            if registration.binary == "nova-network":
                networks.claim_unhosted(tx, registration.host)
            return key, new
        key, new = self.world.cell.transact(write)
        with self.world.cell.reading() as tx:
            debts = services.debts(tx, registration.host) if registration.host_id else ()
            self._lowest = services.lowest_versions(tx, self.world.settings.service_down_time)
        with self._lock:
            self._known.add((registration.host, registration.binary))
        if new:
            LOG.info("%s on %s registered for the first time", registration.binary, registration.host)
        if registration.binary == "nova-compute":
            self.world.feed.host_changed(registration.host)
        return Registered(service_id=key, report_interval_s=self.world.settings.report_interval, debts=debts,
                          lowest=self._lowest)

    def heartbeat(self, beat: Heartbeat) -> Alive:
        """Kept in memory until the next flush: a fleet's beats are one statement a second, not one each."""
        name = (str(beat.host), beat.binary)
        with self._lock:
            known = name in self._known
            if known:
                self._beats.add(name)
        if not known:
            known = self._look_up(name)
        return Alive(known=known, lowest=self._lowest, owes=name[0] in self._owing)

    def _look_up(self, name: tuple[str, str]) -> bool:
        with self.world.cell.reading() as tx:
            found = services.known(tx)
        with self._lock:
            self._known = found
            if name in found:
                self._beats.add(name)
        return name in found

    def flush(self) -> None:
        """Write the beats since the last flush, and tell the schedulers whose hosts are alive."""
        with self._lock:
            beats, self._beats = self._beats, set()
        if not beats:
            return
        self.world.cell.transact(lambda tx: services.beat(tx, sorted(beats)))
        self.world.feed.alive(*self._alive({host for host, binary in beats if binary == "nova-compute"}))

    def _alive(self, hosts: set[str]) -> tuple[list[tuple[str, Time]], Time | None]:
        if not hosts:
            return [], None
        with self.world.cell.reading() as tx:
            now = services.now(tx)
        return [(host, now) for host in sorted(hosts)], now

    def refresh(self) -> None:
        """Forget services that were deleted; learn what versions are in use, and which hosts owe something."""
        with self.world.cell.reading() as tx:
            known = services.known(tx)
            lowest = services.lowest_versions(tx, self.world.settings.service_down_time)
            owing = {debt.host for debt in services.debts(tx)}
        with self._lock:
            self._known, self._lowest, self._owing = known, lowest, owing

    def ping(self, host: HostName) -> str:
        return migrate.product(self.world.cell)
