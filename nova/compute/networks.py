"""What of this host's guests' networks is said to it beside orders: interfaces plugged in and out, rules, events."""

from __future__ import annotations

from typing import Any

from nova.compute.filter.firewall import Firewall
from nova.compute.guests.plug_events import PlugEvents
from nova.compute.orders.orders import ATTACH, DETACH
from nova.compute.orders.with_firewall import NoGuard
from nova.model.base import HostName
from nova.model.orders import InterfaceOrder, NetworkEvent, Outcome


class GuestNetworks:
    """A part of the service; base of ``ComputeService``, which sets the attributes."""

    _plug_events: PlugEvents
    _firewall: Firewall | NoGuard

    def _check_host(self, given: HostName) -> None:
        raise NotImplementedError

    def _batch(self, kind: str, host: HostName, orders: tuple[Any, ...]) -> tuple[Outcome, ...]:
        raise NotImplementedError

    def attach_interfaces(self, host: HostName, orders: tuple[InterfaceOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(ATTACH, host, orders)

    def detach_interfaces(self, host: HostName, orders: tuple[InterfaceOrder, ...]) -> tuple[Outcome, ...]:
        return self._batch(DETACH, host, orders)

    def refresh_firewall(self, host: HostName) -> None:
        self._check_host(host)
        self._firewall.refresh()

    def network_events(self, host: HostName, events: tuple[NetworkEvent, ...]) -> None:
        self._check_host(host)
        self._plug_events.come(events)
