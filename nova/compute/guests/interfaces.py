"""Interfaces that are plugged into guests, and taken out of them, while they live."""

from __future__ import annotations

from typing import Any

from nova.compute.abilities import able
from nova.compute.guests.build import Tools
from nova.compute.orders.orders import Work
from nova.compute.orders.permission import Gate
from nova.model.orders import InterfaceOrder
from nova.model.states import PowerState
from nova.virt.interface import HotPlug

CAN = "change the interfaces of guests that live"


class Plugging:
    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def attach(self, order: InterfaceOrder, work: Work, gate: Gate) -> PowerState:
        driver = self._able()
        gate.pass_(order.server_uuid)
        work.check()
        state: PowerState = driver.attach_interface(order)
        return state

    def detach(self, order: InterfaceOrder, work: Work, gate: Gate) -> PowerState:
        driver = self._able()
        gate.pass_(order.server_uuid)
        work.check()
        state: PowerState = driver.detach_interface(order, lambda: work.stopped_error() is not None)
        return state

    def _able(self) -> Any:
        return able(self._tools.driver, HotPlug, self._tools.host, CAN)
