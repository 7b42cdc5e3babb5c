"""What of this host's guests' networks is said to it beside orders: interfaces plugged in and out, rules, events."""

from __future__ import annotations

from nova import errors
from nova.model.base import HostName
from nova.model.orders import InterfaceOrder, NetworkEvent, Outcome


class GuestNetworks:
    """A part of the service; base of ``ComputeService``, which sets the attributes."""

    def attach_interfaces(self, host: HostName, orders: tuple[InterfaceOrder, ...]) -> tuple[Outcome, ...]:
        raise errors.NotSupported("interfaces can not be attached yet")

    def detach_interfaces(self, host: HostName, orders: tuple[InterfaceOrder, ...]) -> tuple[Outcome, ...]:
        raise errors.NotSupported("interfaces can not be detached yet")

    def refresh_firewall(self, host: HostName) -> None:
        """Nothing is filtered yet."""

    def network_events(self, host: HostName, events: tuple[NetworkEvent, ...]) -> None:
        """Nobody waits yet."""
