"""Orders for one network host."""

from __future__ import annotations

from nova.model.base import HostName
from nova.model.network.networks import NetworkOnHost
from nova.rpc.interface import Contract, Timeout, call


class NetworkRPC(Contract):
    """Complete states, not deltas: a network is always sent whole, with a stamp; an older one has no effect."""

    topic, version, addressed_by = "network", "1.1", "host"
    with_hosts = True

    @call(timeout=Timeout.NORMAL)
    def serve_networks(self, host: HostName, networks: tuple[NetworkOnHost, ...]) -> None:
        """Configure bridge, gateway, DHCP and NAT for the networks. Returns after dnsmasq has read the addresses."""

    @call(timeout=Timeout.NORMAL, since="1.1")
    def refresh_networks(self, host: HostName) -> None:
        """Fetch all networks of this host, serve them, and remove the remains of networks that it no longer serves."""

    @call(timeout=Timeout.SHORT, since="1.1")
    def check_floating_interface(self, host: HostName, interface: str | None) -> None:
        """Check that a floating address can be configured on that device (None: the host's public_interface). Raises
        Invalid if the device does not exist."""

    @call(timeout=Timeout.SHORT)
    def ping(self, host: HostName) -> str:
        """Test the connection over the bus. Returns the host's own name."""
