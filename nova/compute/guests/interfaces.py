"""Interfaces that are plugged into guests, and taken out of them, while they live."""

from __future__ import annotations

from nova.compute.abilities import able
from nova.compute.guests.build import BuildTools
from nova.compute.orders.orders import Work
from nova.compute.orders.permission import BatchGate
from nova.model.guest.orders import InterfaceOrder
from nova.model.server.states import PowerState
from nova.virt.interface import HotPlug


class Plugging:
    def __init__(self, tools: BuildTools) -> None:
        self._tools = tools

    def attach(self, order: InterfaceOrder, work: Work, gate: BatchGate) -> PowerState:
        """NotSupported: this driver cannot. host.OrderNotGranted, host.OrderStopped: a newer order has the server.
        host.OrderCannotAsk: no conductor answers. HostRefused: what failed is unplugged again."""
        hot_plug = self._hot_plug()
        gate.pass_(order.server_uuid)
        work.check()
        return hot_plug.attach_interface(order)

    def detach(self, order: InterfaceOrder, work: Work, gate: BatchGate) -> PowerState:
        """Errors as ``attach``; and Conflict: the guest did not give the interface up in time, and has it still."""
        hot_plug = self._hot_plug()
        gate.pass_(order.server_uuid)
        work.check()
        return hot_plug.detach_interface(order, lambda: work.stopped_error() is not None)

    def _hot_plug(self) -> HotPlug:
        return able(self._tools.driver.hot_plug, self._tools.host, "change the interfaces of guests that live")
