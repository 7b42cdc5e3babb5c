"""What happens to a guest on its host beside power, order by order."""

from __future__ import annotations

import logging

import msgspec
import pytest

from nova import errors
from nova.model.guest.orders import Disk, PasswordOrder, RebuildOrder, RescueOrder
from nova.model.image.images import Image
from nova.model.server.states import PowerState
from tests.fakes.compute import beside, build_order, fence, guest_order, wait_until

RUNNING, PAUSED, SHUTDOWN, SUSPENDED = (PowerState.RUNNING, PowerState.PAUSED, PowerState.SHUTDOWN,
                                        PowerState.SUSPENDED)
DISKS = (Disk(kind="root", size_gb=1), Disk(kind="ephemeral", size_gb=1), Disk(kind="swap", size_mb=64))
RESCUE_IMAGE = Image(id="rescue-image")


def rescue_order(order, epoch: int, **fields) -> RescueOrder:
    return RescueOrder(server_uuid=order.server_uuid, instance_name=order.instance_name, fence=fence(epoch),
                       image=RESCUE_IMAGE, build=order, **fields)


def rebuild_order(order, epoch: int, **fields) -> RebuildOrder:
    return RebuildOrder(**{"server_uuid": order.server_uuid, "fence": fence(epoch), "build": order, **fields})


def password_order(order, epoch: int, password: str = "n3w-s3cret") -> PasswordOrder:
    return PasswordOrder(server_uuid=order.server_uuid, instance_name=order.instance_name, fence=fence(epoch),
                         password=password)


@pytest.fixture
def order(world):
    made = build_order(disks=DISKS, config_drive=True)
    assert world.build(made)[0].ok
    world.driver.hypervisor.write_mark(made.server_uuid, "mine")
    world.driver.hypervisor.write_mark(made.server_uuid, "kept", "ephemeral")
    world.driver.calls.clear()
    world.conductor.forget()
    return made


def inspect(world, order):
    return world.driver.hypervisor.inspect(order.server_uuid)


# --- each order once: what it leads to, from where

ORDERS = {
    "pause_guests": ((), "pause", PAUSED),
    "unpause_guests": (("pause_guests",), "unpause", RUNNING),
    "suspend_guests": ((), "suspend", SUSPENDED),
    "resume_guests": (("suspend_guests",), "resume", RUNNING),
    "rescue_guests": ((), "rescue", RUNNING),
    "unrescue_guests": (("rescue_guests",), "unrescue", RUNNING),
    "rebuild_guests": ((), "start_new", RUNNING),
    "set_passwords": ((), "set_password", RUNNING),
    "crash_guests": ((), "crash", RUNNING),
}
SPECIAL = {"rescue_guests": rescue_order, "rebuild_guests": rebuild_order, "set_passwords": password_order}
GATED = ("unpause_guests", "resume_guests", "rescue_guests", "unrescue_guests", "rebuild_guests", "crash_guests")


def made_for(call, order, epoch):
    make = SPECIAL.get(call)
    return make(order, epoch) if make else guest_order(order, epoch, build=order)


def brought_to(world, order, call) -> int:
    """The state that the call is for; the next epoch."""
    for number, before in enumerate(ORDERS[call][0]):
        assert world.one(before, made_for(before, order, 2 + number)).ok
    return 2 + len(ORDERS[call][0])


@pytest.mark.parametrize("call", ORDERS)
def test_order_when_given_then_the_guest_is_as_it_says_and_asked_again_nothing_is_done_twice(world, order, call):
    epoch = brought_to(world, order, call)
    _before, driver_call, state = ORDERS[call]
    outcome = world.one(call, made_for(call, order, epoch))
    assert outcome.ok and outcome.power_state == state == world.driver.lifecycle.power_state(order.server_uuid)
    assert world.one(call, made_for(call, order, epoch)) == outcome
    assert [name for name, _ in world.driver.calls].count(driver_call) == 1


@pytest.mark.parametrize("call", ORDERS)
def test_order_when_repeated_in_the_operations_next_epoch_then_the_guest_is_the_same(world, order, call):
    epoch = brought_to(world, order, call)
    assert world.one(call, made_for(call, order, epoch)).ok
    again = world.one(call, made_for(call, order, epoch + 1))
    assert again.ok and again.power_state == ORDERS[call][2]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", ORDERS)
def test_order_when_the_driver_fails_then_the_outcome_says_so_and_trying_again_works(world, order, call, when):
    epoch = brought_to(world, order, call)
    world.driver.knobs.fail_next(ORDERS[call][1], error="crash", when=when)
    outcome = world.one(call, made_for(call, order, epoch))
    assert outcome.error_kind == "bug" and "RuntimeError" in outcome.error_message
    assert world.one(call, made_for(call, order, epoch + 1)).ok
    assert world.driver.lifecycle.power_state(order.server_uuid) == ORDERS[call][2]


@pytest.mark.parametrize("away", [True, False])
@pytest.mark.parametrize("call", GATED)
def test_order_when_permission_is_not_to_be_had_then_the_guest_is_as_it_was(world, order, call, away):
    epoch = brought_to(world, order, call)
    before = msgspec.json.encode(inspect(world, order))
    world.conductor.away = away
    world.conductor.overtaken.add(order.server_uuid)
    outcome = world.one(call, made_for(call, order, epoch))
    assert outcome.error_kind == ("host_refused" if away else "overtaken")
    assert msgspec.json.encode(inspect(world, order)) == before


@pytest.mark.parametrize("call", ORDERS)
def test_order_when_a_newer_one_waits_then_it_ends_as_overtaken_or_is_done_before_it(world, order, call):
    epoch = brought_to(world, order, call)
    block = world.driver.knobs.block(ORDERS[call][1])
    first, one = beside(world.one, call, made_for(call, order, epoch))
    assert block.reached.wait(5)
    second, two = beside(world.one, "destroy_guests", guest_order(order, epoch + 1))
    wait_until(lambda: len(world.service._orders._running[order.server_uuid]) == 2)
    block.release()
    first.join(5)
    second.join(5)
    assert one[0].ok or one[0].error_kind == "overtaken"
    assert two[0].ok and world.leftovers() == []


@pytest.mark.parametrize(("call", "needs"), [
    ("pause_guests", "pausing"), ("suspend_guests", "suspending"), ("rescue_guests", "rescuing"),
    ("set_passwords", "agent"), ("crash_guests", "crash_dumps"), ("snapshot_guests", "snapshots"),
    ("leave_guests", "cold_moves"), ("describe_guests", "live_moves")])
def test_order_when_the_driver_cannot_then_the_host_and_what_it_cannot_are_named(make_world, call, needs):
    world = make_world()
    setattr(world.driver, needs, None)
    world.service = world.new_service()
    world.start()
    order = build_order()
    world.build(order)
    outcome = world.one(call, made_for(call, order, 2))
    assert outcome.error_kind == "not_supported"
    assert "host compute1 cannot " in outcome.error_message
    assert world.one("destroy_guests", guest_order(order, 3)).ok and world.leftovers() == []


# --- pause, suspend


def test_suspend_and_resume_when_done_then_it_is_the_same_boot(world, order):
    boots = inspect(world, order).boots
    world.one("suspend_guests", guest_order(order, 2))
    world.one("resume_guests", guest_order(order, 3, build=order))
    assert inspect(world, order).boots == boots
    world.one("reboot_guests", guest_order(order, 4, build=order, reboot="hard"))
    assert inspect(world, order).boots == boots + 1


def test_resume_when_the_order_has_no_definition_then_invalid(world, order):
    world.one("suspend_guests", guest_order(order, 2))
    assert world.one("resume_guests", guest_order(order, 3)).error_kind == "invalid"


def test_unpause_when_the_host_went_down_meanwhile_then_the_guest_is_started(world, order):
    world.one("pause_guests", guest_order(order, 2))
    world.driver.hypervisor.change_power(order.server_uuid, SHUTDOWN)
    outcome = world.one("unpause_guests", guest_order(order, 3, build=order))
    assert outcome.ok and world.driver.lifecycle.power_state(order.server_uuid) == RUNNING


def test_pause_when_the_guest_is_off_then_conflict(world, order):
    world.one("stop_guests", guest_order(order, 2))
    assert world.one("pause_guests", guest_order(order, 3)).error_kind == "conflict"


# --- rescue


def test_rescue_when_done_then_the_rescue_system_has_a_config_drive_with_its_password(world, order):
    world.one("rescue_guests", rescue_order(order, 2, admin_password="r3scue"))
    guest = inspect(world, order)
    assert guest.rescue_image == RESCUE_IMAGE.id and guest.marks["root"] == "mine"
    assert any(b"r3scue" in content for content in guest.rescue_drive.values())
    world.one("unrescue_guests", guest_order(order, 3, build=order))
    guest = inspect(world, order)
    assert guest.rescue_image == "" and guest.rescue_drive == {} and guest.marks["root"] == "mine"


@pytest.mark.parametrize("state", [RUNNING, SHUTDOWN])
@pytest.mark.parametrize("call", ["shut_down", "plug", "rescue"])
def test_rescue_when_it_fails_then_a_guest_that_ran_runs_from_its_own_disk(world, order, call, state):
    if state == SHUTDOWN:
        world.one("stop_guests", guest_order(order, 2))
    world.driver.knobs.fail_next(call)
    assert not world.one("rescue_guests", rescue_order(order, 3)).ok
    assert world.driver.lifecycle.power_state(order.server_uuid) == state and inspect(world, order).rescue_image == ""


def test_rescue_then_its_image_may_be_as_large_as_the_guests_own_disk_and_no_larger(make_world, monkeypatch):
    asked = {}

    class Images:
        sweep_interval_s = -1.0

        def open(self): ...

        def fetch(self, image, max_gb=None):
            asked[image.id] = max_gb
            raise errors.image.TooBig(image_id=image.id, needs_gb=9, root_gb=max_gb)
    world = make_world(images=Images()).start()
    order = build_order(disks=DISKS)
    world.build(order)
    monkeypatch.setattr(type(world.driver), "needs_images", True)
    assert world.one("rescue_guests", rescue_order(order, 2)).error_code == errors.image.TooBig.code
    assert asked == {RESCUE_IMAGE.id: 1}


def test_rescue_when_its_image_is_not_to_be_had_then_the_guest_is_not_stopped(make_world, monkeypatch):
    class NoImages:
        sweep_interval_s = -1.0

        def open(self): ...

        def fetch(self, image, max_gb=None):
            raise ValueError("no image today")
    world = make_world(images=NoImages()).start()
    order = build_order()
    world.build(order)
    monkeypatch.setattr(type(world.driver), "needs_images", True)
    world.driver.calls.clear()
    assert not world.one("rescue_guests", rescue_order(order, 2)).ok
    assert not world.driver.calls


# --- rebuild


@pytest.mark.parametrize("keep_ephemeral", [True, False])
def test_rebuild_when_done_then_the_root_disk_is_new_and_ephemeral_disks_as_ordered(world, order, keep_ephemeral):
    new = msgspec.structs.replace(order, metadata={"role": "rebuilt"})
    outcome = world.one("rebuild_guests", rebuild_order(new, 2, keep_ephemeral=keep_ephemeral))
    guest = inspect(world, order)
    assert outcome.power_state == RUNNING
    assert guest.marks == ({"ephemeral": "kept"} if keep_ephemeral else {})
    assert any(b"rebuilt" in content for content in guest.config_drive.values())


def test_rebuild_when_it_shall_stay_off_then_it_never_boots(world, order):
    boots = inspect(world, order).boots
    outcome = world.one("rebuild_guests", rebuild_order(order, 2, start=False))
    guest = inspect(world, order)
    assert outcome.power_state == SHUTDOWN and guest.boots == boots and guest.defined
    assert world.one("start_guests", guest_order(order, 3)).power_state == RUNNING


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", ["remove_disks", "create_disks", "plug", "write_config_drive", "start_new"])
def test_rebuild_when_it_fails_midway_then_nothing_runs_and_destroy_clears_up(world, order, call, when):
    world.driver.knobs.fail_next(call, when=when)
    assert not world.one("rebuild_guests", rebuild_order(order, 2)).ok
    assert world.driver.lifecycle.power_state(order.server_uuid) is None
    assert world.one("destroy_guests", guest_order(order, 3)).ok and world.leftovers() == []


def test_rebuild_when_killed_midway_then_the_next_process_builds_it_on(world, order):
    world.driver.knobs.fail_next("create_disks")
    world.driver.knobs.fail_next("destroy", when="after")
    world.one("rebuild_guests", rebuild_order(order, 2))
    world.restart()
    assert world.one("rebuild_guests", rebuild_order(order, 3)).power_state == RUNNING
    assert not list((world.state_path / "building").iterdir())


def test_rebuild_when_its_disks_should_be_shared_and_are_not_then_the_host_refuses(world):
    order = build_order()
    outcome = world.one("rebuild_guests", rebuild_order(order, 2, keep_disks=True))
    assert outcome.error_kind == "host_refused" and outcome.error_code == "guest.no_shared_disks"
    assert world.leftovers() == []


def test_rebuild_when_its_disks_are_shared_then_they_are_used_as_they_are(world, order):
    world.driver.lifecycle.destroy(order.server_uuid)
    assert world.one("rebuild_guests", rebuild_order(order, 2, keep_disks=True)).power_state == RUNNING
    assert inspect(world, order).marks == {"root": "mine", "ephemeral": "kept"}


@pytest.mark.parametrize("shared", [True, False])
def test_rebuild_when_the_host_shall_find_out_whether_disks_are_shared_then_it_says_so_every_time(world, shared):
    order = build_order()
    if shared:
        world.driver.disks.create_disks(order, None)
        world.driver.hypervisor.write_mark(order.server_uuid, "precious")
    first = world.one("rebuild_guests", rebuild_order(order, 2, keep_disks=None, fence=fence(2, 9)))
    assert first.power_state == RUNNING and first.arrival.shared is shared
    assert inspect(world, order).marks == ({"root": "precious"} if shared else {})
    boots = inspect(world, order).boots
    world.restart()
    again = world.one("rebuild_guests", rebuild_order(order, 3, keep_disks=None, fence=fence(3, 9)))
    assert again == first and inspect(world, order).boots == boots
    assert world.one("destroy_guests", guest_order(order, 4)).ok and world.leftovers() == []


@pytest.mark.parametrize("call", ["create_disks", "start_new"])
def test_rebuild_when_it_was_cut_off_then_its_own_disks_are_not_taken_for_shared_ones(world, call):
    order = build_order()
    world.driver.knobs.fail_next(call, when="after")
    assert not world.one("rebuild_guests", rebuild_order(order, 2, keep_disks=None, fence=fence(2, 9))).ok
    world.restart()
    again = world.one("rebuild_guests", rebuild_order(order, 3, keep_disks=None, fence=fence(3, 9)))
    assert again.ok and again.arrival.shared is False


def test_destroy_when_an_evacuation_was_given_up_then_the_disks_that_were_made_for_it_go(world):
    order = build_order()
    world.driver.knobs.fail_next("start_new")
    world.one("rebuild_guests", rebuild_order(order, 2, keep_disks=None))
    assert world.one("destroy_guests", guest_order(order, 2, keep_disks=True)).ok and world.leftovers() == []


@pytest.mark.parametrize("said", [None, True, False])
def test_evacuation_when_the_disks_are_in_a_pool_then_they_are_used_and_stay_when_it_is_undone(world, said):
    order = build_order()
    world.driver.disks.in_pool = True
    world.driver.knobs.fail_next("start_new")
    assert not world.one("rebuild_guests", rebuild_order(order, 2, keep_disks=said, fence=fence(2, 9))).ok
    outcome = world.one("rebuild_guests", rebuild_order(order, 3, keep_disks=said, fence=fence(3, 9)))
    assert outcome.power_state == RUNNING and ("remove_disks", order.server_uuid) not in world.driver.calls
    assert outcome.arrival is not None and outcome.arrival.shared
    again = world.one("rebuild_guests", rebuild_order(order, 4, keep_disks=None, fence=fence(4, 9)))
    assert again.arrival == outcome.arrival
    assert world.one("destroy_guests", guest_order(order, 5, keep_disks=said is not False, fence=fence(5, 9))).ok
    assert inspect(world, order).disks


def test_rebuild_in_place_when_the_disks_are_in_a_pool_then_they_are_made_anew(world, order):
    world.driver.disks.in_pool = True
    assert world.one("rebuild_guests", rebuild_order(order, 2)).power_state == RUNNING
    assert ("remove_disks", order.server_uuid) in world.driver.calls


def test_destroy_when_a_rebuild_failed_and_the_server_was_evacuated_then_shared_disks_stay(world, order):
    world.driver.knobs.fail_next("start_new")
    world.one("rebuild_guests", rebuild_order(order, 2))
    assert world.one("destroy_guests", guest_order(order, 3, keep_disks=True)).ok
    assert inspect(world, order).disks


# --- passwords, destroys


def test_password_when_set_then_no_log_and_no_outcome_has_it(world, order, caplog):
    caplog.set_level(logging.DEBUG)
    world.driver.knobs.fail_next("set_password", error="conflict")
    outcome = world.one("set_passwords", password_order(order, 2))
    assert outcome.error_kind == "conflict" and "n3w-s3cret" not in str(outcome)
    assert world.one("set_passwords", password_order(order, 3)).ok
    assert inspect(world, order).passwords == {"root": "n3w-s3cret"} and "n3w-s3cret" not in caplog.text


def test_destroy_when_the_disks_are_another_hosts_too_then_they_stay(world, order):
    assert world.one("destroy_guests", guest_order(order, 2, keep_disks=True)).ok
    guest = inspect(world, order)
    assert not guest.defined and not guest.taps and guest.marks["root"] == "mine"
