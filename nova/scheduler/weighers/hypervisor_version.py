"""HypervisorVersionWeigher: a newer hypervisor is better (a negative multiplier prefers older ones)."""

from __future__ import annotations

from collections.abc import Sequence

from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler.views import HostView
from nova.scheduler.weighers import Weigher


class HypervisorVersionWeigher(Weigher):
    multiplier_option = "hypervisor_version_weight_multiplier"
    reads = ()

    def weigh(self, host: HostView, request: PlacementRequest) -> float:
        return host.facts.hypervisor_version

    def weigh_all(self, hosts: Sequence[HostView], request: PlacementRequest) -> list[float]:
        return [host.facts.hypervisor_version for host in hosts]
