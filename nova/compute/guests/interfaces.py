"""Hot-plug of interfaces: attaches them to running guests and detaches them."""

from __future__ import annotations

from nova.compute.abilities import able
from nova.compute.guests.build import BuildTools
from nova.compute.orders.orders import Work
from nova.compute.orders.permission import BatchPermission
from nova.model.guest.orders import InterfaceOrder
from nova.model.server.states import PowerState
from nova.virt.interface import HotPlug


class Plugging:
    def __init__(self, tools: BuildTools) -> None:
        self._tools = tools

    def attach(self, order: InterfaceOrder, work: Work, permission: BatchPermission) -> PowerState:
        """Attach an interface; after a failure, it is unplugged again. Raises NotSupported if this driver cannot;
        host.OrderNotGranted, host.OrderStopped if a newer order has the server; host.OrderCannotAsk if no conductor
        answers; HostRefused if attaching failed."""
        hot_plug = self._hot_plug()
        permission.pass_(order.server_uuid)
        work.check()
        return hot_plug.attach_interface(order)

    def detach(self, order: InterfaceOrder, work: Work, permission: BatchPermission) -> PowerState:
        """Detach an interface. Raises errors as ``attach``; and Conflict if the guest did not release the interface in
        time and still has it."""
        hot_plug = self._hot_plug()
        permission.pass_(order.server_uuid)
        work.check()
        return hot_plug.detach_interface(order, lambda: work.stopped_error() is not None)

    def _hot_plug(self) -> HotPlug:
        return able(self._tools.driver.hot_plug, self._tools.host, "change the interfaces of running guests")
