"""DiskWeigher: more free disk is better (a negative multiplier stacks)."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler.views import HostView
from nova.scheduler.weighers import Weigher


class DiskWeigher(Weigher):
    multiplier_option = "disk_weight_multiplier"
    reads = ()

    def weigh(self, host: HostView, request: PlacementRequest) -> float:
        return host.free_disk_gb

    def weigh_all(self, hosts: Sequence[HostView], request: PlacementRequest) -> list[float]:
        return list(map(operator.attrgetter("free_disk_gb"), hosts))
