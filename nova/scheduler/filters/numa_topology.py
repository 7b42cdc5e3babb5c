"""NUMATopologyFilter: the guest's cells, pinned CPUs and pages fit on the host, with its devices near them."""

from __future__ import annotations

from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler.filters import Filter
from nova.scheduler.numa_cache import NumaFitCache
from nova.scheduler.plugin_options import PluginOptions
from nova.scheduler.views import HostView


class NUMATopologyFilter(Filter):
    """Always active, also when it is not enabled, because the claim applies the same rule."""

    always_on = public = True
    reads = ("requirements",)

    def __init__(self, options: PluginOptions | None = None) -> None:
        super().__init__(options)
        self._verdicts = NumaFitCache(self.name)

    def wanted(self, request: PlacementRequest) -> bool:
        return request.requirements is not None and request.requirements.topology.guest is not None

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        return self._verdicts.why_not(host, request.requirements.topology) if request.requirements else None
