"""IoOpsWeigher: with its usual, negative multiplier, hosts with fewer running builds, moves and copies are better.

Decisions that are not claimed yet do not count here, but do in the filter: otherwise the weigher would separate servers
of one request that their server group wants together.
"""

from __future__ import annotations

from collections.abc import Sequence

from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler.views import HostView
from nova.scheduler.weighers import Weigher


class IoOpsWeigher(Weigher):
    multiplier_option = "io_ops_weight_multiplier"
    reads = ()

    def weigh(self, host: HostView, request: PlacementRequest) -> float:
        return host.busy

    def weigh_all(self, hosts: Sequence[HostView], request: PlacementRequest) -> list[float]:
        return [host.busy for host in hosts]
