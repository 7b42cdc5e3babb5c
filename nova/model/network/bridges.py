"""One DHCP server a bridge: which networks would have to share one. A pure rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nova import errors
from nova.model.network.networks import Network


def check(new: Iterable[Network], present: Iterable[Network]) -> None:
    """network.BridgeHasNetwork: hosts would serve the older network alone, and refuse every guest of the other.
    ``present``: the oldest first."""
    everything = list(present)
    for network in new:
        for older, newer in shared([*everything, network]):
            if newer is network:
                raise errors.network.BridgeHasNetwork(label=network.label, bridge=network.bridge, other=older.label)
        everything.append(network)


def shared(networks: Iterable[Network]) -> Iterator[tuple[Network, Network]]:
    """(the network that is served, one that is not, as it is on the same bridge); ``networks``: the oldest first."""
    served: dict[str, Network] = {}
    for network in networks:
        if network.bridge and network.enable_dhcp:
            older = served.setdefault(network.bridge, network)
            if older is not network:
                yield older, network


__all__ = ["check", "shared"]
