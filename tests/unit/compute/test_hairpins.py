"""Ports of nova-network's bridges that give frames back, after each order that may have made one anew."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nova import errors
from nova.compute.orders.hairpins import devices
from nova.model.guest.orders import InterfaceOrder
from nova.model.network.networks import Interface
from nova.model.server.states import PowerState
from tests.fakes.compute import build_order, fence, guest_order

CARD = Interface(id="one-port", mac="fa:16:3e:00:00:01", network_id="net", label="net", device="tap1", bridge="br100")
EXTRA = msgspec.structs.replace(CARD, id="two-port", mac="fa:16:3e:00:00:02", device="tap2")
NEUTRONS = msgspec.structs.replace(CARD, id="three-port", device="tap3", status="ACTIVE")


@pytest.fixture
def turned() -> list[tuple[str, ...]]:
    return []


@pytest.fixture
def reflecting(make_world: Any, turned: list[tuple[str, ...]]) -> Any:
    made = make_world()
    made.hairpins = lambda taps: turned.append(tuple(taps))
    made.service = made.new_service()
    return made.start()


def test_devices_when_interfaces_are_of_several_services_then_only_nova_networks_taps_are_among_them():
    ovs = msgspec.structs.replace(CARD, type="ovs", device="tap4")
    assert devices((CARD, NEUTRONS, ovs, msgspec.structs.replace(CARD, device=None), EXTRA)) == ("tap1", "tap2")


def test_orders_when_they_may_make_a_tap_anew_then_it_gives_frames_back_after_them(reflecting, turned):
    order = build_order(interfaces=(CARD, NEUTRONS))
    reflecting.build(order)
    assert turned == [("tap1",)]
    reflecting.one("stop_guests", guest_order(order, 2))
    assert len(turned) == 1
    reflecting.one("start_guests", guest_order(order, 3, build=order))
    reflecting.one("reboot_guests", guest_order(order, 4, build=order, reboot="hard"))
    assert turned == [("tap1",)] * 3
    both = msgspec.structs.replace(order, interfaces=(CARD, EXTRA))
    reflecting.one("attach_interfaces", InterfaceOrder(
        server_uuid=order.server_uuid, instance_name=order.instance_name, fence=fence(5), interface=EXTRA, build=both))
    assert turned[3:] == [("tap1", "tap2")]


def test_attach_when_the_guest_is_off_then_there_is_no_tap_to_speak_of(reflecting, turned):
    order = build_order(interfaces=(CARD,))
    reflecting.build(order)
    reflecting.one("stop_guests", guest_order(order, 2))
    del turned[:]
    reflecting.one("attach_interfaces", InterfaceOrder(
        server_uuid=order.server_uuid, instance_name=order.instance_name, fence=fence(3), interface=EXTRA,
        build=msgspec.structs.replace(order, interfaces=(CARD, EXTRA))))
    assert turned == []


def test_build_when_the_kernel_refuses_then_the_guest_runs_all_the_same(make_world, caplog):
    def refuse(taps: Any) -> None:
        raise errors.Unavailable("no")
    world = make_world()
    world.hairpins = refuse
    world.service = world.new_service()
    [outcome] = world.start().build(build_order(interfaces=(CARD,)))
    assert outcome.power_state == PowerState.RUNNING and "floating addresses" in caplog.text
