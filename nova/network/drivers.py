"""Interface drivers: the gateway's device, by the value of ``linuxnet_interface_driver`` in nova.conf.

With a Linux bridge the device is the bridge itself; otherwise it is a separate device, plugged into a bridge that other
software manages. Operators know the names from nova-network's configuration reference.
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

ID_CHARACTERS = 11  # characters of the network's ID; a device name has at most 15


class InterfaceDriver(Protocol):
    """Interface of a driver. Each call repeats harmlessly."""

    def __init__(self, options: NetworkHostOptions, links: HostLinks, runner: CommandRunner) -> None: ...

    def device(self, network: Network) -> str:
        """Return the device with the host's address for the network."""

    def made(self, network: Network) -> tuple[str, ...]:
        """Return the devices that :meth:`ensure` creates if they are missing."""

    def ensure(self, network: Network) -> None:
        """Create the device, if it is missing, and set it up."""

    def join(self, network: Network, interface: str) -> None:
        """Connect to guests on other hosts through this interface."""

    def remove(self, network: Network) -> None:
        """Remove objects that are not Linux devices of their own."""


class LinuxBridge:
    """The network's Linux bridge as the gateway's device."""

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
        """Do nothing: the bridge is removed like other devices."""


class OvsInterfaceDriver:
    """An internal port of the integration bridge, which an external agent connects to the guests."""

    def __init__(self, options: NetworkHostOptions, links: HostLinks, runner: CommandRunner) -> None:
        self._options, self._links, self._runner = options, links, runner

    def device(self, network: Network) -> str:
        return _gateway_name(network)

    def made(self, network: Network) -> tuple[str, ...]:
        return ()  # deleted through Open vSwitch, in :meth:`remove`

    def ensure(self, network: Network) -> None:
        device, mac = self.device(network), gateway_mac(network, self._options.host)
        ovs.ensure_internal_port(self._runner, self._options.ovs_vsctl_timeout,
                                 self._options.linuxnet_ovs_integration_bridge, device, mac)
        _own_ipv6(device, network, self._options, self._links)
        self._links.ensure_up(device, mac, network.mtu)

    def join(self, network: Network, interface: str) -> None:
        """Do nothing: the operator manages the integration bridge's ports."""

    def remove(self, network: Network) -> None:
        ovs.delete_internal_port(self._runner, self._options.ovs_vsctl_timeout,
                                 self._options.linuxnet_ovs_integration_bridge, self.device(network))


class NeutronLinuxBridge:
    """A tap on the bridge of Neutron's Linux bridge agent for a network."""

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
        """Do nothing: the agent does this."""

    def remove(self, network: Network) -> None:
        """Do nothing: the tap and bridge are removed like other devices."""


def _own_ipv6(device: str, network: Network, options: NetworkHostOptions, links: HostLinks) -> None:
    """Set IPv6 on a device that ``ensure_bridge`` does not create, since the kernel would enable it for all peers."""
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
    """Return the driver of that class path or bare class name. Raises network.InterfaceDriver."""
    *module, word = name.split(".")
    if word not in DRIVERS or module not in ([], ["nova", "network", "linux_net"]):
        raise errors.network.InterfaceDriver(name=name,
                                             known=", ".join(f"nova.network.linux_net.{known}" for known in DRIVERS))
    return DRIVERS[word]
