"""Fake guests that change hosts while they run, within a process or between processes.

A destination that makes room for a guest has a folder for its arrival. The source says in it that the guest is on its
way (``coming``, with the process's id), and at the end renames the guest's record into it: at one moment the guest is
there and not here. A destination that gave up has removed the folder, and the guest stays.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from nova import concurrency, errors
from nova.model.base import HostName
from nova.model.migrations import MigrationProgress
from nova.model.orders import GuestArrival, GuestOnSource, GuestState, LiveOrder, MoveOrder
from nova.model.states import PowerState
from nova.virt.fake.base import disk_name, file_name, knobbed
from nova.virt.fake.life import UP
from nova.virt.fake.lifecycle import FakeLifecycle
from nova.virt.fake.moves import copy_of, offer
from nova.virt.fake.store import FakeGuest
from nova.virt.interface import LocalImages, ProgressListener

FOLDER, COMING, ARRIVED = "folder", "coming", "guest.json"
POLL_S = 0.02
CPU = "fake"


class _Migration:
    def __init__(self) -> None:
        self.aborted, self.forced, self.done = threading.Event(), threading.Event(), threading.Event()
        self.error: Exception | None = None


class FakeLiveMoves(FakeLifecycle):
    #: whether disks lie on storage that all fake hosts share: for tests, which set it on both
    shares_storage = False
    cpu = CPU

    def __init__(self, options: Any, host: str, state_path: Path | None = None) -> None:
        super().__init__(options, host, state_path)
        self._migrations: dict[str, _Migration] = {}
        self._migrations_lock = threading.Lock()

    # --- at the source

    @knobbed
    def describe(self, server_uuid: str) -> GuestOnSource:
        guest = self._defined(server_uuid)
        if guest.power_state not in UP:
            raise errors.guest.WrongPower(uuid=server_uuid, state=PowerState(guest.power_state).name)
        if guest.packing is not None and guest.packing.devices:
            raise errors.move.Devices(uuid=server_uuid,
                                      devices=", ".join(device.address for device in guest.packing.devices))
        return msgspec.structs.replace(offer(HostName(self._host), guest), cpu=self.cpu,
                                       probe="shared" if self.shares_storage else "", facts={})

    @knobbed
    def migrate(self, order: LiveOrder, listener: ProgressListener, stopped: Callable[[], bool]) -> None:
        uuid = order.server_uuid
        with self._migrations_lock:
            other = self._migrations.get(uuid)
            mine = self._migrations.setdefault(uuid, _Migration())
        if other is not None:
            other.done.wait()
            if other.error is not None:
                raise other.error
            return
        try:
            if self.power_state(uuid) is not None:
                self._send(order, mine, listener, stopped)
        except Exception as error:
            mine.error = error
            raise
        finally:
            with self._migrations_lock:
                del self._migrations[uuid]
            mine.done.set()

    def abort(self, server_uuid: str) -> None:
        self._migration(server_uuid).aborted.set()

    def force(self, server_uuid: str) -> None:
        self._migration(server_uuid).forced.set()

    def _migration(self, server_uuid: str) -> _Migration:
        found = self._migrations.get(server_uuid)
        if found is None:
            raise errors.move.MigrationNone(uuid=server_uuid)
        return found

    def _send(self, order: LiveOrder, migration: _Migration, listener: ProgressListener,
              stopped: Callable[[], bool]) -> None:
        guest, target = self._defined(order.server_uuid), Path(order.arrival.facts.get(FOLDER, "/nowhere"))
        if guest.power_state not in UP:
            raise errors.guest.WrongPower(uuid=guest.uuid, state=PowerState(guest.power_state).name)
        try:
            (target / COMING).write_text(str(os.getpid()))
            with contextlib.ExitStack() as stack:
                stack.callback((target / COMING).unlink, missing_ok=True)
                self._copy_memory(guest, migration, listener, stopped)
                self.knobs.apply("hand_over", "before", (guest.uuid, guest.name))
                self._hand_over(guest.uuid, target, order.arrival.shared)
        except FileNotFoundError:
            raise errors.move.MigrationNoRoom(uuid=order.server_uuid) from None
        self._told(order.server_uuid, PowerState.SHUTDOWN)
        self.knobs.apply("hand_over", "after", (guest.uuid, guest.name))

    def _copy_memory(self, guest: FakeGuest, migration: _Migration, listener: ProgressListener,
                     stopped: Callable[[], bool]) -> None:
        started, takes, total = time.monotonic(), self._options.live_migration_time, guest.memory_mb << 20
        while True:
            if migration.aborted.is_set() or stopped():
                raise errors.move.MigrationGivenUp(uuid=guest.uuid)
            part = 1.0 if migration.forced.is_set() or takes <= 0 else min(1.0, (time.monotonic() - started) / takes)
            listener(int(100 * part), MigrationProgress(
                memory_total_bytes=total, memory_processed_bytes=int(total * part),
                memory_remaining_bytes=total - int(total * part)))
            if part >= 1.0:
                return
            concurrency.sleep(POLL_S)

    def _hand_over(self, server_uuid: str, target: Path, shared: bool) -> None:
        with self._store.lock:
            here = copy_of(self._defined(server_uuid))
            self._store.hand_over(copy_of(here), target / ARRIVED)
            left = here  # what has to be cleared away: its taps, and disks that are nobody's any more
            left.defined, left.power_state, left.vcpus, left.memory_mb = False, PowerState.NOSTATE, 0, 0
            if shared:
                left.drop_disks()
            self._store.keep(left)

    # --- at the destination

    @knobbed
    def prepare_arrival(self, order: MoveOrder, images: LocalImages | None) -> GuestArrival:
        uuid, needed = order.server_uuid, order.source.cpu if order.source else self.cpu
        if needed != self.cpu:
            raise errors.host.CpuUnfit(uuid=uuid, needed=needed, has=self.cpu, host=self._host)
        shared = self.shares_storage and order.source is not None and order.source.probe == "shared"
        folder = self._folder("arrivals") / file_name(uuid)
        folder.mkdir(exist_ok=True)
        with self._changed(order.build) as guest:
            guest.arriving, guest.packing = True, order.build.packing
            guest.taps = [interface.device or f"tap{interface.id[:11]}" for interface in order.build.interfaces]
            guest.macs = [interface.mac for interface in order.build.interfaces]
            if not shared:
                guest.sizes = {disk_name(disk): disk.size_gb for disk in order.build.disks}
                guest.disks, guest.disk_gb = list(guest.sizes), sum(guest.sizes.values())
        return GuestArrival(uri=f"fake://{self._host}", address=self._host, shared=shared,
                            facts={FOLDER: str(folder)})

    @knobbed
    def land(self, order: MoveOrder) -> PowerState:
        self._absorb(order.server_uuid)
        if self.power_state(order.server_uuid) is None:
            if self._is_coming(order.server_uuid):
                raise errors.move.MigrationUnderWay(uuid=order.server_uuid)
            raise errors.guest.NotDefined(uuid=order.server_uuid)
        with self._changed(order.build) as guest:
            guest.node, guest.instance_name = order.build.node or guest.node, order.build.instance_name
            guest.packing = order.build.packing
        return PowerState(self._defined(order.server_uuid).power_state)

    def power_state(self, server_uuid: str) -> PowerState | None:
        self._absorb(server_uuid)
        return super().power_state(server_uuid)

    def guests(self) -> tuple[GuestState, ...]:
        for guest in self._store.all():
            self._absorb(guest.uuid)
        return tuple(GuestState(server_uuid=guest.uuid, power_state=PowerState(guest.power_state))
                     for guest in self._store.all())

    def _absorb(self, server_uuid: str) -> None:
        """Whatever has arrived is this host's from now on."""
        waiting = self._store.find(server_uuid)
        if waiting is None or not waiting.arriving:
            return
        folder = self._folder("arrivals") / file_name(server_uuid)
        with self._store.lock:
            try:
                arrived = msgspec.json.decode((folder / ARRIVED).read_bytes(), type=FakeGuest)
            except FileNotFoundError:
                return
            arrived.arriving, arrived.taps, arrived.macs = False, waiting.taps, waiting.macs
            arrived.node, arrived.packing = waiting.node, waiting.packing
            self._store.keep(arrived)
            shutil.rmtree(folder, ignore_errors=True)
        self._told(server_uuid, PowerState(arrived.power_state))

    def _is_coming(self, server_uuid: str) -> bool:
        """Whether a process that is alive says so."""
        try:
            pid = int((self._folder("arrivals") / file_name(server_uuid) / COMING).read_text())
            os.kill(pid, 0)
        except (FileNotFoundError, ValueError, ProcessLookupError):
            return False
        return True
