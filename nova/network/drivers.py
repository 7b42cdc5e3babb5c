"""What the gateway's device is, by the name that ``linuxnet_interface_driver`` has in nova.conf.

Of a Linux bridge it is the bridge itself; else it is a device of its own, plugged into what others keep. Names as
operators know them (nova-network's configuration reference).
"""

from __future__ import annotations

from typing import Protocol

from nova import errors
from nova.model.network.gateways import gateway_mac
from nova.model.network.networks import Network
from nova.network.gateway import HostLinks
from nova.network.ipv6 import spoken
from nova.network.options import NetworkHostOptions
from nova.privileged import ovs
from nova.privileged.runner import CommandRunner
from nova.privileged.taps import Tap

ID_CHARACTERS = 11  # of the network's id; a device's name has 15 at most


class InterfaceDriver(Protocol):
    """Each call repeats harmlessly."""

    def __init__(self, options: NetworkHostOptions, links: HostLinks, runner: CommandRunner) -> None: ...

    def device(self, network: Network) -> str:
        """Where the host's address for the network stands."""

    def made(self, network: Network) -> tuple[str, ...]:
        """Devices that :meth:`ensure` makes when they are not there."""

    def ensure(self, network: Network) -> None:
        """The device, there and up."""

    def join(self, network: Network, interface: str) -> None:
        """Lead to the guests of other hosts by this interface."""

    def remove(self, network: Network) -> None:
        """Take away what is no Linux device by itself."""


class LinuxBridge:
    """The network's bridge."""

    def __init__(self, options: NetworkHostOptions, links: HostLinks, runner: CommandRunner) -> None:
        self._host, self._links = options.host, links

    def device(self, network: Network) -> str:
        return network.bridge or ""

    def made(self, network: Network) -> tuple[str, ...]:
        return (network.bridge or "",)

    def ensure(self, network: Network) -> None:
        self._links.ensure_bridge(network.bridge or "", None, network.mtu, gateway_mac(network, self._host))

    def join(self, network: Network, interface: str) -> None:
        self._links.enslave(network.bridge or "", interface)

    def remove(self, network: Network) -> None:
        """Its bridge is a device like others."""


class OvsInterfaceDriver:
    """An internal port of the integration bridge, which an agent of others wires to the guests."""

    def __init__(self, options: NetworkHostOptions, links: HostLinks, runner: CommandRunner) -> None:
        self._options, self._links, self._runner = options, links, runner

    def device(self, network: Network) -> str:
        return _gateway_name(network)

    def made(self, network: Network) -> tuple[str, ...]:
        return ()  # Open vSwitch's to delete, in :meth:`remove`

    def ensure(self, network: Network) -> None:
        device, mac = self.device(network), gateway_mac(network, self._options.host)
        ovs.ensure_internal_port(self._runner, self._options.ovs_vsctl_timeout,
                                 self._options.linuxnet_ovs_integration_bridge, device, mac)
        _own_ipv6(device, network, self._options, self._links)
        self._links.ensure_up(device, mac, network.mtu)

    def join(self, network: Network, interface: str) -> None:
        """The integration bridge's ports are the operator's."""

    def remove(self, network: Network) -> None:
        ovs.delete_internal_port(self._runner, self._options.ovs_vsctl_timeout,
                                 self._options.linuxnet_ovs_integration_bridge, self.device(network))


class NeutronLinuxBridge:
    """A tap on the bridge that Neutron's Linux bridge agent has for a network."""

    def __init__(self, options: NetworkHostOptions, links: HostLinks, runner: CommandRunner) -> None:
        self._options, self._links = options, links

    def device(self, network: Network) -> str:
        return _gateway_name(network)

    def made(self, network: Network) -> tuple[str, ...]:
        return (self.device(network), _neutron_bridge(network))

    def ensure(self, network: Network) -> None:
        self._links.ensure_bridge(_neutron_bridge(network), None, network.mtu)
        self._links.ensure_tap(Tap(self.device(network), gateway_mac(network, self._options.host), network.mtu,
                                   _neutron_bridge(network)))
        _own_ipv6(self.device(network), network, self._options, self._links)

    def join(self, network: Network, interface: str) -> None:
        """The agent's to do."""

    def remove(self, network: Network) -> None:
        """Its tap and bridge are devices like others."""


def _own_ipv6(device: str, network: Network, options: NetworkHostOptions, links: HostLinks) -> None:
    """Of a device that ``ensure_bridge`` does not make, and the kernel lets speak and listen to anybody."""
    links.set_ipv6(device, spoken(network, options))


def _gateway_name(network: Network) -> str:
    return f"gw-{network.uuid[:ID_CHARACTERS]}"


def _neutron_bridge(network: Network) -> str:
    return f"brq{network.uuid[:ID_CHARACTERS]}"


DRIVERS: dict[str, type[InterfaceDriver]] = {
    "LinuxBridgeInterfaceDriver": LinuxBridge,
    "LinuxOVSInterfaceDriver": OvsInterfaceDriver,
    "NeutronLinuxBridgeInterfaceDriver": NeutronLinuxBridge,
}


def load(name: str) -> type[InterfaceDriver]:
    """The driver of that class path, or bare class name. network.InterfaceDriver."""
    *module, word = name.split(".")
    if word not in DRIVERS or module not in ([], ["nova", "network", "linux_net"]):
        raise errors.network.InterfaceDriver(name=name,
                                             known=", ".join(f"nova.network.linux_net.{known}" for known in DRIVERS))
    return DRIVERS[word]
