"""Rule of one DHCP server per bridge: finds networks that would have to share one. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nova import errors
from nova.model.network.networks import Network


def check(new: Iterable[Network], present: Iterable[Network]) -> None:
    """Raise network.BridgeHasNetwork for new networks on a used bridge: hosts would serve only the older network, and
    refuse every guest of the other. ``present``: the oldest first."""
    everything = list(present)
    for network in new:
        for older, newer in shared([*everything, network]):
            if newer is network:
                raise errors.network.BridgeHasNetwork(label=network.label, bridge=network.bridge, other=older.label)
        everything.append(network)


def shared(networks: Iterable[Network]) -> Iterator[tuple[Network, Network]]:
    """Yield (served network, unserved network on the same bridge); ``networks``: the oldest first."""
    served: dict[str, Network] = {}
    for network in networks:
        if network.bridge and network.enable_dhcp:
            older = served.setdefault(network.bridge, network)
            if older is not network:
                yield older, network


__all__ = ["check", "shared"]
