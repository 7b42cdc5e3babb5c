"""Power states that change by themselves reach the conductor, once, and never over an order's word."""

from __future__ import annotations

import dataclasses
import time
from datetime import timedelta

import msgspec
import pytest

from nova.compute.reports import power_events
from nova.compute.service import ComputeService
from nova.model.guest.orders import START_BY_S
from nova.model.server.states import PowerState
from tests.fakes.compute import HOST, beside, build_order, guest_order, wait_until


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Gathering takes its time on purpose; tests need not."""
    monkeypatch.setattr(power_events, "GATHER_S", 0.02)
    monkeypatch.setattr(power_events, "RETRY_S", 0.02)


def _states(world) -> list[tuple[str, int]]:
    return [(guest.server_uuid, guest.power_state) for report in world.conductor.reports if not report.all_guests
            for guest in report.guests]


def _rest() -> None:
    time.sleep(0.08)  # some gatherings


def test_guest_when_it_goes_down_by_itself_then_that_is_reported_with_its_epoch(world):
    order = build_order(epoch=3)
    world.build(order)
    world.driver.hypervisor.change_power(order.server_uuid, PowerState.SHUTDOWN)
    wait_until(lambda: _states(world))
    assert _states(world) == [(order.server_uuid, PowerState.SHUTDOWN)]
    assert world.conductor.reports[-1].guests[0].epoch == 3


def test_guest_when_the_driver_is_not_listened_to_then_only_the_periodic_report_tells(make_world):
    world = make_world()
    world.service = ComputeService(dataclasses.replace(world.service._parts, listens=False), world.host)
    world.start()
    order = build_order()
    world.build(order)
    world.driver.hypervisor.change_power(order.server_uuid, PowerState.SHUTDOWN)
    _rest()
    assert _states(world) == []
    world.service._events.report_all()
    assert world.conductor.reports[-1].guests[0].power_state == PowerState.SHUTDOWN


def test_guest_when_it_is_undefined_behind_our_back_then_it_is_reported_off_and_named(world, caplog):
    order = build_order(epoch=3)
    world.build(order)
    world.driver.lifecycle.destroy(order.server_uuid)  # virsh destroy, virsh undefine
    wait_until(lambda: _states(world))
    assert _states(world) == [(order.server_uuid, PowerState.SHUTDOWN)]
    assert f"guest {order.server_uuid} is no longer defined in the hypervisor" in caplog.text


def test_guest_when_it_was_undefined_unseen_then_the_periodic_report_and_a_restart_notice(make_world, caplog):
    world = make_world()
    world.service = ComputeService(dataclasses.replace(world.service._parts, listens=False), world.host)
    world.start()
    order = build_order()
    world.build(order)
    world.driver.lifecycle.destroy(order.server_uuid)
    world.service._events.report_all()
    assert [guest.power_state for guest in world.conductor.reports[-1].guests] == [PowerState.SHUTDOWN]
    assert caplog.text.count(order.server_uuid) == 1
    world.service._events.report_all()
    assert caplog.text.count(order.server_uuid) == 1  # once is enough
    world.restart()
    assert [guest.power_state for guest in world.conductor.reports[-1].guests] == [PowerState.SHUTDOWN]


def test_guests_when_many_change_at_once_then_it_is_one_report(world, monkeypatch):
    monkeypatch.setattr(power_events, "GATHER_S", 0.3)
    orders = [build_order(number=number) for number in range(1, 31)]
    world.build(*orders)
    wait_until(lambda: not world.service._events._gathering)
    for order in orders:
        world.driver.hypervisor.change_power(order.server_uuid, PowerState.CRASHED)
    wait_until(lambda: _states(world))
    _rest()
    assert len(_states(world)) == 30 and len(world.conductor.reports) == 2  # the first is the one at start


def test_guest_when_an_order_changes_it_then_only_the_outcome_tells(world):
    order = build_order()
    world.build(order)
    world.service.stop_guests(HOST, (guest_order(order, 2),))
    world.service.start_guests(HOST, (guest_order(order, 3),))
    world.service.reboot_guests(HOST, (guest_order(order, 4, build=order, reboot="hard"),))
    world.service.destroy_guests(HOST, (guest_order(order, 5),))
    _rest()
    assert _states(world) == []


@pytest.mark.parametrize(("queued_s", "reported"), [(0, False), (5, True)])
def test_guest_when_its_order_was_queued_for_a_while_then_its_state_is_reported_too(world, queued_s, reported):
    order = build_order()
    world.build(order)
    stop = guest_order(order, 2)
    start_by = world.host.clock.now() + timedelta(seconds=START_BY_S - queued_s)
    stop = msgspec.structs.replace(stop, fence=msgspec.structs.replace(stop.fence, start_by=start_by))
    [outcome] = world.service.stop_guests(HOST, (stop,))
    assert outcome.ok and outcome.power_state == PowerState.SHUTDOWN
    if reported:
        wait_until(lambda: _states(world))
    _rest()
    assert _states(world) == ([(order.server_uuid, PowerState.SHUTDOWN)] if reported else [])


def test_guest_when_it_falls_right_after_its_order_then_that_is_reported(world):
    order = build_order()
    start_new = world.driver.lifecycle.start_new

    def start_and_fall(*args):
        state = start_new(*args)
        world.driver.hypervisor.change_power(order.server_uuid, PowerState.SHUTDOWN)
        return state
    world.driver.lifecycle.start_new = start_and_fall
    assert world.build(order)[0].power_state == PowerState.RUNNING
    wait_until(lambda: _states(world))
    assert _states(world) == [(order.server_uuid, PowerState.SHUTDOWN)]


def test_guest_when_it_is_up_again_before_the_report_then_nothing_is_told(world, monkeypatch):
    order = build_order()
    world.build(order)
    monkeypatch.setattr(power_events, "GATHER_S", 0.5)  # so that a busy machine has time for both changes within it
    world.driver.hypervisor.change_power(order.server_uuid, PowerState.SHUTDOWN)
    world.driver.hypervisor.change_power(order.server_uuid, PowerState.RUNNING)
    time.sleep(0.7)
    assert _states(world) == []


def test_report_when_the_conductor_is_away_then_it_comes_when_it_is_back(world):
    order = build_order()
    world.build(order)
    world.conductor.away = True
    world.driver.hypervisor.change_power(order.server_uuid, PowerState.SHUTDOWN)
    wait_until(lambda: len(world.conductor.asked("report_power")) > 2)
    world.conductor.away = False
    wait_until(lambda: _states(world))
    _rest()
    assert _states(world) == [(order.server_uuid, PowerState.SHUTDOWN)]


def test_states_when_guests_come_and_go_then_none_is_remembered(world):
    for number in range(5):
        order = build_order(number=number)
        world.build(order)
        world.service.destroy_guests(HOST, (guest_order(order, 2),))
    wait_until(lambda: not world.service._events._reported and not world.service._events._pending)


def test_report_all_when_an_order_is_in_progress_then_its_guest_is_left_out(world):
    settled, changing = build_order(number=1), build_order(number=2)
    world.build(settled, changing)
    block = world.driver.knobs.block("shut_down")
    stop, _ = beside(world.service.stop_guests, HOST, (guest_order(changing, 2),))
    assert block.reached.wait(5)
    world.service._events.report_all()
    block.release()
    stop.join(5)
    report = world.conductor.reports[-1]
    assert [guest.server_uuid for guest in report.guests] == [settled.server_uuid] and report.all_guests
    world.service._events.report_all()
    assert len(world.conductor.reports[-1].guests) == 2 and world.conductor.reports[-1].all_guests


def test_report_all_when_an_order_ended_while_states_were_read_then_its_guest_is_left_out(world):
    order = build_order()
    world.build(order)
    guests = world.driver.guests

    def slow_guests():
        found = guests()
        world.driver.guests = guests
        world.service.stop_guests(HOST, (guest_order(order, 2),))
        return found
    world.driver.guests = slow_guests
    world.conductor.forget()
    world.service._events.report_all()
    assert world.conductor.reports == []
