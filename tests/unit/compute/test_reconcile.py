"""After any kill: what is here is compared with what should be, and only what a record says is gone goes."""

from __future__ import annotations

import pytest

from nova.model.guest.orders import BuildOrder, ExpectedGuest
from nova.model.network.networks import Interface
from nova.model.network.security_groups import GuestFirewall, HostFirewall
from nova.model.network.security_rules import guarded
from nova.model.server.states import PowerState, VmState
from tests.fakes.compute import HOST, build_order, guest_order


def _expected(order, epoch: int = 1, **fields) -> ExpectedGuest:
    return ExpectedGuest(**({"server_uuid": order.server_uuid, "instance_name": order.instance_name, "epoch": epoch,
                             "vm_state": "active", "power_state": PowerState.RUNNING} | fields))


def _gone(order, epoch: int = 2) -> ExpectedGuest:
    return _expected(order, epoch, vm_state="deleted", gone=True)


def test_start_when_a_record_says_gone_then_it_is_removed_and_nothing_else(world):
    gone, kept, orphan = (build_order(number=number) for number in (1, 2, 3))
    world.build(gone, kept, orphan)
    world.conductor.expected = (_gone(gone), _expected(kept))
    world.restart()
    assert {guest.server_uuid for guest in world.driver.guests()} == {kept.server_uuid, orphan.server_uuid}
    assert set(world.conductor.have) == {order.server_uuid for order in (gone, kept, orphan)}


def test_start_when_a_guest_is_in_no_record_then_it_is_named_in_the_log_and_left(world, caplog):
    order = build_order()
    world.build(order)
    world.restart()
    assert order.server_uuid in caplog.text and "no record says" in caplog.text
    assert world.driver.lifecycle.power_state(order.server_uuid) == PowerState.RUNNING


def test_start_when_nothing_of_a_guest_is_left_then_it_is_reported_off(world, caplog):
    order = build_order()
    world.conductor.expected = (_expected(order),)
    world.restart()
    [guest] = world.conductor.reports[-1].guests
    assert (guest.server_uuid, guest.power_state) == (order.server_uuid, PowerState.SHUTDOWN)
    assert f"guest {order.instance_name} should be on this host but is missing" in caplog.text


def test_start_when_a_gone_guest_came_back_later_then_it_stays(world):
    order = build_order(epoch=5)
    world.build(order)
    world.conductor.expected = (_gone(order, epoch=3),)
    world.restart()
    assert world.driver.lifecycle.power_state(order.server_uuid) == PowerState.RUNNING


def test_start_when_removing_fails_then_the_others_go_on_and_the_sweep_tries_again(world):
    first, second = build_order(number=1), build_order(number=2)
    world.build(first, second)
    world.conductor.expected = (_gone(first), _gone(second))
    world.service.stop(0.0)
    world.driver = world.new_driver()
    world.driver.knobs.fail_next("destroy", name=first.server_uuid)
    world.service = world.new_service()
    world.start()
    assert [guest.server_uuid for guest in world.driver.guests()] == [first.server_uuid]
    assert world.service._reconciler.sweep() == 1
    assert world.leftovers() == []


CUT_AT = ("create_disks", "plug", "write_config_drive", "start_new")


def _kill_during(world, call: str, when: str):
    """What a kill -9 leaves when it comes just before or just after a driver call of a build: steps, no undo."""
    order = build_order(config_drive=True)
    world.driver.knobs.fail_next(call, when=when)
    for undo in ("destroy", "unplug", "remove_disks"):
        world.driver.knobs.fail_next(undo, when="before")
    world.build(order)
    return order


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", CUT_AT)
def test_start_when_a_half_built_guest_is_gone_then_nothing_is_left(world, call, when):
    order = _kill_during(world, call, when)
    world.conductor.expected = (_gone(order),)
    world.restart()
    assert world.leftovers() == []


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", CUT_AT)
def test_start_when_a_half_built_guest_is_still_wanted_then_the_repeated_order_finishes_it(world, call, when):
    order = _kill_during(world, call, when)
    world.conductor.expected = (_expected(order, vm_state="building", task_state="spawning"),)
    world.restart()
    (outcome,) = world.build(order)
    assert outcome.ok and world.driver.lifecycle.power_state(order.server_uuid) == PowerState.RUNNING
    assert not list((world.state_path / "building").iterdir())


def test_start_when_a_half_built_guest_is_in_no_record_then_it_stays_as_it_is(world):
    order = _kill_during(world, "plug", "before")
    world.restart()
    assert world.driver.hypervisor.inspect(order.server_uuid).disks
    assert world.conductor.have == (order.server_uuid,)


def _down(world, **fields):
    """A guest that ran, on a host that was switched off."""
    order = build_order(**fields)
    world.build(order)
    world.driver.hypervisor.change_power(order.server_uuid, PowerState.SHUTDOWN)
    world.conductor.expected = (_expected(order),)
    world.conductor.forget()
    return order


def test_start_when_a_guest_should_run_and_does_not_then_its_state_is_reported(world):
    order = _down(world)
    world.restart()
    report = world.conductor.reports[-1]
    assert report.all_guests
    assert [(guest.server_uuid, guest.power_state, guest.epoch) for guest in report.guests] == [
        (order.server_uuid, PowerState.SHUTDOWN, 1)]


def test_start_when_guests_are_to_be_resumed_then_the_host_asks_and_starts_them(make_world):
    world = make_world(resume_guests_state_on_host_boot=True).start()
    order = _down(world)
    world.conductor.forget()
    world.restart()
    assert world.driver.lifecycle.power_state(order.server_uuid) == PowerState.RUNNING
    assert len(world.conductor.permissions) == 1
    assert world.conductor.reports[-1].guests[0].power_state == PowerState.RUNNING


class Keeping:
    """One guest's order."""

    def __init__(self, order: BuildOrder) -> None:
        self.order = order

    def kept_order(self, server_uuid: str) -> BuildOrder | None:
        return self.order if server_uuid == self.order.server_uuid else None


def test_start_when_guests_are_to_be_resumed_then_what_their_taps_need_is_there_before_they_are(make_world):
    world = make_world(resume_guests_state_on_host_boot=True).start()
    order = _down(world)
    world.service.stop(0.0)
    world.driver = world.new_driver()
    world.driver.kept_orders = Keeping(order)
    world.service = world.new_service()
    world.start()
    calls = [name for name, uuid in world.driver.calls if uuid == order.server_uuid and name in ("plug", "start")]
    assert calls == ["plug", "start"]
    assert world.driver.lifecycle.power_state(order.server_uuid) == PowerState.RUNNING


class Filters:
    """Packet filters that note what is there when, and may be of no use."""

    def __init__(self, calls: list[tuple[str, str]], hole: str) -> None:
        self._calls, self._hole = calls, hole

    def apply(self, state: HostFirewall) -> bool:
        self._calls.extend(("filter", guest.server_uuid) for guest in state.guests)
        return True

    def withdraw(self) -> bool:
        return False

    def lacks(self) -> str:
        return self._hole


@pytest.mark.parametrize("hole, expected", [("", ["filter", "filter", "plug", "start"]),
                                            ("no br_netfilter", ["filter", "filter"])])
def test_start_when_guests_are_to_be_resumed_then_they_are_filtered_before_or_not_started(make_world, hole, expected):
    card = Interface(id="p", mac="fa:16:3e:00:00:01", network_id="n", label="n", device="tap1", bridge="br1")
    world = make_world(resume_guests_state_on_host_boot=True).start()
    order = _down(world, interfaces=(card,))
    world.conductor.given(host_firewall=HostFirewall(host=HOST, guests=(
        GuestFirewall(server_uuid=order.server_uuid, id=1, instance_name="i", interfaces=guarded((card,))),)))
    world.service.stop(0.0)
    world.driver = world.new_driver()
    world.driver.kept_orders = Keeping(order)
    world.filters = Filters(world.driver.calls, hole)
    world.service = world.new_service()
    world.start()
    assert [name for name, uuid in world.driver.calls if uuid == order.server_uuid
            and name in ("filter", "plug", "start")] == expected


@pytest.mark.parametrize("why", ["overtaken", "task", "was off", "fails"])
def test_start_when_a_guest_is_not_to_be_resumed_then_it_stays_down(make_world, why):
    world = make_world(resume_guests_state_on_host_boot=True).start()
    order = _down(world)
    if why == "overtaken":
        world.conductor.overtaken.add(order.server_uuid)
    elif why == "task":
        world.conductor.expected = (_expected(order, task_state="powering-off"),)
    elif why == "was off":
        world.conductor.expected = (_expected(order, power_state=PowerState.SHUTDOWN),)
    else:
        (world.state_path / "fake-knobs.json").write_text('{"rules": [{"call": "start"}]}')
    world.restart()
    assert world.driver.lifecycle.power_state(order.server_uuid) == PowerState.SHUTDOWN


def test_start_when_a_guest_is_missing_altogether_then_the_log_says_so(world, caplog):
    order = build_order()
    world.conductor.expected = (_expected(order),)
    world.restart()
    assert "should be on this host but is missing" in caplog.text


@pytest.mark.parametrize(("action", "left", "state"), [
    ("reap", False, None), ("shutdown", True, PowerState.SHUTDOWN), ("log", True, PowerState.RUNNING),
    ("noop", True, PowerState.RUNNING)])
def test_sweep_when_a_guest_is_gone_then_the_operators_word_decides(make_world, caplog, action, left, state):
    world = make_world(running_deleted_instance_action=action).start()
    order = build_order()
    world.build(order)
    world.conductor.expected = (_gone(order),)
    world.service._reconciler.sweep()
    assert bool(world.leftovers()) is left and world.driver.lifecycle.power_state(order.server_uuid) == state
    assert ("deleted or moved" in caplog.text) is (action != "noop")


@pytest.mark.parametrize("look", ["start", "sweep"])
def test_guest_when_it_is_gone_for_less_than_the_timeout_then_it_is_left_alone(make_world, look):
    world = make_world(running_deleted_instance_timeout=100).start()
    order = build_order()
    world.build(order)
    for gone_s, left in ((99, True), (100, False)):
        world.conductor.expected = (_expected(order, 2, vm_state="deleted", gone=True, gone_s=gone_s),)
        if look == "start":
            world.restart()
        else:
            world.service._reconciler.sweep()
        assert bool(world.leftovers()) is left


def test_sweep_when_an_order_is_in_progress_then_the_guest_is_left_to_it(world):
    order = build_order()
    world.build(order)
    world.conductor.expected = (_gone(order, 9),)
    with world.service._orders.alone(order.server_uuid):
        assert world.service._reconciler.sweep() == 0
    assert world.service.stop_guests(HOST, (guest_order(order, 2),))[0].ok


@pytest.mark.parametrize(("changed", "words"), [
    ("path", "1 guests on this host have no directory in [DEFAULT]instances_path"),
    ("name", "instance-00000001 (now vm-1)"), ("nothing", "")])
def test_start_when_an_option_was_changed_under_a_guest_then_a_line_says_which(make_world, caplog, changed, words):
    world = make_world().start()
    order = build_order()
    world.build(order)
    world.conductor.expected = (ExpectedGuest(
        server_uuid=order.server_uuid, epoch=1, vm_state=VmState.ACTIVE, power_state=PowerState.RUNNING,
        instance_name="vm-1" if changed == "name" else order.instance_name),)
    world.service.stop(0.0)
    world.driver = world.new_driver()
    world.driver.kept_orders = Keeping(build_order() if changed == "path" else order)
    world.service = world.new_service()
    caplog.clear()
    world.start()
    assert words in caplog.text and ("instance" in caplog.text) is (changed != "nothing")
