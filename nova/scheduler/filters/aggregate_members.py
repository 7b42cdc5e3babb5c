"""Aggregates with restrictions: AggregateMultiTenancyIsolation (projects), AggregateTypeAffinityFilter (flavors).

Hosts whose aggregates have no such metadata accept all servers.
"""

from __future__ import annotations

from nova.model.host.aggregates import TENANT
from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler.filters import Filter
from nova.scheduler.views import HostAggregates, HostView

FLAVOR = "instance_type"


def projects_of(aggregates: HostAggregates) -> frozenset[str]:
    """Return the projects that a host's aggregates are reserved for; empty: all."""
    return frozenset().union(*(values for key, values in aggregates.values.items() if key.startswith(TENANT)))


class AggregateMultiTenancyIsolation(Filter):
    """Hosts whose aggregates name the project or no project. These projects may use other hosts too."""

    reads = ("project_id",)

    def by_aggregates(self, request: PlacementRequest) -> bool:
        return True

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        projects = projects_of(host.aggregates)
        return "its aggregates are for other projects" if projects and request.project_id not in projects else None


class AggregateTypeAffinityFilter(Filter):
    """Hosts whose aggregates name the flavor or no flavor."""

    reads = ("flavor_name",)

    def by_aggregates(self, request: PlacementRequest) -> bool:
        return True

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        flavors = host.aggregates.values.get(FLAVOR)
        return "its aggregates are for other flavors" if flavors and request.flavor_name not in flavors else None


FILTERS: tuple[type[Filter], ...] = (AggregateMultiTenancyIsolation, AggregateTypeAffinityFilter)
