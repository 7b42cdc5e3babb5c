"""Cases of drivers that can more than make guests: pause, suspend, rescue, agents, crash dumps, snapshots.

Parts of :class:`tests.contract.driver_conformance.DriverConformance`. A case is skipped where the driver has not got
the protocol.
"""

from __future__ import annotations

import os
import uuid
from typing import Any

import pytest

from nova import errors
from nova.model.guest.orders import BuildOrder, Fence, RescueOrder, SnapshotOrder
from nova.model.image.images import Image
from nova.model.server.states import PowerState

RUNNING, PAUSED, SHUTDOWN = PowerState.RUNNING, PowerState.PAUSED, PowerState.SHUTDOWN
ASLEEP = (PowerState.SUSPENDED, PowerState.SHUTDOWN)  # as a hypervisor calls a guest that is saved
IMAGE_ID = "70a599e0-31e7-49b7-b260-868f441e862b"
NEW_IMAGE_ID = "0a1b2c3d-31e7-49b7-b260-868f441e862b"


def need(driver: Any, part: str) -> Any:
    """The driver, which has the part."""
    if getattr(driver, part) is None:
        pytest.skip(f"the driver has no part {part}")
    return driver


def built(rig: Any, order: BuildOrder) -> str:
    """Build the guest; its uuid."""
    rig.driver.disks.create_disks(order, rig.images)
    rig.driver.interfaces.plug(order)
    rig.driver.disks.write_config_drive(order, {"openstack/latest/meta_data.json": b"{}"})
    rig.driver.lifecycle.start_new(order)
    return order.server_uuid


class PausingCases:
    def test_pause_and_unpause_may_be_repeated(self, rig, order):
        driver = need(rig.driver, "pausing")
        server = built(rig, order)
        assert driver.pausing.pause(server) == PAUSED == driver.pausing.pause(server)
        assert driver.lifecycle.power_state(server) == PAUSED
        assert driver.pausing.unpause(server) == RUNNING == driver.pausing.unpause(server)
        assert driver.lifecycle.power_state(server) == RUNNING

    def test_pause_of_a_guest_that_is_off_is_a_conflict(self, rig, order):
        driver = need(rig.driver, "pausing")
        server = built(rig, order)
        driver.lifecycle.shut_down(server, 0)
        with pytest.raises(errors.Conflict):
            driver.pausing.pause(server)
        assert driver.lifecycle.power_state(server) == SHUTDOWN

    def test_pause_of_no_guest_is_not_found(self, rig):
        with pytest.raises(errors.NotFound):
            need(rig.driver, "pausing").pausing.pause(str(uuid.uuid4()))

    def test_paused_guest_can_be_powered_off_and_unbuilt(self, rig, order):
        driver = need(rig.driver, "pausing")
        server = built(rig, order)
        driver.pausing.pause(server)
        assert driver.lifecycle.shut_down(server, 0) == SHUTDOWN


class DefineCases:
    def test_define_leaves_the_guest_off_and_start_starts_it(self, rig, order):
        rig.driver.disks.create_disks(order, rig.images)
        rig.driver.interfaces.plug(order)
        rig.driver.disks.write_config_drive(order, {"a": b"1"})
        assert rig.driver.lifecycle.define(order) == SHUTDOWN == rig.driver.lifecycle.define(order)
        assert rig.driver.lifecycle.power_state(order.server_uuid) == SHUTDOWN
        assert rig.driver.lifecycle.start(order.server_uuid) == RUNNING == rig.driver.lifecycle.define(order)

    def test_define_without_disks_is_a_conflict(self, rig, order):
        with pytest.raises(errors.Conflict):
            rig.driver.lifecycle.define(order)

    def test_remove_disks_keeps_what_it_is_told_to(self, rig, order):
        built(rig, order)
        rig.driver.lifecycle.destroy(order.server_uuid)
        rig.driver.disks.remove_disks(order.server_uuid, frozenset({"ephemeral", "swap"}))
        rig.driver.disks.create_disks(order, rig.images)
        rig.driver.disks.write_config_drive(order, {"a": b"1"})
        assert rig.driver.lifecycle.start_new(order) == RUNNING


class SuspendingCases:
    def test_suspend_and_resume_may_be_repeated(self, rig, order):
        driver = need(rig.driver, "suspending")
        server = built(rig, order)
        assert driver.suspending.suspend(server) in ASLEEP and driver.lifecycle.power_state(server) in ASLEEP
        assert driver.suspending.suspend(server) in ASLEEP
        assert driver.suspending.resume(order) == RUNNING == driver.suspending.resume(order)
        assert driver.lifecycle.power_state(server) == RUNNING

    def test_resume_after_bridges_and_taps_went_brings_the_guest_back(self, rig, order):
        driver = need(rig.driver, "suspending")
        server = built(rig, order)
        driver.suspending.suspend(server)
        driver.interfaces.unplug(server, order)
        driver.interfaces.plug(order)
        assert driver.suspending.resume(order) == RUNNING

    def test_suspend_of_a_guest_that_is_off_is_a_conflict(self, rig, order):
        driver = need(rig.driver, "suspending")
        server = built(rig, order)
        driver.lifecycle.shut_down(server, 0)
        with pytest.raises(errors.Conflict):
            driver.suspending.suspend(server)

    def test_resume_of_a_guest_whose_memory_is_gone_starts_it(self, rig, order):
        driver = need(rig.driver, "suspending")
        server = built(rig, order)
        driver.suspending.suspend(server)
        driver.lifecycle.destroy(server)
        assert driver.suspending.resume(order) == RUNNING

    def test_suspended_guest_unbuilt_leaves_nothing(self, rig, order):
        driver = need(rig.driver, "suspending")
        server = built(rig, order)
        driver.suspending.suspend(server)
        driver.lifecycle.destroy(server)
        driver.interfaces.unplug(server, order)
        driver.disks.remove_disks(server)
        assert rig.left_over(order) == []


class RescuingCases:
    def rescue_order(self, order: BuildOrder) -> RescueOrder:
        return RescueOrder(server_uuid=order.server_uuid, instance_name=order.instance_name,
                           fence=Fence(operation_id=2, epoch=4), build=order,
                           image=Image(id=IMAGE_ID, disk_format="qcow2", container_format="bare"))

    def test_rescue_and_unrescue_may_be_repeated(self, rig, order):
        driver = need(rig.driver, "rescuing")
        server, files = built(rig, order), {"openstack/latest/meta_data.json": b"{}"}
        driver.lifecycle.shut_down(server, 0)
        assert driver.rescuing.rescue(self.rescue_order(order), rig.images, files) == RUNNING
        assert driver.rescuing.rescue(self.rescue_order(order), rig.images, files) == RUNNING
        assert driver.rescuing.unrescue(order) == RUNNING == driver.rescuing.unrescue(order)
        assert driver.lifecycle.power_state(server) == RUNNING

    def test_rescued_guest_has_its_own_disk_beside(self, rig, order):
        driver = need(rig.driver, "rescuing")
        server = built(rig, order)
        own = len(driver.diagnosis.diagnostics(server).disks) if driver.diagnosis is not None else None
        driver.lifecycle.shut_down(server, 0)
        driver.rescuing.rescue(self.rescue_order(order), rig.images, None)
        assert driver.lifecycle.power_state(server) == RUNNING
        if own is not None:
            assert len(driver.diagnosis.diagnostics(server).disks) >= 2

    def test_unrescue_of_a_guest_that_was_not_rescued_starts_it(self, rig, order):
        driver = need(rig.driver, "rescuing")
        driver.lifecycle.shut_down(built(rig, order), 0)
        assert driver.rescuing.unrescue(order) == RUNNING

    def test_rescued_guest_unbuilt_leaves_nothing(self, rig, order):
        driver = need(rig.driver, "rescuing")
        server = built(rig, order)
        driver.lifecycle.shut_down(server, 0)
        driver.rescuing.rescue(self.rescue_order(order), rig.images, {"a": b"1"})
        driver.lifecycle.destroy(server)
        driver.interfaces.unplug(server, None)
        driver.disks.remove_disks(server)
        assert rig.left_over(order) == []


class InsideCases:
    def test_crash_of_a_guest_that_is_off_is_a_conflict(self, rig, order):
        driver = need(rig.driver, "crash_dumps")
        server = built(rig, order)
        driver.crash_dumps.crash(server)
        driver.lifecycle.shut_down(server, 0)
        with pytest.raises(errors.Conflict):
            driver.crash_dumps.crash(server)

    def test_password_of_a_guest_that_is_off_is_a_conflict(self, rig, order):
        driver = need(rig.driver, "agent")
        server = built(rig, order)
        driver.lifecycle.shut_down(server, 0)
        with pytest.raises(errors.Conflict):
            driver.agent.set_password(server, "root", "secret")

    def test_crash_and_password_of_no_guest_are_not_found(self, rig):
        with pytest.raises(errors.NotFound):
            need(rig.driver, "crash_dumps").crash_dumps.crash(str(uuid.uuid4()))
        with pytest.raises(errors.NotFound):
            need(rig.driver, "agent").agent.set_password(str(uuid.uuid4()), "root", "secret")


class SnapshotCases:
    def snapshot_order(self, order: BuildOrder, image_id: str = NEW_IMAGE_ID) -> SnapshotOrder:
        return SnapshotOrder(server_uuid=order.server_uuid, instance_name=order.instance_name, build=order,
                             fence=Fence(operation_id=2, epoch=4), image_id=image_id)

    @pytest.mark.parametrize("state", ["running", "off"])
    def test_snapshot_is_a_file_of_the_size_it_says_and_the_guest_goes_on(self, rig, order, state):
        driver = need(rig.driver, "snapshots")
        server = built(rig, order)
        if state == "off":
            driver.lifecycle.shut_down(server, 0)
        before = driver.lifecycle.power_state(server)
        taken = driver.snapshots.take_snapshot(self.snapshot_order(order))
        path = driver.snapshots.snapshot_path(server, NEW_IMAGE_ID)
        assert path is not None and os.path.getsize(path) == taken.size_bytes > 0
        assert taken.virtual_size_bytes >= 1 << 30 and taken.format in ("qcow2", "raw")
        assert driver.lifecycle.power_state(server) == before

    def test_snapshot_taken_again_is_the_same_and_dropped_twice_is_gone(self, rig, order):
        driver = need(rig.driver, "snapshots")
        server = built(rig, order)
        taken = driver.snapshots.take_snapshot(self.snapshot_order(order))
        stamp = os.stat(driver.snapshots.snapshot_path(server, NEW_IMAGE_ID)).st_mtime_ns
        assert driver.snapshots.take_snapshot(self.snapshot_order(order)) == taken
        assert os.stat(driver.snapshots.snapshot_path(server, NEW_IMAGE_ID)).st_mtime_ns == stamp
        driver.snapshots.drop_snapshot(server, NEW_IMAGE_ID)
        driver.snapshots.drop_snapshot(server, NEW_IMAGE_ID)
        assert driver.snapshots.snapshot_path(server, NEW_IMAGE_ID) is None

    def test_snapshots_for_two_images_are_two_files(self, rig, order):
        driver = need(rig.driver, "snapshots")
        server, other = built(rig, order), str(uuid.uuid4())
        driver.snapshots.take_snapshot(self.snapshot_order(order))
        driver.snapshots.take_snapshot(self.snapshot_order(order, other))
        driver.snapshots.drop_snapshot(server, other)
        assert driver.snapshots.snapshot_path(server, NEW_IMAGE_ID) is not None

    def test_snapshot_goes_with_the_guest(self, rig, order):
        driver = need(rig.driver, "snapshots")
        server = built(rig, order)
        driver.snapshots.take_snapshot(self.snapshot_order(order))
        driver.lifecycle.destroy(server)
        driver.interfaces.unplug(server, order)
        driver.disks.remove_disks(server)
        assert driver.snapshots.snapshot_path(server, NEW_IMAGE_ID) is None and rig.left_over(order) == []


class LifeCases(PausingCases, DefineCases, SuspendingCases, RescuingCases, InsideCases, SnapshotCases):
    pass
