"""Weighers of the soft policies of server groups: more members of the group on a host are better, or fewer."""

from __future__ import annotations

from collections.abc import Sequence

from nova.model.scheduling.decisions import PlacementRequest
from nova.model.server.server_groups import SOFT_AFFINITY, SOFT_ANTI_AFFINITY
from nova.scheduler.views import HostView
from nova.scheduler.weighers import Weigher


class _SoftGroupWeigher(Weigher):
    policy, sign = "", 1.0
    reads = ("group",)

    def neutral(self, request: PlacementRequest) -> bool:
        return request.group is None or request.group.policy != self.policy

    def weigh(self, host: HostView, request: PlacementRequest) -> float:
        if request.group is None or request.group.policy != self.policy:
            return 0.0
        return self.sign * request.group.hosts.get(host.host, 0)

    def weigh_all(self, hosts: Sequence[HostView], request: PlacementRequest) -> list[float]:
        if request.group is None or request.group.policy != self.policy:
            return [0.0] * len(hosts)
        members, sign = request.group.hosts, self.sign
        return [sign * members.get(host.host, 0) for host in hosts]


class ServerGroupSoftAffinityWeigher(_SoftGroupWeigher):
    """Preference for hosts with more members of the group."""

    multiplier_option, policy = "soft_affinity_weight_multiplier", SOFT_AFFINITY


class ServerGroupSoftAntiAffinityWeigher(_SoftGroupWeigher):
    """Preference for hosts with fewer members of the group."""

    multiplier_option, policy, sign = "soft_anti_affinity_weight_multiplier", SOFT_ANTI_AFFINITY, -1.0
