"""What a fake host is told of its guests' networks beside building them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nova.model.orders import InterfaceOrder, NetworkEvent, Outcome


class GuestNetworks:
    """A part of ``FakeCompute``: interfaces by server, how often its firewall was to be asked for, events."""

    def __init__(self) -> None:
        self.plugged: dict[str, list[str]] = {}  # server -> ids of interfaces plugged in while it lived
        self.refreshed = 0
        self.on_refresh: Callable[[], None] = lambda: None
        self.refuses_refresh: Exception | None = None
        self.events: list[NetworkEvent] = []

    def _do(self, name: str, orders: Any) -> tuple[Outcome, ...]:
        raise NotImplementedError

    def attach_interfaces(self, host: str, orders: tuple[InterfaceOrder, ...]) -> tuple[Outcome, ...]:
        outcomes = self._do("attach", orders)
        for order, outcome in zip(orders, outcomes, strict=True):
            here = self.plugged.setdefault(order.server_uuid, [])
            if outcome.ok and order.interface.id not in here:
                here.append(order.interface.id)
        return outcomes

    def detach_interfaces(self, host: str, orders: tuple[InterfaceOrder, ...]) -> tuple[Outcome, ...]:
        outcomes = self._do("detach", orders)
        for order, outcome in zip(orders, outcomes, strict=True):
            here = self.plugged.setdefault(order.server_uuid, [])
            if outcome.ok and order.interface.id in here:
                here.remove(order.interface.id)
        return outcomes

    def refresh_firewall(self, host: str) -> None:
        self.refreshed += 1
        if self.refuses_refresh is not None:
            raise self.refuses_refresh
        self.on_refresh()

    def network_events(self, host: str, events: tuple[NetworkEvent, ...]) -> None:
        self.events.extend(events)
