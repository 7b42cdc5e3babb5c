"""BuildFailureWeigher: hosts with recent failed builds come last, ordered by the number of failures."""

from __future__ import annotations

from collections.abc import Sequence

from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler.views import HostView
from nova.scheduler.weighers import Weigher


class BuildFailureWeigher(Weigher):
    multiplier_option = "build_failure_weight_multiplier"
    reads = ()

    def weigh(self, host: HostView, request: PlacementRequest) -> float:
        return -host.state.failed_builds

    def weigh_all(self, hosts: Sequence[HostView], request: PlacementRequest) -> list[float]:
        return [-host.state.failed_builds for host in hosts]
