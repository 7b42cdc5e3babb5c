"""PciPassthroughFilter: the host has the requested devices free."""

from __future__ import annotations

from nova.model.numa.topology import Wanted
from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler.filters import Filter
from nova.scheduler.numa_cache import NumaFitCache
from nova.scheduler.plugin_options import PluginOptions
from nova.scheduler.views import HostView


class PciPassthroughFilter(Filter):
    """Free devices anywhere on the host: NUMATopologyFilter checks whether they are near the guest's cells. Always
    active, also when it is not enabled, because the claim applies the same rule."""

    always_on = public = True
    reads = ("requirements",)

    def __init__(self, options: PluginOptions | None = None) -> None:
        super().__init__(options)
        self._verdicts = NumaFitCache(self.name)
        self._last: tuple[Wanted, Wanted] = (Wanted(), Wanted())

    def wanted(self, request: PlacementRequest) -> bool:
        return request.requirements is not None and bool(request.requirements.topology.devices)

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        if request.requirements is None:
            return None
        return self._verdicts.why_not(host, self._devices(request.requirements.topology))

    def _devices(self, wanted: Wanted) -> Wanted:
        """Return only the devices, as one object per request."""
        last = self._last
        if last[0] is not wanted:
            last = self._last = (wanted, Wanted(devices=wanted.devices))
        return last[1]
