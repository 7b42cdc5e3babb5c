"""Fake guests made, started, stopped and unmade."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import Any

from nova import concurrency, errors
from nova.model.guests import DevicePlace
from nova.model.orders import BuildOrder
from nova.model.states import PowerState
from nova.virt.fake.base import FakeBase, disk_name, file_name, knobbed
from nova.virt.interface import LocalImages


class FakeLifecycle(FakeBase):
    @knobbed
    def create_disks(self, order: BuildOrder, images: LocalImages | None) -> None:
        with self._changed(order) as guest:
            sizes = {disk_name(disk): disk.size_gb for disk in order.disks} or {"root": 0}
            guest.disks = [*sizes, *(["config"] if "config" in guest.disks else [])]
            guest.sizes, guest.disk_gb, guest.packing = sizes, sum(sizes.values()), order.packing

    @knobbed
    def remove_disks(self, server_uuid: str, keep: frozenset[str] = frozenset()) -> None:
        if self._room is not None and not keep:
            for kept in (self._room / "snapshots").glob(f"{file_name(server_uuid)}.*"):
                kept.unlink(missing_ok=True)
        with self._changed(server_uuid) as guest:
            guest.drop_disks(keep)

    @knobbed
    def plug(self, order: BuildOrder) -> None:
        with self._changed(order) as guest:
            guest.taps = [interface.device or f"tap{interface.id[:11]}" for interface in order.interfaces]
            guest.macs = [interface.mac for interface in order.interfaces]

    @knobbed
    def unplug(self, server_uuid: str, order: BuildOrder | None) -> None:
        with self._changed(server_uuid) as guest:
            guest.taps = guest.macs = []

    @knobbed
    def write_config_drive(self, order: BuildOrder, files: Mapping[str, bytes]) -> None:
        with self._changed(order) as guest:
            guest.config_drive = dict(files)
            guest.disks = [*(disk for disk in guest.disks if disk != "config"), "config"]

    def device_places(self, server_uuid: str) -> dict[str, DevicePlace]:
        guest = self._store.find(server_uuid)
        if guest is None or not guest.defined:
            raise errors.guest.NotDefined(uuid=server_uuid)
        return {mac.lower(): DevicePlace(bus="pci", address=f"0000:00:{number:02x}.0")
                for number, mac in enumerate(guest.macs, start=3)}

    @knobbed
    def start_new(self, order: BuildOrder) -> PowerState:
        if self._define(order) == PowerState.RUNNING:
            return PowerState.RUNNING
        self._take_time()
        with self._changed(order) as guest:
            self._boot(guest)
        return self._told(order.server_uuid, PowerState.RUNNING)

    @knobbed
    def define(self, order: BuildOrder) -> PowerState:
        return self._define(order)

    def _define(self, order: BuildOrder) -> PowerState:
        found = self._store.find(order.server_uuid)
        if found is None or not found.disks:
            raise errors.guest.NoDisks(uuid=order.server_uuid, names="all")
        with self._changed(order) as guest:
            if not guest.defined:
                guest.power_state = PowerState.SHUTDOWN
            guest.defined, guest.instance_name, guest.arriving = True, order.instance_name, False
            guest.node, guest.packing = order.node or guest.node, order.packing
            guest.vcpus, guest.memory_mb = order.flavor.vcpus, order.flavor.memory_mb
            return PowerState(guest.power_state)

    @knobbed
    def destroy(self, server_uuid: str) -> None:
        found = self._store.find(server_uuid)
        ran = found is not None and found.power_state == PowerState.RUNNING
        if self._room is not None:
            shutil.rmtree(self._room / "arrivals" / file_name(server_uuid), ignore_errors=True)
        with self._changed(server_uuid) as guest:
            guest.defined, guest.power_state = False, PowerState.NOSTATE
            guest.saved = guest.arriving = False
            guest.vcpus = guest.memory_mb = 0
        if ran:
            self._told(server_uuid, PowerState.SHUTDOWN)

    # --- started and stopped

    @knobbed
    def start(self, server_uuid: str) -> PowerState:
        state = PowerState(self._defined(server_uuid).power_state)
        if state in (PowerState.RUNNING, PowerState.PAUSED):
            return state
        self._take_time()
        with self._changed(server_uuid) as guest:
            self._boot(guest)
        return self._told(server_uuid, PowerState.RUNNING)

    @knobbed
    def shut_down(self, server_uuid: str, timeout_s: int) -> PowerState:
        if self._defined(server_uuid).power_state == PowerState.SHUTDOWN:
            return PowerState.SHUTDOWN
        with self._changed(server_uuid) as guest:
            guest.saved = False
        return self.change_power(server_uuid, PowerState.SHUTDOWN, "halted" if timeout_s else "powered off")

    @knobbed
    def reboot(self, server_uuid: str, timeout_s: int) -> bool:
        if self._defined(server_uuid).power_state != PowerState.RUNNING:
            return False
        with self._changed(server_uuid) as guest:
            shown = guest.display_of == self._boot_of(guest)
            self._boot(guest)
            if shown:  # the hypervisor's process stays, and so do its ports
                guest.display_of = self._boot_of(guest)
        return True

    def power_state(self, server_uuid: str) -> PowerState | None:
        guest = self._store.find(server_uuid)
        return PowerState(guest.power_state) if guest is not None and guest.defined else None

    def _take_time(self) -> Any:
        if self._options.boot_delay:
            concurrency.sleep(self._options.boot_delay)
