"""Fake guests whose interfaces come and go, and that are held at their start.

A guest that does not give up its interface is a rule for ``release_interface`` (``conflict``): it is called where a
real guest would be asked.
"""

from __future__ import annotations

from collections.abc import Callable

from nova.model.orders import BuildOrder, InterfaceOrder
from nova.model.states import PowerState
from nova.virt.fake.base import OFF, knobbed
from nova.virt.fake.life import FakeSuspending
from nova.virt.fake.store import FakeGuest


class FakePlugging(FakeSuspending):
    @knobbed
    def attach_interface(self, order: InterfaceOrder) -> PowerState:
        interface = order.interface
        with self._changed(order.build) as guest:
            if interface.mac not in guest.macs:
                guest.taps = [*guest.taps, interface.device or f"tap{interface.id[:11]}"]
                guest.macs = [*guest.macs, interface.mac]
            return _state(guest)

    @knobbed
    def detach_interface(self, order: InterfaceOrder, stopped: Callable[[], bool]) -> PowerState:
        found = self._store.find(order.server_uuid)
        if found is not None and order.interface.mac in found.macs and found.power_state not in OFF:
            self.release_interface(order)
        with self._changed(order.build) as guest:
            kept = [(tap, mac) for tap, mac in zip(guest.taps, guest.macs, strict=True) if mac != order.interface.mac]
            guest.taps, guest.macs = [tap for tap, _ in kept], [mac for _, mac in kept]
            return _state(guest)

    @knobbed
    def release_interface(self, order: InterfaceOrder) -> None:
        """What the guest is asked; it always does, but for what the knobs say."""

    # --- held

    @knobbed
    def start_held(self, server_uuid: str) -> PowerState:
        state = PowerState(self._defined(server_uuid).power_state)
        if state not in OFF:
            return state
        self._take_time()
        with self._changed(server_uuid) as guest:
            self._boot(guest)
            guest.power_state = PowerState.PAUSED
        return self._told(server_uuid, PowerState.PAUSED)

    @knobbed
    def resume_held(self, order: BuildOrder) -> PowerState:
        state = self._define(order)
        if state not in OFF and state != PowerState.SUSPENDED:
            return state
        with self._changed(order) as guest:
            if guest.saved:
                guest.saved = False
            else:
                self._boot(guest)
            guest.power_state = PowerState.PAUSED
        return self._told(order.server_uuid, PowerState.PAUSED)


def _state(guest: FakeGuest) -> PowerState:
    return PowerState(guest.power_state) if guest.defined else PowerState.NOSTATE
