"""A network as it is on this host: which address is the gateway's, and which device it stands on.

Behind this, a multi-host network looks like any other: its DHCP server and its guests' gateway are the host's own.
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
class Here:
    """``network`` as told, but for the host's own addresses; ``device`` bears them; ``order`` is the conductor's word.
    ``shared``: all hosts have the same address, and must not hear each other."""

    order: NetworkOnHost
    network: Network
    device: str
    interface: str | None = None
    shared: bool = False

    @property
    def served(self) -> Network:
        """For those who know a network by its bridge alone: the device in the bridge's place."""
        return msgspec.structs.replace(self.network, bridge=self.device)


def here(order: NetworkOnHost, options: NetworkHostOptions, device: Callable[[Network], str],
         interface: Callable[[Network], str | None] = lambda _network: None) -> Here:
    """The conductor's word, as it is on this host. ``device`` and ``interface`` tell a network's devices; no interface
    (None): nothing leads outside."""
    network = order.network
    own = own_per_host(network, options.share_dhcp_address)
    if own and order.host_address:
        network = msgspec.structs.replace(network, dhcp_server=order.host_address,
                                          gateway=order.host_address if network.gateway else None)
    elif own:
        LOG.warning("The conductor names no address of this host for the multi-host network %s", network.label)
    elif network.multi_host:
        network = msgspec.structs.replace(network, share_address=True)
    return Here(order, network, device(network), interface(network), network.multi_host and not own)


def idle(order: NetworkOnHost, options: NetworkHostOptions) -> bool:
    """Whether a multi-host network's last guest has left this host, and nothing of the network shall stay."""
    return (options.teardown_unused_network_gateway and order.network.multi_host
            and all(host.elsewhere for host in order.addresses))
