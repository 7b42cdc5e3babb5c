"""Cases of interfaces that come and go while a guest lives, and of guests that are held at their start.

Parts of :class:`tests.contract.driver_conformance.DriverConformance`.
"""

from __future__ import annotations

import uuid
from typing import Any

import msgspec
import pytest

from nova import errors
from nova.model.guest.orders import BuildOrder, Fence, InterfaceOrder
from nova.model.network.networks import FixedAddress, Interface
from nova.model.server.states import PowerState
from tests.contract.driver_life_cases import ASLEEP, built, need

RUNNING, PAUSED, SHUTDOWN = PowerState.RUNNING, PowerState.PAUSED, PowerState.SHUTDOWN


def another(bridge: str) -> Interface:
    """One more interface on the rig's bridge."""
    vif = str(uuid.uuid4())
    octets = ":".join(f"{byte:02x}" for byte in uuid.uuid4().bytes[:3])
    return Interface(id=vif, mac=f"fa:16:3e:{octets}", network_id=str(uuid.uuid4()), label="second", bridge=bridge,
                     addresses=(FixedAddress(address="10.1.0.2"),), cidr="10.1.0.0/24", should_create_bridge=True)


def plug_order(order: BuildOrder, one: Interface, plugged: bool) -> InterfaceOrder:
    rest = tuple(other for other in order.interfaces if other.id != one.id)
    return InterfaceOrder(server_uuid=order.server_uuid, instance_name=order.instance_name, interface=one,
                          fence=Fence(operation_id=2, epoch=4),
                          build=msgspec.structs.replace(order, interfaces=(*rest, one) if plugged else rest))


def attach(driver: Any, order: BuildOrder, one: Interface) -> PowerState:
    state: PowerState = driver.hot_plug.attach_interface(plug_order(order, one, True))
    return state


def need_consent(rig: Any) -> Any:
    """The driver; skipped where the rig's guests have no system that could give up a device (``gives_up`` False)."""
    if not getattr(rig, "gives_up", True):
        pytest.skip("the rig's guests have no system")
    return need(rig.driver, "hot_plug")


def detach(driver: Any, order: BuildOrder, one: Interface) -> PowerState:
    state: PowerState = driver.hot_plug.detach_interface(plug_order(order, one, False), lambda: False)
    return state


class HotPlugCases:
    @pytest.fixture
    def extra(self, rig: Any) -> Interface:
        return another(rig.bridge)

    def macs(self, driver: Any, order: BuildOrder) -> list[str]:
        return [nic.mac for nic in driver.diagnosis.diagnostics(order.server_uuid).nics]

    def test_interface_plugged_into_a_running_guest_is_there_once_and_stays_over_its_stop(self, rig, order, extra):
        driver = need(rig.driver, "hot_plug")
        server = built(rig, order)
        assert attach(driver, order, extra) == RUNNING == attach(driver, order, extra)
        assert self.macs(driver, order) == [order.interfaces[0].mac, extra.mac]
        driver.lifecycle.shut_down(server, 0)
        assert driver.lifecycle.start(server) == RUNNING
        assert self.macs(driver, order) == [order.interfaces[0].mac, extra.mac]

    def test_interface_taken_out_of_a_running_guest_is_gone_and_stays_so(self, rig, order, extra):
        driver = need_consent(rig)
        server = built(rig, order)
        attach(driver, order, extra)
        assert detach(driver, order, extra) == RUNNING == detach(driver, order, extra)
        assert self.macs(driver, order) == [order.interfaces[0].mac]
        driver.lifecycle.shut_down(server, 0)
        driver.lifecycle.start(server)
        assert self.macs(driver, order) == [order.interfaces[0].mac]

    def test_first_interface_taken_out_leaves_the_second(self, rig, order, extra):
        driver = need_consent(rig)
        built(rig, order)
        attach(driver, order, extra)
        whole = msgspec.structs.replace(order, interfaces=(*order.interfaces, extra))
        detach(driver, whole, order.interfaces[0])
        assert self.macs(driver, order) == [extra.mac]

    def test_interface_of_a_guest_that_is_off_is_there_at_its_next_start(self, rig, order, extra):
        driver = need(rig.driver, "hot_plug")
        server = built(rig, order)
        driver.lifecycle.shut_down(server, 0)
        assert attach(driver, order, extra) == SHUTDOWN == attach(driver, order, extra)
        driver.lifecycle.start(server)
        assert extra.mac in self.macs(driver, order)
        driver.lifecycle.shut_down(server, 0)
        assert detach(driver, order, extra) == SHUTDOWN
        driver.lifecycle.start(server)
        assert self.macs(driver, order) == [order.interfaces[0].mac]

    def test_guest_with_an_interface_that_came_later_unbuilt_leaves_nothing(self, rig, order, extra):
        driver = need(rig.driver, "hot_plug")
        server = built(rig, order)
        attach(driver, order, extra)
        driver.lifecycle.destroy(server)
        driver.interfaces.unplug(server, order)  # which knows nothing of it
        driver.disks.remove_disks(server)
        assert rig.left_over(order) == []

    def test_detach_of_what_never_was_is_harmless(self, rig, order, extra):
        driver = need(rig.driver, "hot_plug")
        built(rig, order)
        assert detach(driver, order, extra) == RUNNING
        assert self.macs(driver, order) == [order.interfaces[0].mac]


class HeldCases:
    def test_held_guest_is_paused_until_it_is_let_go(self, rig, order):
        driver = need(rig.driver, "held_starts")
        server = built(rig, order)
        driver.lifecycle.shut_down(server, 0)
        assert driver.held_starts.start_held(server) == PAUSED == driver.held_starts.start_held(server)
        assert driver.lifecycle.power_state(server) == PAUSED
        assert driver.pausing.unpause(server) == RUNNING == driver.held_starts.start_held(server)

    def test_held_guest_can_be_powered_off_and_unbuilt(self, rig, order):
        driver = need(rig.driver, "held_starts")
        server = built(rig, order)
        driver.lifecycle.shut_down(server, 0)
        driver.held_starts.start_held(server)
        assert driver.lifecycle.shut_down(server, 0) == SHUTDOWN

    def test_held_start_of_no_guest_is_not_found(self, rig):
        with pytest.raises(errors.NotFound):
            need(rig.driver, "held_starts").held_starts.start_held(str(uuid.uuid4()))

    def test_suspended_guest_resumed_held_goes_on_when_it_is_let_go_and_can_be_suspended_again(self, rig, order):
        driver = need(rig.driver, "held_starts")
        need(driver, "suspending")
        server = built(rig, order)
        driver.suspending.suspend(server)
        assert driver.held_starts.resume_held(order) == PAUSED
        assert driver.suspending.suspend(server) in ASLEEP
        assert driver.held_starts.resume_held(order) == PAUSED == driver.held_starts.resume_held(order)
        assert driver.pausing.unpause(server) == RUNNING
