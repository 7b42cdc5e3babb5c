"""ServerGroupAffinityFilter and ServerGroupAntiAffinityFilter: enabled by default, so their names must be known.

There are no server groups yet. A request that asks for one is refused rather than placed against its user's wish.
"""

from __future__ import annotations

from nova.model.scheduling import PlacementRequest
from nova.scheduler.filters import Filter
from nova.scheduler.views import HostView


class _ServerGroupFilter(Filter):
    public = True

    def wanted(self, request: PlacementRequest) -> bool:
        return "group" in request.hints

    def by_facts(self, request: PlacementRequest) -> bool:
        return True

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        return "the scheduler hint 'group' needs server groups, which this release does not have"


class ServerGroupAffinityFilter(_ServerGroupFilter):
    """Same host as the group's other members."""


class ServerGroupAntiAffinityFilter(_ServerGroupFilter):
    """Another host than the group's other members."""
