"""DifferentHostFilter and SameHostFilter: hosts with or without the servers named in the hints."""

from __future__ import annotations

from typing import ClassVar

from nova.model.scheduling.decisions import PlacementRequest
from nova.model.scheduling.hints import DIFFERENT_HOST, SAME_HOST, named
from nova.scheduler.filters import Filter
from nova.scheduler.plugin_options import PluginOptions
from nova.scheduler.views import HostView


class _NamedServersFilter(Filter):
    reads = ("hints", "server_hosts")
    public = True
    hint: ClassVar[str]

    def __init__(self, options: PluginOptions | None = None) -> None:
        super().__init__(options)
        self._last: tuple[PlacementRequest | None, set[str]] = (None, set())

    def wanted(self, request: PlacementRequest) -> bool:
        return bool(named(request.hints, self.hint))

    def hosts(self, request: PlacementRequest) -> set[str]:
        """Return the hosts of the named servers; servers without a host are skipped. Cached for the request, which may
        name thousands and is checked for every host."""
        if self._last[0] is not request:
            self._last = request, {request.server_hosts[uuid] for uuid in named(request.hints, self.hint)
                                   if uuid in request.server_hosts}
        return self._last[1]


class DifferentHostFilter(_NamedServersFilter):
    hint = DIFFERENT_HOST

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        return f"runs a server of the hint {DIFFERENT_HOST}" if host.host in self.hosts(request) else None

    def passing(self, hosts: list[HostView], request: PlacementRequest) -> list[HostView]:
        theirs = self.hosts(request)
        return [host for host in hosts if host.host not in theirs]


class SameHostFilter(_NamedServersFilter):
    hint = SAME_HOST

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        return None if host.host in self.hosts(request) else f"runs no server of the hint {SAME_HOST}"

    def passing(self, hosts: list[HostView], request: PlacementRequest) -> list[HostView]:
        theirs = self.hosts(request)
        return [host for host in hosts if host.host in theirs]


FILTERS: tuple[type[Filter], ...] = (DifferentHostFilter, SameHostFilter)
