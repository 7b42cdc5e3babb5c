"""NumInstancesWeigher: a negative multiplier spreads servers, independent of their size; a positive one stacks them."""

from __future__ import annotations

from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler.views import HostView
from nova.scheduler.weighers import Weigher


class NumInstancesWeigher(Weigher):
    multiplier_option = "num_instances_weight_multiplier"
    reads = ()

    def weigh(self, host: HostView, request: PlacementRequest) -> float:
        return host.state.instances + host.pending
