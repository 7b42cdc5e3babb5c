"""What of this host's guests' networks is said to it beside orders: interfaces plugged in and out, rules, events."""

from __future__ import annotations

from nova.compute.filter.firewall import Firewall
from nova.compute.guests.plug_events import PlugEvents
from nova.compute.orders.with_firewall import NoGuard
from nova.model.base import HostName
from nova.model.orders import NetworkEvent


class GuestNetworks:
    """A part of the service; base of ``ComputeService``, which sets the attributes."""

    _plug_events: PlugEvents
    _firewall: Firewall | NoGuard

    def _check_host(self, given: HostName) -> None:
        raise NotImplementedError

    def refresh_firewall(self, host: HostName) -> None:
        self._check_host(host)
        self._firewall.refresh()

    def network_events(self, host: HostName, events: tuple[NetworkEvent, ...]) -> None:
        self._check_host(host)
        self._plug_events.come(events)
