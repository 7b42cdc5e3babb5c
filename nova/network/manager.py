"""The ways to build networks on a host, by the name that ``network_manager`` has in nova.conf.

A manager says what lies under a network's addresses; DHCP, address translation and leases are the same for all
that have them. VlanManager (devices and bridges made for each VLAN) and FlatManager (nothing made at all) fit in here.
"""

from __future__ import annotations

from typing import Protocol

from nova.errors import NotSupported
from nova.model.networks import Network
from nova.network.gateway import Gateway, Links
from nova.network.options import NetworkOptions


class ManagerNotSupported(NotSupported):
    code = "network.manager"
    message = ("nova.conf, [DEFAULT]network_manager = {name}: {reason}. Use "
               "nova.network.manager.FlatDHCPManager, the default.")


class Manager(Protocol):
    """Makes what a network's guests are plugged into."""

    def __init__(self, options: NetworkOptions, links: Links, gateway: Gateway) -> None: ...

    def ensure_link(self, network: Network) -> None:
        """The network's bridge, with this host's address for it. Repeating it is harmless."""


class FlatDHCPManager:
    """One bridge a network, shared by all projects; this host is its gateway and DHCP server."""

    def __init__(self, options: NetworkOptions, links: Links, gateway: Gateway) -> None:
        self._options, self._links, self._gateway = options, links, gateway

    def ensure_link(self, network: Network) -> None:
        bridge = network.bridge or ""
        self._links.ensure_bridge(bridge, None, network.mtu)
        if network.enable_dhcp:
            self._gateway.ensure(network)  # before an interface brings its own addresses: ours shall be the first
        interface = network.bridge_interface or self._options.flat_interface
        if interface:
            self._links.enslave(bridge, interface)


_LATER = ("VlanManager", "FlatManager")


def load(name: str) -> type[Manager]:
    """The manager of that class path. ManagerNotSupported says what to write instead."""
    if name == "nova.network.manager.FlatDHCPManager":
        return FlatDHCPManager
    known = name in {f"nova.network.manager.{later}" for later in _LATER}
    raise ManagerNotSupported(name=name, reason="it comes with a later release" if known else "there is no such class")
