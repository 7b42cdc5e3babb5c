"""ServerGroupAffinityFilter and ServerGroupAntiAffinityFilter: the hard policies of server groups.

The claim checks both again, so they are active even if ``enabled_filters`` does not name them: a host that the claim
must refuse is not a useful proposal.
"""

from __future__ import annotations

from nova.model.scheduling.decisions import PlacementRequest
from nova.model.server.server_groups import AFFINITY, ANTI_AFFINITY
from nova.scheduler.filters import Filter
from nova.scheduler.views import HostView


class _ServerGroupFilter(Filter):
    public = True
    reads = ("group",)
    policy = ""

    def wanted(self, request: PlacementRequest) -> bool:
        return request.group is not None and request.group.policy == self.policy


class ServerGroupAffinityFilter(_ServerGroupFilter):
    """A host with a member of the group, or any host while the group has no members."""

    policy = AFFINITY

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        members = request.group.hosts if request.group else {}
        return "the members of the server group are on other hosts" if members and host.host not in members else None


class ServerGroupAntiAffinityFilter(_ServerGroupFilter):
    """A host with fewer members of the group than the group's rule allows (one, without a rule)."""

    policy = ANTI_AFFINITY

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        if request.group is None or request.group.hosts.get(host.host, 0) < request.group.max_per_host:
            return None
        return "has the maximum number of members of the server group"


#: Filters that are active in every decision about a group, enabled or not.
ALWAYS: tuple[type[Filter], ...] = (ServerGroupAntiAffinityFilter, ServerGroupAffinityFilter)
