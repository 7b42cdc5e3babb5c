"""PCIWeigher: fewer free devices are better.

Hosts with free devices are so reserved for servers that request some, and hosts with the most devices for the largest
requests. The filter ensures that there are enough free devices.
"""

from __future__ import annotations

from collections.abc import Sequence

from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler.provider_fit import topology_claims_of
from nova.scheduler.views import HostView
from nova.scheduler.weighers import Weigher

MOST = 100.0  # devices of a host: higher numbers count the same


class PCIWeigher(Weigher):
    multiplier_option = "pci_weight_multiplier"
    reads = ()

    def weigh(self, host: HostView, request: PlacementRequest) -> float:
        topology = host.state.topology
        if topology is None or not topology.devices:
            return 0.0
        free = len(topology.devices) - sum(len(packing.devices) for packing in topology_claims_of(host))
        return -min(float(max(free, 0)), MOST)

    def weigh_all(self, hosts: Sequence[HostView], request: PlacementRequest) -> list[float]:
        return [0.0 if host.state.topology is None else self.weigh(host, request) for host in hosts]
