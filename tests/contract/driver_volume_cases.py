"""Cases of guests' disks on volumes: parts of :class:`tests.contract.driver_conformance.DriverConformance`.

The volumes are files of the host, which each driver with volumes can reach. ``rig.volume_folder``: where QEMU may read
them, if not in the test's own folder.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nova import errors
from nova.model.guest.orders import BuildOrder, Fence, VolumeOrder, VolumeSnapshotOrder
from nova.model.server.states import PowerState
from nova.model.volumes import BlockDevice, VolumeConnection, VolumeDisk
from tests.contract.driver_hotplug_cases import need_consent
from tests.contract.driver_life_cases import built, need

RUNNING, SHUTDOWN = PowerState.RUNNING, PowerState.SHUTDOWN
MIB = 1 << 20


def of_file(path: Path, size_bytes: int = 2 * MIB, **device: Any) -> VolumeDisk:
    """A volume that lies in a new file."""
    with path.open("wb") as target:
        target.truncate(size_bytes)
    path.chmod(0o666)
    return VolumeDisk(device=BlockDevice(volume_id=str(uuid.uuid4()), **device),
                      connection=VolumeConnection(kind="local", data={"device_path": str(path)}))


def volume_order(order: BuildOrder, one: VolumeDisk, plugged: bool, epoch: int = 4) -> VolumeOrder:
    rest = tuple(other for other in order.volumes if other.device.volume_id != one.device.volume_id)
    return VolumeOrder(server_uuid=order.server_uuid, instance_name=order.instance_name, disk=one,
                       fence=Fence(operation_id=2, epoch=epoch),
                       build=msgspec.structs.replace(order, volumes=(*rest, one) if plugged else rest))


def swap_order(order: BuildOrder, one: VolumeDisk, successor: VolumeDisk) -> VolumeOrder:
    return msgspec.structs.replace(volume_order(order, one, True), successor=successor)


def snapshot_order(order: BuildOrder, one: VolumeDisk, **words: str | None) -> VolumeSnapshotOrder:
    """``words``: which files, by the order's fields."""
    return VolumeSnapshotOrder(server_uuid=order.server_uuid, instance_name=order.instance_name, device=one.device,
                               fence=Fence(operation_id=2, epoch=4), build=volume_order(order, one, True).build,
                               **words)  # type: ignore[arg-type]


def attach(driver: Any, order: BuildOrder, one: VolumeDisk) -> PowerState:
    state: PowerState = driver.volumes.attach_volume(volume_order(order, one, True))
    return state


def detach(driver: Any, order: BuildOrder, one: VolumeDisk) -> PowerState:
    state: PowerState = driver.volumes.detach_volume(volume_order(order, one, False), lambda: False)
    return state


def silent(order: BuildOrder) -> BuildOrder:
    """As an order is that does not say how its volumes are reached."""
    return msgspec.structs.replace(
        order, volumes=tuple(msgspec.structs.replace(one, connection=None) for one in order.volumes))


class VolumeCases:
    @pytest.fixture
    def new_volume(self, rig: Any, tmp_path: Path) -> Callable[..., VolumeDisk]:
        folder: Path = getattr(rig, "volume_folder", tmp_path)
        return lambda **device: of_file(folder / f"volume-{uuid.uuid4()}", **device)

    @pytest.fixture
    def driver(self, rig: Any, order: BuildOrder) -> Any:
        yield need(rig.driver, "volumes")
        rig.driver.lifecycle.destroy(order.server_uuid)
        rig.driver.volumes.disconnect(order.server_uuid)

    def disks(self, driver: Any, order: BuildOrder) -> int:
        return len(driver.diagnosis.diagnostics(order.server_uuid).disks)

    def test_volume_plugged_into_a_running_guest_is_there_once_and_stays_over_its_stop(
            self, rig, driver, order, new_volume):
        server, one = built(rig, order), new_volume()
        before = self.disks(driver, order)
        assert attach(driver, order, one) == RUNNING == attach(driver, order, one)
        assert self.disks(driver, order) == before + 1
        driver.lifecycle.shut_down(server, 0)
        assert driver.lifecycle.start(server) == RUNNING and self.disks(driver, order) == before + 1

    def test_volume_taken_out_of_a_running_guest_is_gone_and_stays_so(self, rig, driver, order, new_volume):
        need_consent(rig)
        server, one = built(rig, order), new_volume()
        before = self.disks(driver, order)
        attach(driver, order, one)
        assert detach(driver, order, one) == RUNNING == detach(driver, order, one)
        assert self.disks(driver, order) == before
        driver.lifecycle.shut_down(server, 0)
        driver.lifecycle.start(server)
        assert self.disks(driver, order) == before

    def test_what_a_guest_does_with_a_volume_is_counted_while_it_runs_and_has_it(self, rig, driver, order, new_volume):
        server, one = built(rig, order), new_volume()
        assert driver.volumes.volume_counts(server) == ()
        attach(driver, order, one)
        [counts] = driver.volumes.volume_counts(server)
        assert (counts.server_uuid, counts.volume_id) == (server, one.device.volume_id)
        assert min(counts.reads, counts.read_bytes, counts.writes, counts.write_bytes) >= 0
        driver.lifecycle.shut_down(server, 0)
        assert driver.volumes.volume_counts(server) == driver.volumes.volume_counts(str(uuid.uuid4())) == ()

    def test_volume_of_a_guest_that_is_off_is_there_at_its_next_start(self, rig, driver, order, new_volume):
        server, one = built(rig, order), new_volume()
        before = self.disks(driver, order)
        driver.lifecycle.shut_down(server, 0)
        assert attach(driver, order, one) == SHUTDOWN == attach(driver, order, one)
        driver.lifecycle.start(server)
        assert self.disks(driver, order) == before + 1
        driver.lifecycle.shut_down(server, 0)
        assert detach(driver, order, one) == SHUTDOWN
        driver.lifecycle.start(server)
        assert self.disks(driver, order) == before

    def test_guest_defined_anew_has_its_volumes_by_what_is_kept_of_them(self, rig, driver, order, new_volume):
        server, one = built(rig, order), new_volume()
        attach(driver, order, one)
        count = self.disks(driver, order)
        driver.lifecycle.destroy(server)
        again = silent(msgspec.structs.replace(order, volumes=(one,)))
        driver.volumes.connect(server, again.volumes)
        assert driver.lifecycle.start_new(again) == RUNNING and self.disks(driver, order) == count
        assert driver.kept_orders.kept_order(server).volumes == again.volumes

    def test_guest_that_boots_from_a_volume_needs_no_disk_of_the_hosts(self, rig, driver, order, new_volume):
        flavor = msgspec.structs.replace(order.flavor, ephemeral_gb=0, swap_mb=0)
        mine = msgspec.structs.replace(order, disks=(), flavor=flavor, config_drive=False,
                                       volumes=(new_volume(boot_index=0),))
        driver.disks.create_disks(mine, rig.images)
        driver.interfaces.plug(mine)
        driver.volumes.connect(mine.server_uuid, mine.volumes)
        assert driver.lifecycle.start_new(mine) == RUNNING and self.disks(driver, mine) == 1
        self.unbuild(driver, mine)
        assert rig.left_over(mine) == []

    def test_volume_that_becomes_another_one_is_the_same_disk_to_the_guest_and_for_good(
            self, rig, driver, order, new_volume):
        server, one, other = built(rig, order), new_volume(), new_volume()
        attach(driver, order, one)
        count, mine = self.disks(driver, order), swap_order(order, one, other)
        assert driver.volumes.unswap_volume(mine) == RUNNING
        for _ in range(2):
            assert driver.volumes.swap_volume(mine, lambda: False) == RUNNING
        assert self.disks(driver, order) == count
        with pytest.raises(errors.Conflict, match="another volume"):
            driver.volumes.unswap_volume(mine)
        driver.lifecycle.shut_down(server, 0)
        driver.lifecycle.start(server)
        assert self.disks(driver, order) == count

    def test_volume_of_a_guest_that_is_off_becomes_no_other_one(self, rig, driver, order, new_volume):
        server, one = built(rig, order), new_volume()
        attach(driver, order, one)
        driver.lifecycle.shut_down(server, 0)
        mine = swap_order(order, one, new_volume())
        with pytest.raises(errors.Conflict, match="is not running"):
            driver.volumes.swap_volume(mine, lambda: False)
        assert driver.volumes.unswap_volume(mine) == SHUTDOWN

    def test_guest_without_the_volume_that_its_order_names_is_refused(self, rig, driver, order, new_volume):
        server = built(rig, order)
        driver.lifecycle.shut_down(server, 0)
        wanted = silent(msgspec.structs.replace(order, volumes=(new_volume(),)))
        for call in (lambda: driver.volumes.connect(server, wanted.volumes), lambda: driver.lifecycle.define(wanted)):
            with pytest.raises(errors.HostRefused, match="not connected"):
                call()

    def test_volume_of_an_unknown_kind_is_refused_by_its_name_and_leaves_nothing(self, rig, driver, order, new_volume):
        server, count = built(rig, order), self.disks(driver, order)
        odd = msgspec.structs.replace(new_volume(), connection=VolumeConnection(kind="pigeon"))
        with pytest.raises(errors.HostRefused, match="pigeon"):
            attach(driver, order, odd)
        with pytest.raises(errors.HostRefused, match="pigeon"):
            driver.volumes.connect(server, (new_volume(), odd))
        assert self.disks(driver, order) == count

    def test_disconnect_is_harmless_twice_and_of_what_never_was(self, rig, driver, order, new_volume):
        driver.volumes.disconnect(order.server_uuid)
        driver.volumes.connect(order.server_uuid, (new_volume(),))
        driver.volumes.connect(order.server_uuid, (new_volume(),))
        driver.volumes.disconnect(order.server_uuid)
        driver.volumes.disconnect(order.server_uuid)
        self.unbuild(driver, order)
        assert rig.left_over(order) == []

    def test_detach_and_extend_of_a_volume_that_never_was_are_harmless(self, rig, driver, order, new_volume):
        built(rig, order)
        one, count = new_volume(size_gb=1), self.disks(driver, order)
        assert detach(driver, order, one) == RUNNING
        assert driver.volumes.extend_volume(volume_order(order, one, False)) == RUNNING
        assert self.disks(driver, order) == count

    def unbuild(self, driver: Any, order: BuildOrder) -> None:
        driver.lifecycle.destroy(order.server_uuid)
        driver.volumes.disconnect(order.server_uuid)
        driver.interfaces.unplug(order.server_uuid, order)
        driver.disks.remove_disks(order.server_uuid)
