"""Orders for one network host."""

from __future__ import annotations

from nova.model.base import HostName
from nova.model.network.networks import NetworkOnHost
from nova.rpc.interface import Contract, Timeout, call


class NetworkRPC(Contract):
    """States, not deltas: a network is sent whole, stamped, and an older one changes nothing."""

    topic, version, addressed_by = "network", "1.1", "host"
    with_hosts = True

    @call(timeout=Timeout.NORMAL)
    def serve_networks(self, host: HostName, networks: tuple[NetworkOnHost, ...]) -> None:
        """Make bridge, gateway, DHCP and NAT as the networks say; done when dnsmasq knows the addresses."""

    @call(timeout=Timeout.NORMAL, since="1.1")
    def refresh_networks(self, host: HostName) -> None:
        """Ask for all of this host's networks, serve them, and end what is here of others: some are its no more."""

    @call(timeout=Timeout.SHORT, since="1.1")
    def check_floating_interface(self, host: HostName, interface: str | None) -> None:
        """Whether a floating address can stand on that device (None: the host's public_interface). Invalid: there is
        none."""

    @call(timeout=Timeout.SHORT)
    def ping(self, host: HostName) -> str:
        """A round trip over the bus; the answer is the host's own name."""
