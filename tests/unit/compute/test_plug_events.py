"""Guests that are held at their start until the network service says that their interfaces are connected."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from nova import errors
from nova.compute.guests.plug_events import KEPT_S, MOST, PlugEvents
from nova.compute.guests.starting import GuestStarter, VifPlugging
from nova.compute.order_table import PREPARE
from nova.compute.orders.orders import Key, Work
from nova.model.guest.orders import GuestOrder, MoveOrder, NetworkEvent, RebuildOrder
from nova.model.network.networks import Interface
from nova.model.server.states import PowerState
from tests.fakes.compute import FakeClock, World, beside, build_order, fence, guest_order, wait_until

RUNNING, PAUSED, SHUTDOWN = PowerState.RUNNING, PowerState.PAUSED, PowerState.SHUTDOWN


def nothing() -> None:
    return


def event(server: str, interface: str = "port", name: str = "network-vif-plugged", status: str = "completed"
          ) -> NetworkEvent:
    return NetworkEvent(server_uuid=server, interface_id=interface, name=name, status=status)


def port(number: int = 1, **fields: Any) -> Interface:
    return Interface(**{"id": f"port{number}", "mac": f"fa:16:3e:00:00:0{number}", "network_id": "net", "label": "net",
                        "type": "ovs", "status": "DOWN", **fields})


def with_ports(*ports: Interface, **fields: Any) -> Any:
    return build_order(interfaces=ports or (port(),), **fields)


def tell(world: Any, order: Any, interface: str = "port1", **fields: str) -> None:
    world.service.network_events(world.host.name, (event(order.server_uuid, interface, **fields),))


# --- the events themselves


def test_wait_when_the_event_came_before_then_it_is_over_at_once_and_the_event_is_used_up(clock):
    events = PlugEvents(clock)
    events.come([event("a"), event("b")])
    events.wait("a", ["port"], 5.0, nothing)
    with pytest.raises(errors.host.VifNotPlugged):
        events.wait("a", ["port"], 0.0, nothing)
    events.wait("b", ["port"], 0.0, nothing)


@pytest.mark.parametrize("change", [
    lambda events, clock: events.come([event("a", name="network-vif-unplugged")]),
    lambda events, clock: events.come([event("a", name="network-vif-deleted")]),
    lambda events, clock: events.forget("a"),
    lambda events, clock: clock.advance(seconds=KEPT_S + 1)])
def test_wait_when_what_was_said_is_old_then_it_does_not_count(clock, change):
    events = PlugEvents(clock)
    events.come([event("a")])
    change(events, clock)
    with pytest.raises(errors.host.VifNotPlugged, match="interface port of guest a"):
        events.wait("a", ["port"], 0.0, nothing)


def test_wait_when_one_of_several_failed_then_it_is_an_error_at_once(clock):
    events = PlugEvents(clock)
    events.come([event("a", "one", status="failed")])
    with pytest.raises(errors.host.VifPlugFailed, match="interface one"):
        events.wait("a", ["two", "one"], 1000.0, nothing)


def test_wait_when_a_newer_order_wants_the_guest_then_it_ends_with_its_error(clock):
    def stop() -> None:
        raise errors.Overtaken
    with pytest.raises(errors.Overtaken):
        PlugEvents(clock).wait("a", ["port"], 1000.0, stop)


def test_events_when_there_are_more_than_fit_then_the_oldest_go(clock):
    events = PlugEvents(clock)
    events.come(event(f"server{number}") for number in range(MOST + 1))
    with pytest.raises(errors.host.VifNotPlugged):
        events.wait("server0", ["port"], 0.0, nothing)
    events.wait("server1", ["port"], 0.0, nothing)


# --- guests that wait


def test_build_when_the_network_is_not_there_yet_then_the_guest_is_held_until_all_of_it_is(world):
    order = with_ports(port(1), port(2), port(3, status="ACTIVE"))
    thread, outcomes = beside(world.build, order)
    wait_until(lambda: world.driver.lifecycle.power_state(order.server_uuid) == PAUSED)
    tell(world, order, "port1")
    assert thread.is_alive() and world.driver.lifecycle.power_state(order.server_uuid) == PAUSED
    tell(world, order, "port2")
    thread.join(5)
    assert outcomes[0][0].power_state == RUNNING == world.driver.lifecycle.power_state(order.server_uuid)


def test_build_when_the_event_is_early_then_nothing_is_waited_for(world):
    order = with_ports()
    tell(world, order)
    [outcome] = world.build(order)
    assert outcome.ok and outcome.power_state == RUNNING


@pytest.mark.parametrize("interface", [port(status=None), port(status="ACTIVE"), port(type="hostdev_physical"),
                                       port(type="unknown")])
def test_build_when_no_agent_connects_the_interface_then_it_starts_at_once(world, interface):
    order = with_ports(interface)
    [outcome] = world.build(order)
    assert outcome.ok and ("start_held", order.server_uuid) not in world.driver.calls


def wait_in_vain(world, clock, outcomes) -> None:
    """Time goes by until the build is over: the guest is there a moment before its wait begins."""
    def over() -> bool:
        clock.advance(seconds=8)
        world.service.network_events(world.host.name, ())
        return bool(outcomes)
    wait_until(over, 20)


def test_build_when_the_wait_is_in_vain_then_it_fails_and_nothing_is_left(make_world):
    clock = FakeClock()
    world = make_world(vif_plugging_timeout=7, clock=clock).start()
    order = with_ports()
    thread, outcomes = beside(world.build, order)
    wait_in_vain(world, clock, outcomes)
    thread.join(5)
    [outcome] = outcomes[0]
    assert (outcome.ok, outcome.error_code) == (False, "host.vif_not_plugged") and "within 7 s" in outcome.error_message
    assert world.leftovers() == []


def test_build_when_a_vain_wait_is_not_fatal_then_the_guest_runs(make_world):
    clock = FakeClock()
    world = make_world(vif_plugging_timeout=7, vif_plugging_is_fatal=False, clock=clock).start()
    order = with_ports()
    thread, outcomes = beside(world.build, order)
    wait_in_vain(world, clock, outcomes)
    thread.join(5)
    assert outcomes[0][0].power_state == RUNNING


@pytest.mark.parametrize("fatal", [True, False])
def test_build_when_the_service_says_it_failed_then_it_fails_whatever_the_options_say(make_world, fatal):
    world = make_world(vif_plugging_is_fatal=fatal).start()
    order = with_ports()
    tell(world, order, status="failed")
    [outcome] = world.build(order)
    assert (outcome.ok, outcome.error_code) == (False, "host.vif_plug_failed") and world.leftovers() == []


def test_build_when_the_time_out_is_nought_then_nothing_is_waited_for(make_world):
    world = make_world(vif_plugging_timeout=0).start()
    [outcome] = world.build(with_ports())
    assert outcome.ok


def test_build_when_a_destroy_overtakes_the_wait_then_it_ends(world):
    order = with_ports()
    thread, outcomes = beside(world.build, order)
    wait_until(lambda: world.driver.lifecycle.power_state(order.server_uuid) == PAUSED)
    gone = world.one("destroy_guests", guest_order(order, 2))
    thread.join(5)
    assert gone.ok and not outcomes[0][0].ok and world.leftovers() == []


def built(world: Any) -> Any:
    """A guest whose interface was connected; the order for it as it is when its host has been rebooted."""
    order = with_ports(port(status="ACTIVE"))
    assert world.build(order)[0].ok
    return with_ports(server_uuid=order.server_uuid, epoch=2)


CALLS = {
    "start": ("stop_guests", "start_guests", lambda order: guest_order(order, 3, build=order)),
    "hard reboot": (None, "reboot_guests", lambda order: guest_order(order, 3, build=order, reboot="hard")),
    "resume": ("suspend_guests", "resume_guests", lambda order: guest_order(order, 3, build=order)),
    "rebuild": (None, "rebuild_guests", lambda order: RebuildOrder(server_uuid=order.server_uuid, fence=fence(3),
                                                                   build=order)),
    "finish": ("leave_guests", "finish_guests", lambda order: MoveOrder(server_uuid=order.server_uuid, fence=fence(3),
                                                                        build=order)),
}


def begin(world: Any, call: str) -> tuple[Any, Any, list[Any]]:
    first, then, make = CALLS[call]
    order = built(world)
    if first is not None:
        assert world.one(first, GuestOrder(server_uuid=order.server_uuid, instance_name="i", fence=fence(2),
                                           timeout_s=0)).ok
    if call == "finish":
        fetch = MoveOrder(server_uuid=order.server_uuid, fence=fence(3), build=order)
        assert world.one("fetch_guests", fetch).ok
    thread, outcomes = beside(world.one, then, make(order))
    wait_until(lambda: world.driver.lifecycle.power_state(order.server_uuid) == PAUSED)
    return order, thread, outcomes


@pytest.mark.parametrize("call", CALLS)
def test_start_of_any_kind_when_the_network_is_not_there_then_the_guest_is_held(world, call):
    order, thread, outcomes = begin(world, call)
    tell(world, order)
    thread.join(5)
    assert outcomes[0].ok and outcomes[0].power_state == RUNNING
    assert world.driver.lifecycle.power_state(order.server_uuid) == RUNNING


@pytest.mark.parametrize(("call", "after"), [("start", SHUTDOWN), ("hard reboot", SHUTDOWN),
                                             ("resume", PowerState.SUSPENDED), ("finish", None)])
def test_start_of_any_kind_when_it_failed_then_the_guest_does_not_run(world, call, after):
    order, thread, outcomes = begin(world, call)
    tell(world, order, status="failed")
    thread.join(5)
    assert outcomes[0].error_code == "host.vif_plug_failed"
    assert world.driver.lifecycle.power_state(order.server_uuid) == after


def test_reboot_when_an_event_of_the_guests_earlier_life_is_left_then_it_does_not_count(world):
    order = built(world)
    tell(world, order)
    thread, outcomes = beside(world.one, "reboot_guests", guest_order(order, 3, build=order, reboot="hard"))
    wait_until(lambda: world.driver.lifecycle.power_state(order.server_uuid) == PAUSED)
    tell(world, order)
    thread.join(5)
    assert outcomes[0].ok


def test_events_when_they_are_for_another_host_then_they_are_refused(world):
    with pytest.raises(errors.HostRefused):
        world.service.network_events("elsewhere", (event("a"),))


@pytest.mark.parametrize("waits", [True, False])
def test_arrival_when_the_service_sees_what_is_plugged_first_then_the_guest_comes_after_that(world, waits):
    order = with_ports(port(status="ACTIVE", details={"ovs_hybrid_plug": True}))
    starter = GuestStarter(world.driver, PlugEvents(FakeClock()), replace(VifPlugging(), timeout_s=300, live=waits))
    work = Work(Key(PREPARE, order.server_uuid, 1, 1))
    if waits:
        starter.events.come([event(order.server_uuid, "port1", status="failed")])
        with pytest.raises(errors.host.VifPlugFailed):
            starter.wait_for_arrival(order, work)
        starter.events.come([event(order.server_uuid, "port1")])
    starter.wait_for_arrival(order, work)
    starter.wait_for_arrival(with_ports(port(status="ACTIVE")), work)  # nothing is seen before the guest is there


def test_arrival_when_its_network_failed_then_the_destination_is_left_as_it_was_by_the_undo(world, tmp_path):
    hybrid = port(status="ACTIVE", details={"ovs_hybrid_plug": True})
    order = with_ports(hybrid)
    there = World(tmp_path / "there", name="compute2").start()
    try:
        assert world.build(order)[0].ok
        source = world.one("describe_guests", guest_order(order, 2)).source
        tell(there, order, status="failed")
        move = MoveOrder(server_uuid=order.server_uuid, fence=fence(2), build=order, source=source)
        failed = there.one("prepare_arrivals", move)
        assert failed.error_code == "host.vif_plug_failed"
        assert there.one("destroy_guests", guest_order(order, 2, build=order, keep_disks=True)).ok
        assert there.leftovers() == [] and world.driver.lifecycle.power_state(order.server_uuid) == RUNNING
    finally:
        there.close()
