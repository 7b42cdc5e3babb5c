"""Guests that change hosts, or sizes, while they are off: two hosts, and every way that it can go wrong."""

from __future__ import annotations

import threading
import time

import msgspec
import pytest

from nova.model.flavor.flavors import Flavor
from nova.model.guest.orders import Disk, ExpectedGuest, MoveOrder
from nova.model.host.services import PendingCleanup
from nova.model.server.states import PowerState, VmState
from nova.privileged.runner import PrivateRunner
from tests.fakes.compute import HOST, World, beside, build_order, fence, guest_order, wait_until

RUNNING, SHUTDOWN = PowerState.RUNNING, PowerState.SHUTDOWN
LARGER = Flavor(flavorid="2", name="m1.small", memory_mb=1024, vcpus=2, root_gb=2)


@pytest.fixture
def other(tmp_path):
    made = World(tmp_path / "other", name="compute2").start()
    yield made
    made.close()


@pytest.fixture
def order(world):
    made = build_order(config_drive=True)
    world.build(made)
    world.driver.hypervisor.write_mark(made.server_uuid, "precious")
    world.driver.calls.clear()
    return made


def grown(order):
    return msgspec.structs.replace(order, flavor=LARGER, disks=(Disk(kind="root", size_gb=2),))


def move_order(order, epoch: int, source=None, **fields) -> MoveOrder:
    return MoveOrder(**{"server_uuid": order.server_uuid, "fence": fence(epoch), "build": order, "source": source,
                        **fields})


def left(world, order, epoch: int = 2):
    outcome = world.one("leave_guests", guest_order(order, epoch, build=order))
    assert outcome.ok, outcome
    return outcome.source


def moved(world, other, order, epoch: int = 2):
    """From one host to another; the guest as it is there."""
    new = grown(order)
    source = left(world, order, epoch)
    assert other.one("fetch_guests", move_order(new, epoch, source)).power_state == SHUTDOWN
    assert other.one("finish_guests", move_order(new, epoch, source)).power_state == RUNNING
    return new


def resized_here(world, order, epoch: int = 2):
    left(world, order, epoch)
    new = grown(order)
    assert world.one("fetch_guests", move_order(new, epoch)).ok
    assert world.one("finish_guests", move_order(new, epoch)).ok
    return new


def marked(world, order) -> str:
    return world.driver.hypervisor.inspect(order.server_uuid).marks["root"]


def calls(world) -> list[str]:
    return [call for call, _ in world.driver.calls]


# --- the way it goes


def test_start_when_a_copy_was_put_aside_then_the_log_names_it_and_it_stays(world, other, order, caplog):
    moved(world, other, order)
    caplog.set_level("INFO")
    world.restart()
    assert f"{order.server_uuid}_resize" in caplog.text
    assert world.driver.cold_moves.kept_sources() == {order.server_uuid}


def test_move_when_all_goes_well_then_the_guest_is_there_with_its_data_and_forgotten_here(world, other, order):
    new = moved(world, other, order)
    assert world.driver.guests() == () and world.driver.cold_moves.kept_sources() == {order.server_uuid}
    guest = other.driver.hypervisor.inspect(order.server_uuid)
    assert guest.marks["root"] == "precious" and guest.memory_mb == 1024 and guest.disk_gb == 2 and guest.config_drive
    assert world.one("forget_guests", guest_order(order, 3)).ok
    assert world.leftovers() == [] and other.driver.lifecycle.power_state(new.server_uuid) == RUNNING


def test_move_when_reverted_then_the_guest_is_back_as_it_was(world, other, order):
    moved(world, other, order)
    other.driver.hypervisor.write_mark(order.server_uuid, "changed there")
    assert other.one("destroy_guests", guest_order(order, 3)).ok and other.leftovers() == []
    assert world.one("return_guests", move_order(order, 3)).power_state == RUNNING
    assert marked(world, order) == "precious" and world.driver.cold_moves.kept_sources() == frozenset()
    assert not list((world.state_path / "aside").iterdir())


def test_move_when_the_guest_was_off_then_it_never_boots(world, other, order):
    world.one("stop_guests", guest_order(order, 2))
    boots = world.driver.hypervisor.inspect(order.server_uuid).boots
    source = left(world, order, 3)
    other.one("fetch_guests", move_order(order, 3, source, start=False))
    outcome = other.one("finish_guests", move_order(order, 3, source, start=False))
    assert outcome.power_state == SHUTDOWN == other.driver.lifecycle.power_state(order.server_uuid)
    assert other.driver.hypervisor.inspect(order.server_uuid).boots == boots
    other.one("destroy_guests", guest_order(order, 4))
    assert world.one("return_guests", move_order(order, 4, start=False)).power_state == SHUTDOWN
    assert world.driver.hypervisor.inspect(order.server_uuid).boots == boots


def test_resize_on_the_same_host_when_confirmed_then_the_new_guest_runs_alone(world, order):
    resized_here(world, order)
    assert marked(world, order) == "precious"
    assert world.one("forget_guests", guest_order(order, 3)).power_state == RUNNING
    assert world.driver.hypervisor.inspect(order.server_uuid).disk_gb == 2
    assert world.driver.cold_moves.kept_sources() == frozenset()


def test_resize_on_the_same_host_when_reverted_then_the_old_guest_runs_with_its_old_data(world, order):
    resized_here(world, order)
    world.driver.hypervisor.write_mark(order.server_uuid, "changed")
    assert world.one("return_guests", move_order(order, 3)).power_state == RUNNING
    guest = world.driver.hypervisor.inspect(order.server_uuid)
    assert guest.marks["root"] == "precious" and (guest.memory_mb, guest.disk_gb) == (512, 1)
    assert world.driver.cold_moves.kept_sources() == frozenset()


def test_resize_on_the_same_host_when_deleted_before_confirmation_then_nothing_is_left(world, order):
    resized_here(world, order)
    assert world.one("destroy_guests", guest_order(order, 3)).ok and world.leftovers() == []


def test_resize_when_tried_again_on_the_same_host_in_the_same_epoch_then_it_leaves_again(world, order):
    left(world, order)
    assert world.one("return_guests", move_order(order, 2)).power_state == RUNNING
    resized_here(world, order)
    assert world.driver.cold_moves.kept_sources() == {order.server_uuid}
    assert calls(world).count("leave") == 2
    assert world.one("return_guests", move_order(order, 2)).power_state == RUNNING
    assert marked(world, order) == "precious" and world.driver.hypervisor.inspect(order.server_uuid).disk_gb == 1


# --- leaving


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", ["shut_down", "unplug", "leave"])
def test_leave_when_it_fails_then_the_guest_runs_on_or_can_be_taken_back(world, order, call, when):
    world.driver.knobs.fail_next(call, when=when)
    assert not world.one("leave_guests", guest_order(order, 2, build=order)).ok
    assert world.one("return_guests", move_order(order, 2)).power_state == RUNNING
    assert marked(world, order) == "precious" and world.driver.cold_moves.kept_sources() == frozenset()


@pytest.mark.parametrize("call", ["shut_down", "unplug", "leave"])
def test_leave_when_it_fails_before_the_guest_is_aside_then_it_is_started_again_at_once(world, order, call):
    world.driver.knobs.fail_next(call)
    world.one("leave_guests", guest_order(order, 2, build=order))
    assert world.driver.lifecycle.power_state(order.server_uuid) == RUNNING
    assert world.driver.hypervisor.inspect(order.server_uuid).taps and not list((world.state_path / "aside").iterdir())


@pytest.mark.parametrize("away", [True, False])
@pytest.mark.parametrize("call", ["leave_guests", "return_guests", "forget_guests", "finish_guests"])
def test_order_when_permission_is_not_to_be_had_then_nothing_changes(world, order, call, away):
    if call != "leave_guests":
        left(world, order)
    if call == "finish_guests":
        world.one("fetch_guests", move_order(order, 2))
    world.driver.calls.clear()
    world.conductor.away = away
    world.conductor.overtaken.add(order.server_uuid)
    made = move_order(order, 3) if call in ("return_guests", "finish_guests") else guest_order(order, 3, build=order)
    assert world.one(call, made).error_kind == ("host_refused" if away else "overtaken")
    assert calls(world) == []


def test_leave_when_repeated_after_a_restart_then_the_same_is_offered(world, order):
    offered = left(world, order)
    world.restart()
    assert left(world, order, 3) == offered
    assert world.one("leave_guests", guest_order(order, 3, build=order)).source == offered


def test_leave_when_there_is_no_guest_then_not_found_and_no_mark(world):
    outcome = world.one("leave_guests", guest_order(build_order(), 2))
    assert outcome.error_kind == "not_found" and world.leftovers() == []


def test_leave_when_an_older_move_is_still_owed_to_be_forgotten_then_it_is_forgotten_first(world, other, order):
    new = moved(world, other, order)
    source = left(other, new, 5)  # and back, while what the first move put aside is still here
    world.one("fetch_guests", move_order(new, 5, source))
    world.one("finish_guests", move_order(new, 5, source))
    world.driver.hypervisor.write_mark(order.server_uuid, "newest")
    left(world, new, 8)
    assert world.driver.hypervisor.inspect_source_copy(order.server_uuid).marks["root"] == "newest"


def test_return_when_only_an_older_moves_disks_are_aside_then_the_guest_that_runs_is_kept(world, other, order, caplog):
    new = moved(world, other, order)
    source = left(other, new, 5)
    world.one("fetch_guests", move_order(new, 5, source))
    world.one("finish_guests", move_order(new, 5, source))
    world.driver.hypervisor.write_mark(order.server_uuid, "newest")
    assert world.one("return_guests", move_order(new, 8)).power_state == RUNNING
    assert marked(world, order) == "newest" and "not restoring the disks" in caplog.text


def test_leave_when_a_delete_comes_then_nothing_is_left(world, order):
    block = world.driver.knobs.block("leave")
    first, one = beside(world.one, "leave_guests", guest_order(order, 2, build=order))
    assert block.reached.wait(5)
    second, two = beside(world.one, "destroy_guests", guest_order(order, 3))
    wait_until(lambda: len(world.service._orders._running[order.server_uuid]) == 2)
    block.release()
    first.join(5)
    second.join(5)
    assert two[0].ok and world.leftovers() == []


def test_fetch_when_a_delete_comes_then_the_copy_breaks_off(world, order, monkeypatch):
    """OSSA-2015-015: copies of large disks went on for hours, one more with each resize and delete."""
    copying = threading.Event()

    def copy(_order, _images):
        copying.set()
        PrivateRunner(60).run(["sleep", "60"])
    monkeypatch.setattr(world.driver.cold_moves, "fetch", copy)
    first, one = beside(world.one, "fetch_guests", move_order(order, 2))
    assert copying.wait(5)
    began = time.monotonic()
    assert world.one("destroy_guests", guest_order(order, 3)).ok
    first.join(5)
    assert one[0].error_kind == "overtaken" and time.monotonic() - began < 10 and world.leftovers() == []


# --- taking back


def test_return_when_nothing_was_put_aside_then_the_guest_runs_on(world, order):
    assert world.one("return_guests", move_order(order, 2)).power_state == RUNNING
    assert "start_new" not in calls(world)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", ["destroy", "unplug", "restore_source", "plug", "start_new"])
def test_return_when_it_fails_then_trying_again_brings_the_guest_back(world, order, call, when):
    resized_here(world, order)
    world.driver.knobs.fail_next(call, when=when)
    assert not world.one("return_guests", move_order(order, 3)).ok
    world.restart()
    assert world.one("return_guests", move_order(order, 4)).power_state == RUNNING
    guest = world.driver.hypervisor.inspect(order.server_uuid)
    assert guest.marks["root"] == "precious" and guest.disk_gb == 1
    assert world.driver.cold_moves.kept_sources() == frozenset()


def test_orders_when_given_before_the_return_of_their_operation_then_they_come_too_late(world, order, clock):
    left(world, order)
    clock.advance(seconds=20)
    soon = clock.now()
    clock.advance(seconds=5)
    later = clock.now()
    returned = move_order(order, 2, fence=fence(2, start_by=later))
    assert world.one("return_guests", returned).ok
    late = world.one("leave_guests", guest_order(order, 2, fence=fence(2, start_by=soon)))
    assert late.error_code == "order.closed" and world.driver.lifecycle.power_state(order.server_uuid) == RUNNING


# --- fetching and finishing


@pytest.mark.parametrize("when", ["before", "after"])
def test_fetch_when_it_fails_then_nothing_is_left_here_and_the_source_has_it_all(world, other, order, when):
    source = left(world, order)
    other.driver.knobs.fail_next("fetch", error="crash", when=when)
    outcome = other.one("fetch_guests", move_order(order, 2, source))
    assert outcome.error_kind == "host_refused"  # another host may do better
    assert other.leftovers() == []
    assert world.one("return_guests", move_order(order, 2)).power_state == RUNNING
    assert marked(world, order) == "precious"


def test_fetch_when_the_disk_would_shrink_then_the_host_refuses(world, other, order):
    source = left(world, order)
    small = msgspec.structs.replace(order, disks=(Disk(kind="root", size_gb=0),))
    assert other.one("fetch_guests", move_order(small, 2, source)).error_kind == "host_refused"
    assert other.leftovers() == []


def test_fetch_when_cut_off_then_the_host_knows_of_it_and_the_next_process_goes_on(world, other, order):
    source = left(world, order)
    other.one("fetch_guests", move_order(order, 2, source))
    assert [path.name for path in (other.state_path / "building").iterdir()] == [order.server_uuid]
    other.restart()
    assert order.server_uuid in other.conductor.have
    other.one("fetch_guests", move_order(order, 3, source))
    assert other.one("finish_guests", move_order(order, 3, source)).ok
    assert not list((other.state_path / "building").iterdir())


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", ["plug", "start_new"])
def test_finish_when_it_fails_then_the_guest_does_not_run_here(world, other, order, call, when):
    source = left(world, order)
    other.one("fetch_guests", move_order(order, 2, source))
    other.driver.knobs.fail_next(call, error="crash", when=when)
    assert other.one("finish_guests", move_order(order, 2, source)).error_kind == "host_refused"
    assert other.driver.lifecycle.power_state(order.server_uuid) is None
    assert other.one("destroy_guests", guest_order(order, 2)).ok and other.leftovers() == []
    assert world.one("return_guests", move_order(order, 2)).power_state == RUNNING


def test_finish_when_repeated_after_a_restart_then_the_guest_runs_on(world, other, order):
    moved(world, other, order)
    boots = other.driver.hypervisor.inspect(order.server_uuid).boots
    other.restart()
    assert other.one("finish_guests", move_order(grown(order), 3)).power_state == RUNNING
    assert other.driver.hypervisor.inspect(order.server_uuid).boots == boots


def test_fetch_when_this_host_was_undone_in_the_same_epoch_then_it_is_closed(world, other, order):
    source = left(world, order)
    other.one("destroy_guests", guest_order(order, 2))
    assert other.one("fetch_guests", move_order(order, 2, source)).error_code == "order.closed"


# --- debts and restarts


def _cleanup(order, step: str, epoch: int, **arguments: str) -> PendingCleanup:
    return PendingCleanup(id=1, host=HOST, server_uuid=order.server_uuid, epoch=epoch, step=step, arguments=arguments)


def test_cleanup_when_a_confirmed_move_is_pending_then_the_source_copy_goes(world, other, order):
    moved(world, other, order)
    world.conductor.cleanups = (_cleanup(order, "forget_guests", 3),)
    world.restart()
    assert world.leftovers() == [] and world.conductor.paid == [1]


def test_cleanup_when_a_later_move_kept_it_then_that_stays(world, order):
    left(world, order, 6)
    world.conductor.cleanups = (_cleanup(order, "forget_guests", 3),)
    world.restart()
    assert world.driver.cold_moves.kept_sources() == {order.server_uuid} and world.conductor.paid == [1]


def test_cleanup_when_a_return_is_pending_then_the_guests_disks_are_its_own_again(world, order):
    left(world, order)
    world.conductor.cleanups = (_cleanup(order, "return_guests", 2),)
    world.restart()
    assert world.driver.cold_moves.kept_sources() == frozenset() and world.conductor.paid == [1]
    assert world.one("start_guests", guest_order(order, 4, build=order)).power_state == RUNNING
    assert marked(world, order) == "precious"


@pytest.mark.parametrize("keep", [True, False])
def test_cleanup_when_an_evacuated_guest_is_pending_then_its_disks_go_unless_they_are_shared(world, order, keep):
    world.conductor.cleanups = (_cleanup(order, "destroy_guests", 2, **({"keep_disks": "1"} if keep else {})),)
    world.restart()
    guest = world.driver.hypervisor.inspect(order.server_uuid)
    assert world.conductor.paid == [1]
    assert (guest.marks, guest.defined, guest.taps) == ({"root": "precious"}, False, []) if keep else guest is None


def test_cleanup_when_the_evacuated_guest_came_back_since_then_nothing_is_taken(world, other, order):
    new = moved(world, other, order)
    source = left(other, new, 5)
    world.one("fetch_guests", move_order(new, 5, source))
    world.one("finish_guests", move_order(new, 5, source))
    world.conductor.cleanups = (_cleanup(order, "destroy_guests", 4),)
    world.restart()
    assert world.driver.lifecycle.power_state(order.server_uuid) == RUNNING and world.conductor.paid == [1]


def _expected(order, **fields) -> ExpectedGuest:
    return ExpectedGuest(**{"server_uuid": order.server_uuid, "instance_name": order.instance_name, "epoch": 9,
                            "vm_state": VmState.ACTIVE.value, **fields})


def test_restart_when_a_guest_is_put_aside_then_it_is_left_to_its_operation_and_is_no_stranger(world, order, caplog):
    left(world, order)
    world.restart()
    assert world.driver.cold_moves.kept_sources() == {order.server_uuid} and "no record says" not in caplog.text


def test_restart_when_a_guest_put_aside_was_deleted_then_it_is_removed(world, order):
    left(world, order)
    world.conductor.expected = (_expected(order, gone=True),)
    world.restart()
    assert world.leftovers() == []


def test_restart_when_a_move_is_half_done_then_nothing_is_started(make_world, order, world):
    world.settings["resume_guests_state_on_host_boot"] = True
    left(world, order)
    world.conductor.expected = (_expected(order, task_state="resize_migrating", power_state=RUNNING),)
    world.restart()
    assert not {"start", "start_new"} & set(calls(world))


@pytest.mark.parametrize(("state", "vm_state", "starts"), [
    (SHUTDOWN, VmState.ACTIVE, True), (PowerState.PAUSED, VmState.ACTIVE, False),
    (PowerState.SUSPENDED, VmState.SUSPENDED, False), (SHUTDOWN, VmState.PAUSED, False)])
def test_restart_when_guests_shall_run_again_then_those_that_are_off_and_active_do(world, order, state, vm_state,
                                                                                    starts):
    world.settings["resume_guests_state_on_host_boot"] = True
    world.driver.hypervisor.change_power(order.server_uuid, state)
    world.conductor.expected = (_expected(order, vm_state=vm_state.value, power_state=RUNNING),)
    world.restart()
    assert ("start" in calls(world)) is starts
