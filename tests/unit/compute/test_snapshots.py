"""Snapshots on a host: taken, sent, dropped."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest

from nova import errors
from nova.compute.service import ComputeParts
from nova.model.guest.orders import SnapshotOrder
from nova.model.host.services import PendingCleanup
from nova.model.image.rbd_locations import RbdLocation
from nova.model.server.states import PowerState
from tests.fakes.compute import HOST, beside, build_order, fence, guest_order, new_uuid, wait_until

IMAGE = new_uuid()


def snapshot_order(order, epoch: int, image_id: str = IMAGE, **fields) -> SnapshotOrder:
    return SnapshotOrder(server_uuid=order.server_uuid, instance_name=order.instance_name, image_id=image_id,
                         fence=fence(epoch, **fields), build=order)


@pytest.fixture
def order(world):
    made = build_order()
    world.build(made)
    world.driver.hypervisor.write_mark(made.server_uuid, "precious")
    world.store.add(IMAGE)
    return made


def calls(world) -> list[str]:
    return [call for call, _ in world.driver.calls]


def test_snapshot_when_taken_and_sent_then_the_image_has_the_disk_and_no_file_is_left(world, order):
    taken = world.one("snapshot_guests", snapshot_order(order, 2))
    assert taken.ok and taken.snapshot.format == "raw" and taken.power_state == PowerState.RUNNING
    sent = world.one("upload_snapshots", snapshot_order(order, 2))
    assert sent.ok and sent.power_state == PowerState.RUNNING
    assert b"precious" in world.store.data[IMAGE] and len(world.store.data[IMAGE]) == taken.snapshot.size_bytes
    assert world.driver.snapshots.snapshot_path(order.server_uuid, IMAGE) is None


def test_snapshot_when_repeated_by_the_next_runner_then_what_was_kept_is_found(world, order):
    first = world.one("snapshot_guests", snapshot_order(order, 2, operation_id=9))
    world.driver.hypervisor.write_mark(order.server_uuid, "later")
    again = world.one("snapshot_guests", snapshot_order(order, 3, operation_id=9))
    assert again == first and calls(world).count("take_snapshot") == 1
    world.restart()
    assert world.one("snapshot_guests", snapshot_order(order, 4, operation_id=9)).snapshot == first.snapshot
    world.one("upload_snapshots", snapshot_order(order, 4, operation_id=9))
    assert b"precious" in world.store.data[IMAGE]


def test_snapshot_when_the_next_runner_asks_while_it_is_taken_then_it_joins(world, order):
    block = world.driver.knobs.block("take_snapshot")
    first, one = beside(world.one, "snapshot_guests", snapshot_order(order, 2, operation_id=9))
    assert block.reached.wait(5)
    second, two = beside(world.one, "snapshot_guests", snapshot_order(order, 3, operation_id=9))
    wait_until(lambda: world.service._fences.known(order.server_uuid).epoch == 3)
    block.release()
    first.join(5)
    second.join(5)
    assert one[0].ok and two[0] == one[0] and calls(world).count("take_snapshot") == 1


@pytest.mark.parametrize("when", ["before", "after"])
def test_snapshot_when_it_fails_then_nothing_is_kept(world, order, when):
    world.driver.knobs.fail_next("take_snapshot", when=when)
    assert not world.one("snapshot_guests", snapshot_order(order, 2)).ok
    assert world.driver.snapshots.snapshot_path(order.server_uuid, IMAGE) is None
    assert world.driver.lifecycle.power_state(order.server_uuid) == PowerState.RUNNING


def test_snapshot_when_a_delete_comes_then_nothing_is_left(world, order):
    block = world.driver.knobs.block("take_snapshot")
    first, one = beside(world.one, "snapshot_guests", snapshot_order(order, 2))
    assert block.reached.wait(5)
    second, two = beside(world.one, "destroy_guests", guest_order(order, 3))
    wait_until(lambda: len(world.service._orders._running[order.server_uuid]) == 2)
    block.release()
    first.join(5)
    second.join(5)
    assert one[0].error_kind == "overtaken" and two[0].ok and world.leftovers() == []


@pytest.mark.parametrize("error", [errors.Unavailable("down"), errors.Forbidden("quota")])
def test_upload_when_the_image_service_refuses_then_the_file_stays_for_another_try(world, order, error):
    world.one("snapshot_guests", snapshot_order(order, 2))
    world.store.error = error
    assert world.one("upload_snapshots", snapshot_order(order, 2)).error_kind == error.kind
    assert world.driver.snapshots.snapshot_path(order.server_uuid, IMAGE) is not None
    world.store.error = None
    assert world.one("upload_snapshots", snapshot_order(order, 3)).ok


def test_upload_when_a_delete_comes_then_it_breaks_off_and_nothing_is_left(world, order):
    world.one("snapshot_guests", snapshot_order(order, 2))
    reached, go_on = threading.Event(), threading.Event()

    def chunk():
        reached.set()
        go_on.wait(5)
    world.store.on_chunk = chunk
    first, one = beside(world.one, "upload_snapshots", snapshot_order(order, 2))
    assert reached.wait(5)
    second, two = beside(world.one, "destroy_guests", guest_order(order, 3))
    wait_until(lambda: len(world.service._orders._running[order.server_uuid]) == 2)
    go_on.set()
    first.join(5)
    second.join(5)
    assert one[0].error_kind == "overtaken" and not world.store.data
    assert two[0].ok and world.leftovers() == []


def test_upload_when_the_image_was_deleted_then_not_found_and_drop_clears_up(world, order):
    world.one("snapshot_guests", snapshot_order(order, 2))
    del world.store.images[IMAGE]
    assert world.one("upload_snapshots", snapshot_order(order, 2)).error_kind == "not_found"
    assert world.one("drop_snapshots", snapshot_order(order, 2)).ok
    assert world.driver.snapshots.snapshot_path(order.server_uuid, IMAGE) is None


def test_upload_when_killed_after_the_file_was_dropped_then_repeating_it_is_ok(world, order):
    world.one("snapshot_guests", snapshot_order(order, 2))
    world.driver.knobs.fail_next("drop_snapshot", when="after")
    assert not world.one("upload_snapshots", snapshot_order(order, 2)).ok
    assert world.one("upload_snapshots", snapshot_order(order, 3)).ok


def test_upload_when_nothing_was_kept_and_the_image_is_empty_then_conflict(world, order):
    outcome = world.one("upload_snapshots", snapshot_order(order, 2))
    assert (outcome.error_kind, outcome.error_code) == ("conflict", "snapshot.not_found")


@pytest.mark.parametrize("away", [True, False])
def test_upload_when_permission_is_not_to_be_had_then_nothing_is_sent(world, order, away):
    world.one("snapshot_guests", snapshot_order(order, 2))
    world.conductor.away = away
    world.conductor.overtaken.add(order.server_uuid)
    outcome = world.one("upload_snapshots", snapshot_order(order, 2))
    assert outcome.error_kind == ("host_refused" if away else "overtaken") and not world.store.data


def test_upload_when_the_host_has_no_image_service_then_not_supported(world, order):
    world.store = None
    world.restart()
    assert world.one("upload_snapshots", snapshot_order(order, 2)).error_kind == "not_supported"
    assert ComputeParts(None, None, None, None).store is None


def test_snapshot_when_taken_again_after_a_drop_of_the_same_operation_then_it_is_a_new_one(world, order):
    world.one("snapshot_guests", snapshot_order(order, 2))
    assert world.one("drop_snapshots", snapshot_order(order, 2)).ok
    assert world.one("snapshot_guests", snapshot_order(order, 2)).ok
    assert world.driver.snapshots.snapshot_path(order.server_uuid, IMAGE) is not None


@pytest.mark.parametrize("state", ["off", "paused"])
def test_snapshot_when_the_guest_does_not_run_then_the_outcome_has_its_state(world, order, state):
    call, power = (("stop_guests", PowerState.SHUTDOWN) if state == "off" else ("pause_guests", PowerState.PAUSED))
    world.one(call, guest_order(order, 2))
    for each in ("snapshot_guests", "upload_snapshots", "drop_snapshots"):
        assert world.one(each, snapshot_order(order, 3)).power_state == power


def test_cleanup_when_a_snapshot_should_have_been_dropped_then_it_is(world, order):
    world.one("snapshot_guests", snapshot_order(order, 2))
    world.conductor.cleanups = (PendingCleanup(id=1, host=HOST, server_uuid=order.server_uuid, epoch=2,
                                            step="drop_snapshots", arguments={"image_id": IMAGE}),)
    world.restart()
    assert world.conductor.paid == [1] and world.driver.snapshots.snapshot_path(order.server_uuid, IMAGE) is None


class InCeph:
    """Snapshots of a driver that makes them in Ceph. ``file``: what is uploaded instead."""

    def __init__(self, file: Path) -> None:
        self.file, self.there, self.brought = file, True, 0

    def location(self, image_id: str) -> RbdLocation | None:
        return RbdLocation(fsid="f", pool="snapshots", image=image_id, snapshot="snap") if self.there else None

    def bring(self, server_uuid: str, image_id: str) -> str:
        self.brought += 1
        self.there = False
        self.file.write_bytes(b"brought")
        return str(self.file)


@pytest.fixture
def in_ceph(world, tmp_path):
    world.driver.direct_snapshots = made = InCeph(tmp_path / "brought")
    return made


def test_upload_when_the_image_service_takes_it_in_ceph_then_nothing_is_sent(world, order, in_ceph):
    sent = world.one("upload_snapshots", snapshot_order(order, 2))
    assert sent.ok and [one.image for one in world.store.offered] == [IMAGE]
    assert IMAGE not in world.store.data and not in_ceph.brought and in_ceph.there


@pytest.mark.parametrize("refusal", [errors.NotFound("an old Glance"), errors.Forbidden("no"), errors.Conflict("no"),
                                     errors.Invalid("no"), errors.HostRefused("an old proxy")])
def test_upload_when_the_image_service_refuses_it_in_ceph_then_it_is_sent_and_the_log_says_why(
        world, order, in_ceph, refusal, caplog):
    world.store.refusal = refusal
    assert world.one("upload_snapshots", snapshot_order(order, 2)).ok
    assert world.store.data[IMAGE] == b"brought" and refusal.message in caplog.text


def test_upload_when_nobody_knows_whether_it_is_taken_then_it_fails_and_all_stays(world, order, in_ceph):
    world.store.refusal = errors.service.Unavailable(service="image", reason="cut")
    outcome = world.one("upload_snapshots", snapshot_order(order, 2))
    assert not outcome.ok and outcome.error_kind == "unavailable" and in_ceph.there and not in_ceph.brought


def test_drop_when_the_image_service_has_it_then_the_driver_hears_so(world, order, monkeypatch):
    told = []
    monkeypatch.setattr(world.driver.snapshots, "drop_snapshot", lambda *facts: told.append(facts[1:]))
    for epoch, given in ((2, True), (3, False)):
        world.one("drop_snapshots", msgspec.structs.replace(snapshot_order(order, epoch), given=given))
    world.conductor.cleanups = (PendingCleanup(id=1, host=HOST, server_uuid=order.server_uuid, epoch=2,
                                            step="drop_snapshots",
                                            arguments={"image_id": f"{IMAGE} other", "given": IMAGE}),)
    world.service._cleanups.take(world.conductor.cleanups)
    world.service._cleanups.do_open()
    assert told == [(IMAGE, True), (IMAGE, False), (IMAGE, True), ("other", False)]
