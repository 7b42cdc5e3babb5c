"""Networks as configured on this host: the gateway's address, and its device.

Behind this module, a multi-host network looks like any other: its DHCP server and its guests' gateway are the host's
own.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable

import msgspec

from nova.model.network.gateways import own_per_host
from nova.model.network.networks import Network, NetworkOnHost
from nova.network.options import NetworkHostOptions

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class LocalNetwork:
    """A network on this host. ``network``: as ordered, except for the host's own addresses; ``device``: has them;
    ``order``: the conductor's order. ``shared``: all hosts have the same address, and must be isolated from each
    other."""

    order: NetworkOnHost
    network: Network
    device: str
    interface: str | None = None
    shared: bool = False

    @property
    def served(self) -> Network:
        """Return the network with the device as its bridge, for code that identifies it by the bridge."""
        return msgspec.structs.replace(self.network, bridge=self.device)


def here(order: NetworkOnHost, options: NetworkHostOptions, device: Callable[[Network], str],
         interface: Callable[[Network], str | None] = lambda _network: None) -> LocalNetwork:
    """Return the conductor's order as it applies to this host. ``device`` and ``interface`` return a network's devices;
    without an interface (None) it has no connection to the outside."""
    network = order.network
    own = own_per_host(network, options.share_dhcp_address)
    if own and order.host_address:
        network = msgspec.structs.replace(network, dhcp_server=order.host_address,
                                          gateway=order.host_address if network.gateway else None)
    elif own:
        LOG.warning("The conductor's order has no address of this host for the multi-host network %s", network.label)
    elif network.multi_host:
        network = msgspec.structs.replace(network, share_address=True)
    return LocalNetwork(order, network, device(network), interface(network), network.multi_host and not own)


def idle(order: NetworkOnHost, options: NetworkHostOptions) -> bool:
    """True if a multi-host network's last guest has left this host, and the network must be removed from it."""
    return (options.teardown_unused_network_gateway and order.network.multi_host
            and all(host.elsewhere for host in order.addresses))
