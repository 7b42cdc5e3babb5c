"""AllHostsFilter: accepts every host."""

from __future__ import annotations

from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler.filters import Filter
from nova.scheduler.views import HostView


class AllHostsFilter(Filter):
    reads = ()

    def wanted(self, request: PlacementRequest) -> bool:
        return False

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        return None
