"""Guests' disks on volumes: orders to plug them in and out, and what every other order does about them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from nova import errors
from nova.compute.guests.build import BuildTools, images_of
from nova.compute.guests.build_markers import BuildMarkers
from nova.compute.guests.volumes import VolumeOrders
from nova.devel.fake import FakeDriver
from nova.model.guest.orders import BuildOrder, ExpectedGuest, MoveOrder, VolumeOrder
from nova.model.image.images import Image
from nova.model.server.states import PowerState, VmState
from nova.model.volumes import BlockDevice, VolumeConnection, VolumeDisk
from nova.virt.interface import Driver
from tests.fakes.compute import HOST, World, beside, build_order, fence, guest_order
from tests.unit.compute.test_guest_moves import left, move_order
from tests.unit.compute.test_life import rebuild_order
from tests.unit.compute.test_live import prepared

SECRET = "AQBq3vJkAAAAABAAq1Wc3pot0fGold"
CALLS = ["attach_volumes", "detach_volumes", "extend_volumes", "swap_volumes", "unswap_volumes"]
RUNNING, SHUTDOWN = PowerState.RUNNING, PowerState.SHUTDOWN


def disk(volume_id: str = "vol-1", kind: str | None = "fake", **device: Any) -> VolumeDisk:
    """``kind`` None: the order does not say how the volume is reached."""
    connection = VolumeConnection(kind=kind, data={"auth_password": SECRET}) if kind else None
    return VolumeDisk(device=BlockDevice(volume_id=volume_id, **{"size_gb": 1, **device}), connection=connection)


def on(order: BuildOrder, *disks: VolumeDisk) -> BuildOrder:
    return msgspec.structs.replace(order, volumes=disks)


def known(order: BuildOrder) -> BuildOrder:
    """As the order is when it does not say again how the volumes are reached."""
    return on(order, *(msgspec.structs.replace(one, connection=None) for one in order.volumes))


def plug(order: BuildOrder, epoch: int, one: VolumeDisk, plugged: bool = True) -> VolumeOrder:
    rest = tuple(other for other in order.volumes if other.device.volume_id != one.device.volume_id)
    return VolumeOrder(server_uuid=order.server_uuid, instance_name=order.instance_name, fence=fence(epoch), disk=one,
                       build=on(order, *rest, *((one,) if plugged else ())))


def seen(world: World, order: BuildOrder) -> list[str]:
    """Volumes that the guest has."""
    found = world.driver.hypervisor.inspect(order.server_uuid)
    return sorted(found.volumes) if found is not None else []


def connected(world: World, order: BuildOrder) -> list[str]:
    """Volumes that the host can reach."""
    found = world.driver.hypervisor.inspect(order.server_uuid)
    return sorted(found.connected) if found is not None else []


@pytest.fixture
def other(tmp_path):
    made = World(tmp_path / "other", name="compute2").start()
    yield made
    made.close()


@pytest.fixture
def order(world):
    made = on(build_order(), disk())
    assert world.one("build_guests", made).ok
    return made


# --- one volume of a guest

def test_attach_and_detach_when_they_are_repeated_then_the_guest_has_it_once_or_not(world):
    order, extra = build_order(), disk("vol-2")
    world.build(order)
    for epoch in (2, 2, 3):  # the second one is joined; the third is of a runner that took the operation over
        assert world.one("attach_volumes", plug(order, epoch, extra)).power_state == RUNNING
        assert seen(world, order) == connected(world, order) == ["vol-2"]
    assert world.driver.calls.count(("attach_volume", order.server_uuid)) == 2
    for epoch in (4, 5):
        assert world.one("detach_volumes", plug(order, epoch, extra, False)).ok
        assert seen(world, order) == connected(world, order) == []


@pytest.mark.parametrize("call", CALLS)
def test_volume_order_when_its_epoch_is_old_or_the_conductor_does_not_grant_it_then_nothing_is_done(world, call):
    order = build_order(epoch=5)
    world.build(order)
    world.driver.calls.clear()
    assert world.one(call, plug(order, 4, disk())).error_kind == "overtaken"
    world.conductor.overtaken.add(order.server_uuid)
    assert world.one(call, plug(order, 6, disk())).error_kind == "overtaken"
    assert not world.driver.calls


@pytest.mark.parametrize("call", [call[:-1] for call in CALLS])
def test_volume_order_when_the_driver_fails_then_the_outcome_says_why(world, call):
    order = build_order()
    world.build(order)
    world.driver.knobs.fail_next(call, "host_refused")
    outcome = world.one(f"{call}s", plug(order, 2, disk()))
    assert (outcome.ok, outcome.error_kind) == (False, "host_refused")


def test_detach_when_the_guest_keeps_it_then_the_outcome_is_a_conflict_and_it_has_it(world, order):
    world.driver.knobs.fail_next("release_volume", "conflict")
    outcome = world.one("detach_volumes", plug(order, 3, disk(), False))
    assert (outcome.ok, outcome.error_kind) == (False, "conflict")
    assert seen(world, order) == connected(world, order) == ["vol-1"]


def gives_up_late(world: World, order: BuildOrder, *volumes: str) -> None:
    """As a guest that was paused does, once it goes on."""
    with world.driver.hypervisor.changed(order) as guest:
        guest.given_up = volumes


def test_guest_that_kept_a_volume_when_it_gives_it_up_late_then_the_conductor_hears_it_until_the_detach_is_done(
        world, order, caplog):
    volumes = world.service.handlers.volumes
    assert volumes.tell_of_given_up() == 0
    world.driver.knobs.fail_next("release_volume", "conflict")
    world.one("detach_volumes", plug(order, 2, disk(), False))
    assert volumes.tell_of_given_up() == 1 and not world.conductor.asked("volumes_given_up")
    gives_up_late(world, order, "vol-1")
    world.driver.knobs.fail_next("given_up", "host_refused")
    assert volumes.tell_of_given_up() == 1 and "released late" in caplog.text
    assert [volumes.tell_of_given_up(), volumes.tell_of_given_up()] == [1, 1]
    assert world.conductor.asked("volumes_given_up") == [(HOST, order.server_uuid, ("vol-1",))] * 2
    assert world.one("detach_volumes", plug(order, 3, disk(), False)).ok
    volumes.tell_of_given_up()
    assert len(world.conductor.asked("volumes_given_up")) == 2 and seen(world, order) == []


def test_guest_that_gave_a_volume_up_when_the_process_is_new_or_the_guest_stops_then_it_is_known_as_long_as_it_runs(
        world, order):
    gives_up_late(world, order, "vol-1")
    world.restart()
    volumes = world.service.handlers.volumes
    assert volumes.tell_of_given_up() == 1
    assert world.conductor.asked("volumes_given_up") == [(HOST, order.server_uuid, ("vol-1",))]
    world.one("stop_guests", guest_order(order, 3))
    assert volumes.tell_of_given_up() == 0


def test_detach_when_the_attach_of_the_same_operation_is_in_progress_then_it_comes_after_it(world):
    order = build_order()
    world.build(order)
    block = world.driver.knobs.block("attach_volume", when="after")
    attaching, attached = beside(world.one, "attach_volumes", plug(order, 2, disk()))
    assert block.reached.wait(5)
    detaching, detached = beside(world.one, "detach_volumes", plug(order, 2, disk(), False))
    block.release()
    attaching.join(5)
    detaching.join(5)
    assert attached[0].ok and detached[0].ok and seen(world, order) == connected(world, order) == []


def test_attach_when_the_process_is_killed_in_it_then_its_repetition_ends_it(world):
    order = build_order()
    world.build(order)
    world.driver.knobs.fail_next("attach_volume", "crash", when="after")
    assert not world.one("attach_volumes", plug(order, 2, disk())).ok
    world.restart()
    assert world.one("attach_volumes", plug(order, 2, disk())).ok and seen(world, order) == ["vol-1"]
    assert world.one("destroy_guests", guest_order(order, 3)).ok and world.leftovers() == []


def test_extend_when_the_volume_has_grown_then_the_guest_sees_its_new_size(world, order):
    assert world.one("extend_volumes", plug(order, 2, disk(size_gb=3))).ok
    assert world.driver.hypervisor.inspect(order.server_uuid).volumes == {"vol-1": 3}


def test_attach_when_the_host_cannot_reach_volumes_of_that_kind_then_it_is_refused_by_its_name(world):
    order = build_order()
    world.build(order)
    outcome = world.one("attach_volumes", plug(order, 2, disk(kind="carrier_pigeon")))
    assert outcome.error_code == "host.volume_kind" and "carrier_pigeon" in outcome.error_message
    assert connected(world, order) == []


# --- a driver without volumes

class Plain(FakeDriver):
    def _compose(self, *args: Any) -> None:
        super()._compose(*args)
        self.volumes = None


@pytest.fixture
def plain(world):
    world.new_driver = lambda: Plain(world.driver.hypervisor.options, HOST, world.state_path)
    return world.restart()


def test_build_when_the_driver_has_no_volumes_then_the_host_refuses_it_and_nothing_is_left(plain):
    outcome = plain.one("build_guests", on(build_order(), disk()))
    assert (outcome.error_kind, outcome.error_code) == ("host_refused", "host.no_volumes")
    assert plain.leftovers() == [] and plain.one("build_guests", build_order()).ok


@pytest.mark.parametrize("call", CALLS)
def test_volume_order_when_the_driver_has_no_volumes_then_the_host_refuses_it(plain, call):
    order = build_order()
    plain.build(order)
    assert plain.one(call, plug(order, 2, disk())).error_code == "host.no_volumes"


def test_arrival_when_the_driver_has_no_volumes_then_the_host_refuses_it(world, tmp_path):
    order = on(build_order(), disk())
    other = World(tmp_path / "other", name="compute2")
    other.new_driver = lambda: Plain(world.driver.hypervisor.options, "compute2", other.state_path)
    other.restart()
    try:
        assert other.one("prepare_arrivals", MoveOrder(server_uuid=order.server_uuid, fence=fence(2),
                                                       build=order)).error_code == "host.no_volumes"
        assert other.one("rebuild_guests", rebuild_order(order, 3)).error_code == "host.no_volumes"
        assert other.leftovers() == []
    finally:
        other.close()


def with_limit(tmp_path: Path, most: int) -> World:
    made = World(tmp_path / "limited", name="compute2")
    made.most_disks = most
    return made.restart()


@pytest.mark.parametrize(("most", "properties", "refused"), [
    (-1, {}, False), (3, {}, False), (2, {}, True), (0, {}, True), (-1, {"hw_disk_bus": "ide"}, False),
    (9, {"hw_disk_bus": "ide"}, False), (2, {"hw_disk_bus": "ide"}, True)])
def test_build_when_a_guest_has_more_disks_than_the_host_allows_then_forbidden_and_nothing_is_left(
        tmp_path: Path, most: int, properties: dict[str, str], refused: bool) -> None:
    limited = with_limit(tmp_path, most)
    try:
        order = on(build_order(image=Image(id="i", properties=properties), config_drive=True), disk())
        outcome = limited.one("build_guests", order)
        assert outcome.ok is not refused
        if refused:
            assert (outcome.error_kind, outcome.error_code) == ("forbidden", "guest.too_many_disks")
            assert limited.leftovers() == []
    finally:
        limited.close()


def test_orders_when_they_would_bring_more_disks_than_the_host_allows_then_the_guest_is_left_as_it_is(tmp_path: Path
                                                                                                    ) -> None:
    limited = with_limit(tmp_path, 2)
    try:
        order = on(build_order(), disk())
        assert limited.one("build_guests", order).ok
        more = on(order, disk(), disk("vol-2"))
        attach = plug(order, 2, disk("vol-2"))
        for call, asked in (("attach_volumes", attach), ("rebuild_guests", rebuild_order(more, 3))):
            assert limited.one(call, asked).error_code == "guest.too_many_disks"
        assert seen(limited, order) == ["vol-1"]
        comes = on(build_order(number=2), disk("vol-3"), disk("vol-4"))
        assert limited.one("prepare_arrivals", MoveOrder(server_uuid=comes.server_uuid, fence=fence(2), build=comes)
                           ).error_code == "guest.too_many_disks"
    finally:
        limited.close()


@pytest.mark.parametrize(("count", "ok"), [(3, True), (4, False)])
def test_build_when_the_bus_is_ide_then_four_disks_at_most(world: World, count: int, ok: bool) -> None:
    order = on(build_order(image=Image(id="i", properties={"hw_disk_bus": "ide"})),
               *(disk(f"vol-{number}") for number in range(count)))
    assert world.one("build_guests", order).ok is ok


def test_volume_orders_when_the_driver_has_none_then_nothing_is_asked_of_the_conductor():
    markers: BuildMarkers = None  # type: ignore[assignment]
    tools = BuildTools(type("Bare", (Driver,), {})(), None, markers, markers, markers, host=HOST)
    with pytest.raises(Exception, match="does not support volumes"):
        VolumeOrders(tools.volumes, None, None).attach(  # type: ignore[arg-type]
            plug(build_order(), 1, disk()), None, None)  # type: ignore[arg-type]


def test_connector_when_asked_then_it_is_the_drivers_with_this_hosts_name(world, plain):
    with pytest.raises(errors.NotSupported):
        plain.service.volume_connector(HOST)
    with pytest.raises(errors.HostRefused):
        plain.service.volume_connector("another")


def test_connector_when_the_driver_has_volumes_then_it_names_the_host(world):
    assert world.service.volume_connector(HOST)["host"] == HOST


# --- in the life of a guest

@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("error", ["host_refused", "crash"])
@pytest.mark.parametrize("call", ["connect", "start_new"])
def test_build_when_a_step_fails_then_no_volume_stays_connected(world, call, error, when):
    world.driver.knobs.fail_next(call, error=error, when=when)
    outcome = world.one("build_guests", on(build_order(), disk(), disk("vol-2")))
    assert not outcome.ok and world.leftovers() == []


def test_build_when_a_volume_cannot_be_let_go_then_what_is_left_is_marked_and_destroyed_later(world):
    order = on(build_order(), disk())
    world.driver.knobs.fail_next("start_new")
    world.driver.knobs.fail_next("disconnect", "host_refused")
    assert not world.one("build_guests", order).ok
    assert connected(world, order) == ["vol-1"] and list((world.state_path / "building").iterdir())
    assert world.one("destroy_guests", guest_order(order, 2)).ok and world.leftovers() == []


def test_destroy_when_a_volume_cannot_be_let_go_then_it_fails_and_its_repetition_leaves_nothing(world, order):
    world.driver.knobs.fail_next("disconnect", "host_refused")
    assert not world.one("destroy_guests", guest_order(order, 2)).ok
    assert connected(world, order) == ["vol-1"]  # what is needed to let it go is kept
    assert world.one("destroy_guests", guest_order(order, 3)).ok and world.leftovers() == []


def test_guest_that_boots_from_a_volume_when_built_then_it_has_no_disk_of_the_hosts(world):
    order = on(build_order(disks=()), disk(boot_index=0))
    assert world.one("build_guests", order).power_state == RUNNING
    guest = world.driver.hypervisor.inspect(order.server_uuid)
    assert guest.disks == [] and guest.volumes == {"vol-1": 1}
    assert world.one("destroy_guests", guest_order(order, 2)).ok and world.leftovers() == []


def test_images_when_the_guest_boots_from_a_volume_then_that_of_its_root_is_not_fetched():
    order = build_order(image=Image(id="made-of"), kernel=Image(id="kernel"))
    assert images_of(order) == (order.image, order.kernel, None)
    assert images_of(on(order, disk())) == images_of(order)
    assert images_of(on(order, disk(boot_index=0))) == (None, order.kernel, None)


@pytest.mark.parametrize("said", [True, False])
@pytest.mark.parametrize(("call", "before"), [
    ("start_guests", "stop_guests"), ("reboot_guests", ""), ("resume_guests", "suspend_guests"),
    ("unrescue_guests", "stop_guests")])
def test_order_when_it_starts_the_guest_then_its_volumes_are_connected_before(world, order, call, before, said):
    if before:
        assert world.one(before, guest_order(order, 2)).ok
    world.driver.calls.clear()
    again = guest_order(order, 3, build=order if said else known(order), reboot="hard")
    assert world.one(call, again).power_state == RUNNING
    calls = [one for one, _ in world.driver.calls]
    assert "connect" in calls and seen(world, order) == connected(world, order) == ["vol-1"]
    starts = {"start", "start_new", "resume", "unrescue"} & set(calls)
    assert starts and calls.index("connect") < min(map(calls.index, starts))


def test_start_when_a_volume_is_not_connected_and_the_order_does_not_say_how_then_it_is_refused(world):
    order = build_order()
    world.build(order)
    world.one("stop_guests", guest_order(order, 2))
    outcome = world.one("start_guests", guest_order(order, 3, build=on(order, disk(kind=None))))
    assert outcome.error_code == "host.volume_not_connected"
    assert world.driver.lifecycle.power_state(order.server_uuid) == SHUTDOWN


def test_hard_reboot_when_a_volume_is_not_the_servers_any_more_then_it_is_let_go(world, order):
    build = on(order, disk("vol-2"))
    assert world.one("reboot_guests", guest_order(order, 2, build=build, reboot="hard")).ok
    assert seen(world, order) == connected(world, order) == ["vol-2"]


@pytest.mark.parametrize("keep_ephemeral", [True, False])
def test_rebuild_when_the_order_does_not_say_how_the_volumes_are_reached_then_they_stay_connected(
        world, keep_ephemeral):
    order = on(build_order(), disk(), disk("vol-2"))
    world.build(order)
    new = on(order, disk(kind=None))
    assert world.one("rebuild_guests", rebuild_order(new, 2, keep_ephemeral=keep_ephemeral)).ok
    assert seen(world, order) == connected(world, order) == ["vol-1"]


def running(order: BuildOrder) -> ExpectedGuest:
    return ExpectedGuest(server_uuid=order.server_uuid, instance_name=order.instance_name, epoch=1,
                         vm_state=VmState.ACTIVE, power_state=RUNNING)


def test_start_at_the_hosts_boot_when_the_guest_has_volumes_then_they_are_connected_before(make_world):
    world = make_world(resume_guests_state_on_host_boot=True).start()
    order = on(build_order(), disk())
    world.build(order)
    world.driver.hypervisor.change_power(order.server_uuid, SHUTDOWN)
    world.conductor.given(expected_guests=lambda host, have: (running(order),))
    world.restart()
    calls = [one for one, _ in world.driver.calls]
    assert calls.index("connect") < calls.index("start") and connected(world, order) == ["vol-1"]


# --- from host to host

def test_cold_move_when_the_guest_leaves_and_arrives_then_each_host_has_the_volumes_in_turn(world, other, order):
    source = left(world, order)
    assert connected(world, order) == []
    assert world.driver.hypervisor.inspect_source_copy(order.server_uuid).connected == {}
    assert other.one("fetch_guests", move_order(order, 2, source)).ok
    assert other.one("finish_guests", move_order(order, 2, source)).power_state == RUNNING
    assert seen(other, order) == connected(other, order) == ["vol-1"]


@pytest.mark.parametrize("call", ["connect", "start_new"])
def test_cold_move_when_the_guest_cannot_be_started_there_then_no_volume_stays_connected(world, other, order, call):
    source = left(world, order)
    assert other.one("fetch_guests", move_order(order, 2, source)).ok
    other.driver.knobs.fail_next(call, "host_refused", when="after")
    assert not other.one("finish_guests", move_order(order, 2, source)).ok
    assert connected(other, order) == []


@pytest.mark.parametrize("start", [True, False])
def test_cold_move_when_it_is_taken_back_then_the_volumes_are_connected_anew(world, order, start):
    left(world, order)
    assert world.one("fetch_guests", move_order(order, 2)).ok
    assert world.one("finish_guests", move_order(order, 2)).power_state == RUNNING
    state = world.one("return_guests", move_order(order, 3, start=start)).power_state
    assert state == (RUNNING if start else SHUTDOWN)
    assert seen(world, order) == connected(world, order) == ["vol-1"]


def test_cold_move_of_a_guest_without_disks_of_the_hosts_when_it_leaves_then_it_can_come_back(world):
    order = on(build_order(disks=()), disk(boot_index=0))
    world.build(order)
    left(world, order)
    assert world.driver.cold_moves.kept_sources() == {order.server_uuid}
    assert world.one("return_guests", move_order(order, 3)).power_state == RUNNING
    assert world.one("destroy_guests", guest_order(order, 4)).ok and world.leftovers() == []


def test_live_migration_when_it_is_over_then_only_the_destination_has_the_volumes(world, other, order):
    live = prepared(world, other, order)
    assert connected(other, order) == ["vol-1"]
    for _ in range(2):
        assert world.one("migrate_guests", live).ok
    assert connected(world, order) == []
    assert other.one("land_guests", move_order(order, 2)).power_state == RUNNING
    assert seen(other, order) == connected(other, order) == ["vol-1"]
    assert world.one("destroy_guests", guest_order(order, 2)).ok and world.leftovers() == []


def test_live_migration_when_the_source_cannot_let_the_volumes_go_then_it_is_over_and_destroy_does_it(
        world, other, order):
    live = prepared(world, other, order)
    world.driver.knobs.fail_next("disconnect", "host_refused")
    assert world.one("migrate_guests", live).ok and connected(world, order) == ["vol-1"]
    assert world.one("destroy_guests", guest_order(order, 2)).ok and world.leftovers() == []


def test_live_migration_when_it_fails_then_the_source_keeps_its_volumes(world, other, order):
    live = prepared(world, other, order)
    world.driver.knobs.fail_next("migrate", "host_refused")
    assert not world.one("migrate_guests", live).ok
    assert seen(world, order) == connected(world, order) == ["vol-1"]


def test_arrival_when_its_preparation_fails_then_no_volume_stays_connected(world, other, order):
    source = world.one("describe_guests", guest_order(order, 2)).source
    other.driver.knobs.fail_next("prepare_arrival", "host_refused", when="after")
    assert not other.one("prepare_arrivals", move_order(order, 2, source)).ok
    assert connected(other, order) == []


# --- secrets

def test_secret_of_a_connection_when_orders_are_carried_out_then_no_file_log_line_or_outcome_has_it(
        world, other, caplog):
    caplog.set_level("DEBUG")
    order = on(build_order(), disk(), disk("vol-2", boot_index=0))
    world.driver.knobs.fail_next("connect", "crash")
    said = [str(world.one("build_guests", order)), repr(order)]
    order = msgspec.structs.replace(order, fence=fence(2))
    said += [str(world.one("build_guests", order))]
    said += [str(world.one("attach_volumes", plug(order, 2, disk("vol-3")))), repr(plug(order, 2, disk("vol-3")))]
    live = prepared(world, other, order, 3)
    said += [str(live), str(world.one("migrate_guests", live)), str(other.one("land_guests", move_order(order, 3)))]
    said += [str(left(other, order, 4)), str(other.driver.kept_orders.kept_order(order.server_uuid))]
    assert SECRET not in caplog.text and not any(SECRET in one for one in said)
    files = [path for room in (world, other) for path in Path(room.state_path).rglob("*") if path.is_file()]
    assert files and not [path for path in files if SECRET.encode() in path.read_bytes()]
