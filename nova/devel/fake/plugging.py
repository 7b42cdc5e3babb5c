"""Interfaces of fake guests: plugging, attaching and detaching.

A rule for ``release_interface`` (``conflict``) simulates a guest that does not release its interface: it is called when
a real guest would be asked.
"""

from __future__ import annotations

from collections.abc import Callable

from nova.devel.fake.hypervisor import OFF, Part, knobbed
from nova.devel.fake.store import FakeGuest
from nova.model.guest.orders import BuildOrder, InterfaceOrder
from nova.model.server.states import PowerState


class FakeInterfaces(Part):
    @knobbed
    def plug(self, order: BuildOrder) -> None:
        with self._hypervisor.changed(order) as guest:
            guest.taps = [interface.device or f"tap{interface.id[:11]}" for interface in order.interfaces]
            guest.macs = [interface.mac for interface in order.interfaces]

    @knobbed
    def unplug(self, server_uuid: str, order: BuildOrder | None) -> None:
        with self._hypervisor.changed(server_uuid) as guest:
            guest.taps = guest.macs = []


class FakeHotPlug(Part):
    @knobbed
    def attach_interface(self, order: InterfaceOrder) -> PowerState:
        interface = order.interface
        with self._hypervisor.changed(order.build) as guest:
            if interface.mac not in guest.macs:
                guest.taps = [*guest.taps, interface.device or f"tap{interface.id[:11]}"]
                guest.macs = [*guest.macs, interface.mac]
            return _state(guest)

    @knobbed
    def detach_interface(self, order: InterfaceOrder, stopped: Callable[[], bool]) -> PowerState:
        found = self._hypervisor.store.find(order.server_uuid)
        if found is not None and order.interface.mac in found.macs and found.power_state not in OFF:
            self.release_interface(order)
        with self._hypervisor.changed(order.build) as guest:
            kept = [(tap, mac) for tap, mac in zip(guest.taps, guest.macs, strict=True) if mac != order.interface.mac]
            guest.taps, guest.macs = [tap for tap, _ in kept], [mac for _, mac in kept]
            return _state(guest)

    @knobbed
    def release_interface(self, order: InterfaceOrder) -> None:
        """Ask the guest to release the interface; it always does, unless the knobs say otherwise."""

def _state(guest: FakeGuest) -> PowerState:
    return PowerState(guest.power_state) if guest.defined else PowerState.NOSTATE
