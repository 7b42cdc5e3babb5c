"""Live migration of fake guests, within a process or between processes."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from nova import concurrency, errors, failures
from nova.devel.fake.arrivals import ARRIVED, COMING, Arrivals
from nova.devel.fake.hypervisor import UP, FakeHypervisor, Part, disk_name, knobbed
from nova.devel.fake.moves import copy_of, offer
from nova.devel.fake.store import FakeGuest
from nova.devel.fake.volumes import FakeVolumes
from nova.model.guest.orders import GuestArrival, GuestOnSource, LiveOrder, MoveOrder
from nova.model.server.migrations import MigrationProgress
from nova.model.server.states import PowerState
from nova.virt.interface import LocalImages, ProgressListener

FOLDER = "folder"
POLL_S = 0.02
CPU = "fake"


class _Migration:
    def __init__(self) -> None:
        self.aborted, self.forced, self.done = threading.Event(), threading.Event(), threading.Event()
        self.error: Exception | None = None


class FakeLiveMoves(Part):
    #: whether all fake hosts share the disks' storage; tests set it on both hosts
    shares_storage = False
    cpu = CPU

    def __init__(self, hypervisor: FakeHypervisor, arrivals: Arrivals, volumes: FakeVolumes) -> None:
        super().__init__(hypervisor)
        self._arrivals, self._volumes = arrivals, volumes
        self.migrations: dict[str, _Migration] = {}
        self._migrations_lock = threading.Lock()

    # --- at the source

    @knobbed
    def describe(self, server_uuid: str) -> GuestOnSource:
        guest = self._hypervisor.defined(server_uuid)
        if guest.power_state not in UP:
            raise errors.guest.WrongPower(uuid=server_uuid, state=PowerState(guest.power_state).name)
        if guest.packing is not None and guest.packing.devices:
            raise errors.move.Devices(uuid=server_uuid,
                                      devices=", ".join(device.address for device in guest.packing.devices))
        return msgspec.structs.replace(offer(self._hypervisor.host, guest), cpu=self.cpu,
                                       probe="shared" if self.shares_storage else "", facts={})

    @knobbed
    def migrate(self, order: LiveOrder, listener: ProgressListener, stopped: Callable[[], bool]) -> None:
        uuid = order.server_uuid
        with self._migrations_lock:
            other = self.migrations.get(uuid)
            mine = self.migrations.setdefault(uuid, _Migration())
        if other is not None:
            other.done.wait()
            if other.error is not None:
                raise other.error
            return

        def keep(error: Exception) -> None:
            mine.error = error
        try:
            with failures.reported_to(keep, on=Exception):
                self._arrivals.absorb(uuid)
                if self._hypervisor.power_state(uuid) is not None:
                    self._send(order, mine, listener, stopped)
        finally:
            with self._migrations_lock:
                del self.migrations[uuid]
            mine.done.set()

    def abort(self, server_uuid: str) -> None:
        self._migration(server_uuid).aborted.set()

    def force(self, server_uuid: str) -> None:
        self._migration(server_uuid).forced.set()

    def _migration(self, server_uuid: str) -> _Migration:
        found = self.migrations.get(server_uuid)
        if found is None:
            raise errors.move.MigrationNone(uuid=server_uuid)
        return found

    def _send(self, order: LiveOrder, migration: _Migration, listener: ProgressListener,
              stopped: Callable[[], bool]) -> None:
        guest, target = self._hypervisor.defined(order.server_uuid), Path(order.arrival.facts.get(FOLDER, "/nowhere"))
        if guest.power_state not in UP:
            raise errors.guest.WrongPower(uuid=guest.uuid, state=PowerState(guest.power_state).name)
        with failures.replaced(FileNotFoundError, lambda _: errors.move.MigrationNoRoom(uuid=order.server_uuid)):
            (target / COMING).write_text(str(os.getpid()))
            with contextlib.ExitStack() as stack:
                stack.callback((target / COMING).unlink, missing_ok=True)
                self._copy_memory(guest, migration, listener, stopped)
                self._hypervisor.knobs.apply("hand_over", "before", (guest.uuid, guest.name))
                self._hand_over(guest.uuid, target, order.arrival.shared)
        self._hypervisor.notify(order.server_uuid, PowerState.SHUTDOWN)
        self._hypervisor.knobs.apply("hand_over", "after", (guest.uuid, guest.name))

    def _copy_memory(self, guest: FakeGuest, migration: _Migration, listener: ProgressListener,
                     stopped: Callable[[], bool]) -> None:
        started, takes, total = time.monotonic(), self._hypervisor.options.live_migration_time, guest.memory_mb << 20
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
        with self._hypervisor.store.lock:
            here = copy_of(self._hypervisor.defined(server_uuid))
            self._hypervisor.store.hand_over(copy_of(here), target / ARRIVED)
            left = here  # remains to clean up: its taps, and disks without an owner
            left.defined, left.power_state, left.vcpus, left.memory_mb = False, PowerState.NOSTATE, 0, 0
            left.volumes = {}
            if shared:
                left.drop_disks()
            self._hypervisor.store.keep(left)

    # --- at the destination

    @knobbed
    def prepare_arrival(self, order: MoveOrder, images: LocalImages | None) -> GuestArrival:
        uuid, needed = order.server_uuid, order.source.cpu if order.source else self.cpu
        if needed != self.cpu:
            raise errors.host.CpuUnfit(uuid=uuid, needed=needed, has=self.cpu, host=self._hypervisor.host)
        shared = self.shares_storage and order.source is not None and order.source.probe == "shared"
        if order.build.volumes:
            self._volumes.connect(uuid, order.build.volumes)
        folder = self._arrivals.folder(uuid)
        folder.mkdir(exist_ok=True)
        with self._hypervisor.changed(order.build) as guest:
            guest.arriving, guest.packing = True, order.build.packing
            guest.taps = [interface.device or f"tap{interface.id[:11]}" for interface in order.build.interfaces]
            guest.macs = [interface.mac for interface in order.build.interfaces]
            if not shared:
                guest.sizes = {disk_name(disk): disk.size_gb for disk in order.build.disks}
                guest.disks, guest.disk_gb = list(guest.sizes), sum(guest.sizes.values())
        return GuestArrival(uri=f"fake://{self._hypervisor.host}", address=self._hypervisor.host, shared=shared,
                            facts={FOLDER: str(folder)})

    @knobbed
    def finish_arrival(self, order: MoveOrder) -> PowerState:
        self._arrivals.absorb(order.server_uuid)
        if self._hypervisor.power_state(order.server_uuid) is None:
            if self._arrivals.is_coming(order.server_uuid):
                raise errors.move.MigrationUnderWay(uuid=order.server_uuid)
            raise errors.guest.NotDefined(uuid=order.server_uuid)
        with self._hypervisor.changed(order.build) as guest:
            guest.node, guest.instance_name = order.build.node or guest.node, order.build.instance_name
            guest.packing = order.build.packing
        return PowerState(self._hypervisor.defined(order.server_uuid).power_state)
