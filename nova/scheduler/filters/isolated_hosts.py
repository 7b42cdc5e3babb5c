"""IsolatedHostsFilter: isolated images run on isolated hosts; an option decides whether other images may too."""

from __future__ import annotations

from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler.filters import Filter
from nova.scheduler.plugin_options import PluginOptions
from nova.scheduler.views import HostView


class IsolatedHostsFilter(Filter):
    reads = ("image_id",)
    on_rebuild = True

    def __init__(self, options: PluginOptions) -> None:
        super().__init__(options)
        self._hosts, self._images = frozenset(options.isolated_hosts), frozenset(options.isolated_images)
        self._restricted = options.restrict_isolated_hosts_to_isolated_images

    def wanted(self, request: PlacementRequest) -> bool:
        return bool(self._hosts or self._images)

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        here = host.host in self._hosts
        if request.image_id and request.image_id in self._images:
            return None if here else "is not for isolated images"
        return "is for isolated images" if here and self._restricted else None
