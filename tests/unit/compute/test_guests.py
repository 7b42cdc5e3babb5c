"""One guest on one host: built, undone, stopped, started, rebooted, destroyed."""

from __future__ import annotations

import msgspec
import pytest

from nova.compute.orders import permission
from nova.model.guest.orders import Disk
from nova.model.server.states import PowerState
from tests.fakes.compute import HOST, beside, build_order, guest_order, wait_until

STEPS = ("create_disks", "plug", "write_config_drive", "start_new")


def test_build_when_all_goes_well_then_the_guest_runs_and_no_mark_is_left(world):
    order = build_order()
    (outcome,) = world.build(order)
    assert outcome.ok and outcome.power_state == PowerState.RUNNING
    guest = world.driver.hypervisor.inspect(order.server_uuid)
    assert guest.defined and guest.disks == ["root"] and len(guest.taps) == 1
    assert not list((world.state_path / "building").iterdir())


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("error", ["host_refused", "crash"])
@pytest.mark.parametrize("call", STEPS)
def test_build_when_a_step_fails_then_nothing_is_left(world, call, error, when):
    world.driver.knobs.fail_next(call, error=error, when=when)
    order = build_order(config_drive=True)
    (outcome,) = world.build(order)
    assert not outcome.ok and outcome.error_kind == "host_refused"
    assert "Traceback" in outcome.details
    assert world.leftovers() == []


def test_build_when_an_image_is_unfit_then_the_kind_tells_not_to_try_elsewhere(world):
    world.driver.knobs.fail_next("create_disks", error="invalid")
    (outcome,) = world.build(build_order())
    assert outcome.error_kind == "invalid"


def test_build_when_the_conductor_is_back_soon_then_the_host_asks_again_and_goes_on(world, monkeypatch):
    monkeypatch.setattr(permission, "ASK_FOR_S", 5.0)
    monkeypatch.setattr(permission, "ASK_AGAIN_S", 0.01)
    world.conductor.away = True
    build, results = beside(world.build, build_order())
    wait_until(lambda: len(world.conductor.asked("may_proceed")) > 2)
    world.conductor.away = False
    build.join(5)
    assert results[0][0].ok


@pytest.mark.parametrize("call", ["remove_disks", "unplug"])
def test_build_when_its_undo_fails_too_then_the_mark_stays_and_destroy_clears_up(world, call):
    world.driver.knobs.fail_next("start_new")
    world.driver.knobs.fail_next(call)
    order = build_order()
    (outcome,) = world.build(order)
    assert not outcome.ok
    assert [path.name for path in (world.state_path / "building").iterdir()] == [order.server_uuid]
    (outcome,) = world.service.destroy_guests(HOST, (guest_order(order, 1),))
    assert outcome.ok and world.leftovers() == []


def test_build_when_the_started_guest_cannot_be_stopped_then_its_disks_stay(world):
    world.driver.knobs.fail_next("start_new", when="after")
    world.driver.knobs.fail_next("destroy")
    order = build_order()
    world.build(order)
    assert world.driver.hypervisor.inspect(order.server_uuid).disks == ["root"]


def test_build_when_the_conductor_refuses_then_it_is_undone_as_overtaken(world):
    order = build_order()
    world.conductor.overtaken.add(order.server_uuid)
    (outcome,) = world.build(order)
    assert (outcome.error_kind, outcome.error_code) == ("overtaken", "order.not_granted")
    assert "start_new" not in [call for call, _ in world.driver.calls]
    assert world.leftovers() == []


def test_build_when_the_conductor_cannot_be_asked_then_the_host_refuses(world):
    world.conductor.away = True
    (outcome,) = world.build(build_order())
    assert (outcome.error_kind, outcome.error_code) == ("host_refused", "order.cannot_ask")
    assert world.leftovers() == []


def test_build_when_repeated_after_a_restart_then_the_running_guest_is_kept(world):
    order = build_order()
    world.build(order)
    world.restart()
    (outcome,) = world.build(order)
    assert outcome.ok and outcome.power_state == PowerState.RUNNING
    assert not [call for call, _ in world.driver.calls]


@pytest.mark.parametrize("config_drive", [True, False])
def test_build_when_a_config_drive_is_wanted_then_it_tells_the_guest_its_uuid(world, config_drive):
    order = build_order(config_drive=config_drive, disks=(Disk(kind="root", size_gb=1), Disk(kind="swap", size_mb=64)))
    world.build(order)
    drive = world.driver.hypervisor.inspect(order.server_uuid).config_drive
    assert bool(drive) is config_drive
    assert not config_drive or any(order.server_uuid.encode() in content for content in drive.values())


def test_destroy_when_the_guest_runs_then_nothing_is_left(world):
    order = build_order()
    world.build(order)
    (outcome,) = world.service.destroy_guests(HOST, (guest_order(order, 2),))
    assert outcome.ok and outcome.power_state == PowerState.NOSTATE
    assert world.leftovers() == []


def test_destroy_when_the_guest_never_was_then_it_is_done(world):
    (outcome,) = world.service.destroy_guests(HOST, (guest_order(build_order(), 2),))
    assert outcome.ok


@pytest.mark.parametrize("away", [True, False])
def test_destroy_when_permission_is_not_to_be_had_then_the_guest_stays(world, away):
    order = build_order()
    world.build(order)
    world.conductor.away = away
    world.conductor.overtaken.add(order.server_uuid)
    (outcome,) = world.service.destroy_guests(HOST, (guest_order(order, 2),))
    assert outcome.error_kind == ("host_refused" if away else "overtaken")
    assert world.driver.lifecycle.power_state(order.server_uuid) == PowerState.RUNNING


@pytest.mark.parametrize("call", ["destroy", "unplug", "remove_disks"])
def test_destroy_when_a_part_fails_then_repeating_it_in_a_new_epoch_finishes(world, call):
    order = build_order()
    world.build(order)
    world.driver.knobs.fail_next(call)
    (outcome,) = world.service.destroy_guests(HOST, (guest_order(order, 2),))
    assert not outcome.ok
    (outcome,) = world.service.destroy_guests(HOST, (guest_order(order, 3),))
    assert outcome.ok and world.leftovers() == []


def test_destroy_when_the_guest_cannot_be_stopped_then_its_disks_stay(world):
    order = build_order()
    world.build(order)
    world.driver.knobs.fail_next("destroy")
    world.service.destroy_guests(HOST, (guest_order(order, 2),))
    assert world.driver.hypervisor.inspect(order.server_uuid).disks == ["root"]


def test_stop_and_start_when_ordered_then_the_power_follows(world):
    order = build_order()
    world.build(order)
    (outcome,) = world.service.stop_guests(HOST, (guest_order(order, 2),))
    assert outcome.power_state == PowerState.SHUTDOWN
    (outcome,) = world.service.start_guests(HOST, (guest_order(order, 3),))
    assert outcome.power_state == PowerState.RUNNING == world.driver.lifecycle.power_state(order.server_uuid)


def test_stop_when_the_definition_was_lost_then_it_counts_as_stopped(world):
    (outcome,) = world.service.stop_guests(HOST, (guest_order(build_order(), 2),))
    assert outcome.ok and outcome.power_state == PowerState.SHUTDOWN


def test_start_when_the_definition_was_lost_then_it_is_defined_from_the_order(world):
    order = build_order()
    world.build(order)
    world.driver.lifecycle.destroy(order.server_uuid)
    (outcome,) = world.service.start_guests(HOST, (guest_order(order, 2),))
    assert outcome.error_kind == "not_found"
    (outcome,) = world.service.start_guests(HOST, (guest_order(order, 3, build=order),))
    assert outcome.ok and world.driver.lifecycle.power_state(order.server_uuid) == PowerState.RUNNING


def test_start_when_the_order_has_a_definition_then_the_guest_is_made_anew(world):
    order = build_order()
    world.build(order)
    world.service.stop_guests(HOST, (guest_order(order, 2),))
    renamed = msgspec.structs.replace(order, instance_name="instance-renamed")
    (outcome,) = world.service.start_guests(HOST, (guest_order(order, 3, build=renamed),))
    assert outcome.ok and world.driver.hypervisor.inspect(order.server_uuid).instance_name == "instance-renamed"


@pytest.mark.parametrize(("error", "ok"), [("host_refused", True), ("invalid", True), ("conflict", False)])
def test_start_when_the_guest_cannot_be_made_anew_then_it_starts_as_it_was(world, caplog, error, ok):
    order = build_order()
    world.build(order)
    world.service.stop_guests(HOST, (guest_order(order, 2),))
    world.driver.knobs.fail_next("define", error)
    (outcome,) = world.service.start_guests(HOST, (guest_order(order, 3, build=order),))
    assert outcome.ok == ok and ("starting it with its old definition" in caplog.text) == ok


def test_start_when_a_guest_that_was_lost_cannot_be_made_then_the_error_is_told(world):
    order = build_order()
    world.build(order)
    world.driver.lifecycle.destroy(order.server_uuid)
    world.driver.knobs.fail_next("define", "host_refused")
    (outcome,) = world.service.start_guests(HOST, (guest_order(order, 3, build=order),))
    assert outcome.error_kind == "host_refused"


def test_start_when_the_conductor_refuses_then_the_guest_stays_down(world):
    order = build_order()
    world.build(order)
    world.service.stop_guests(HOST, (guest_order(order, 2),))
    world.conductor.overtaken.add(order.server_uuid)
    (outcome,) = world.service.start_guests(HOST, (guest_order(order, 3),))
    assert outcome.error_kind == "overtaken"
    assert world.driver.lifecycle.power_state(order.server_uuid) == PowerState.SHUTDOWN


def _calls(world) -> list[str]:
    return [call for call, _ in world.driver.calls]


def test_soft_reboot_when_the_guest_obeys_then_nothing_is_defined_anew(world):
    order = build_order()
    world.build(order)
    world.driver.calls.clear()
    (outcome,) = world.service.reboot_guests(HOST, (guest_order(order, 2, build=order),))
    assert outcome.ok and outcome.power_state == PowerState.RUNNING
    assert _calls(world) == ["reboot"]


def test_soft_reboot_when_the_guest_does_not_obey_then_it_is_done_the_hard_way(world):
    order = build_order()
    world.build(order)
    world.service.stop_guests(HOST, (guest_order(order, 2),))
    world.driver.calls.clear()
    (outcome,) = world.service.reboot_guests(HOST, (guest_order(order, 3, build=order),))
    assert outcome.ok and world.driver.lifecycle.power_state(order.server_uuid) == PowerState.RUNNING
    assert _calls(world) == ["reboot", "destroy", "plug", "disconnect", "start_new"]


@pytest.mark.parametrize("reboot", ["soft", "hard"])
def test_reboot_when_the_conductor_refuses_then_the_guest_is_not_touched(world, reboot):
    order = build_order()
    world.build(order)
    world.driver.calls.clear()
    world.conductor.overtaken.add(order.server_uuid)
    (outcome,) = world.service.reboot_guests(HOST, (guest_order(order, 2, build=order, reboot=reboot),))
    assert outcome.error_kind == "overtaken" and not _calls(world)


def test_hard_reboot_when_ordered_then_the_guest_is_defined_anew_and_keeps_its_disks(world):
    order = build_order()
    world.build(order)
    world.driver.calls.clear()
    world.service.reboot_guests(HOST, (guest_order(order, 2, build=order, reboot="hard"),))
    assert _calls(world) == ["destroy", "plug", "disconnect", "start_new"]


def test_hard_reboot_when_the_order_has_no_definition_then_the_old_one_starts_again(world):
    order = build_order()
    world.build(order)
    world.driver.calls.clear()
    (outcome,) = world.service.reboot_guests(HOST, (guest_order(order, 2, reboot="hard"),))
    assert outcome.ok and _calls(world) == ["shut_down", "start"]


def test_reboot_when_starting_fails_then_the_error_is_a_bug_without_internals(world):
    order = build_order()
    world.build(order)
    world.driver.knobs.fail_next("start_new", error="crash")
    (outcome,) = world.service.reboot_guests(HOST, (guest_order(order, 2, build=order, reboot="hard"),))
    assert outcome.error_kind == "bug"
    assert outcome.error_message == "The host failed to reboot the guest (RuntimeError)."
