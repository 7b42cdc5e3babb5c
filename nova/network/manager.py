"""Network managers of a host, by the value of ``network_manager`` in nova.conf.

A manager defines the devices under a network's addresses. DHCP, address translation and leases are the same for all
managers that have them. Decisions of managers for the whole cloud are in :mod:`nova.model.network.network_managers`.
"""

from __future__ import annotations

from typing import Protocol

from nova import errors
from nova.model.network import network_managers
from nova.model.network.networks import Network
from nova.network.drivers import InterfaceDriver
from nova.network.gateway import Gateway, HostLinks
from nova.network.options import NetworkHostOptions
from nova.privileged.links import Vlan


class Underlay(Protocol):
    """The devices under the host's address for a network. Each call repeats harmlessly."""

    def interface(self, network: Network) -> str | None:
        """Return the device that connects to guests on other hosts; None if there are none."""

    def made(self, network: Network) -> tuple[str, ...]:
        """Return the devices that :meth:`ensure` creates if they are missing."""

    def ensure(self, network: Network) -> None:
        """Create the device and set it up, if nova manages it."""


class Flat:
    """A physical interface, or none; one bridge for each network, shared by all projects."""

    def __init__(self, options: NetworkHostOptions, links: HostLinks) -> None:
        self._options = options

    def interface(self, network: Network) -> str | None:
        return network.bridge_interface or self._options.flat_interface

    def made(self, network: Network) -> tuple[str, ...]:
        return ()

    def ensure(self, network: Network) -> None:
        """Do nothing: joining a missing interface reports the error."""


class Vlans:
    """A VLAN device on the physical interface, for each project's network."""

    def __init__(self, options: NetworkHostOptions, links: HostLinks) -> None:
        self._options, self._links = options, links
        self._flat = Flat(options, links)

    def interface(self, network: Network) -> str | None:
        return self._flat.interface(network) if network.vlan is None else vlan_device(network.vlan)

    def made(self, network: Network) -> tuple[str, ...]:
        return () if network.vlan is None else (vlan_device(network.vlan),)

    def ensure(self, network: Network) -> None:
        if network.vlan is None:
            return
        parent = self._options.vlan_interface or network.bridge_interface
        if not parent:
            raise errors.network.NoVlanInterface(label=network.label, vlan=network.vlan)
        self._links.ensure_vlan(Vlan(vlan_device(network.vlan), parent, network.vlan, mtu=network.mtu))


def vlan_device(number: int) -> str:
    """Return the name of a VLAN's device, on every host: operators know it from nova-network."""
    return f"vlan{number}"


class Manager:
    """Setup of the devices that a network's guests are plugged into, and of this host's address."""

    def __init__(self, underlay: Underlay, driver: InterfaceDriver, gateway: Gateway) -> None:
        self._ground, self.driver, self._gateway = underlay, driver, gateway

    def made(self, network: Network) -> tuple[str, ...]:
        """Return the devices that are created here unless they exist, in the order of their removal."""
        return (*self.driver.made(network), *self._ground.made(network))

    def interface(self, network: Network) -> str | None:
        return self._ground.interface(network)

    def ensure_link(self, network: Network) -> None:
        """Create the network's devices. Repeating it is harmless. ``network``: as configured on this host
        (:mod:`nova.network.local_network`)."""
        self._ground.ensure(network)
        self.driver.ensure(network)

    def ensure_address(self, network: Network, device: str) -> None:
        """Add nova's address, before an interface moves its own addresses to the bridge: nova's must be the first."""
        if network.enable_dhcp and network.cidr:
            self._gateway.ensure(network, device)

    def join(self, network: Network) -> None:
        interface = self.interface(network)
        if interface:
            self.driver.join(network, interface)


UNDERLAYS: dict[str, type[Flat] | type[Vlans] | None] = {  # None: the operator makes the bridges; none is served
    network_managers.FLAT.path: None,
    network_managers.FLAT_DHCP.path: Flat,
    network_managers.VLAN.path: Vlans,
}


def load(name: str) -> type[Flat] | type[Vlans] | None:
    """Return the devices' class of the manager with that class path. Raises network.Manager."""
    if name not in UNDERLAYS:
        raise errors.network.Manager(name=name, known=", ".join(UNDERLAYS))
    return UNDERLAYS[name]
