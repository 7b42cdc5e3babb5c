"""AggregateInstanceExtraSpecsFilter: the metadata of the host's aggregates meets the flavor's extra specs.

It checks specs named ``aggregate_instance_extra_specs:KEY`` and specs without a namespace. If aggregates set a key to
several values, one match is sufficient.
"""

from __future__ import annotations

from collections.abc import Iterator

from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler import operators
from nova.scheduler.filters import Filter
from nova.scheduler.views import HostView

#: Specs without a namespace that have another meaning.
OTHERS = frozenset({"group_policy", "hide_hypervisor_id"})

SCOPE = "aggregate_instance_extra_specs:"


class AggregateInstanceExtraSpecsFilter(Filter):
    reads = ("extra_specs",)

    def wanted(self, request: PlacementRequest) -> bool:
        return any(True for _ in _asked(request))

    def by_aggregates(self, request: PlacementRequest) -> bool:
        return True

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        for key, wanted in _asked(request):
            values = host.aggregates.values.get(key)
            if values is None:
                return f"no aggregate with {key}"
            if not any(operators.meets(value, wanted) for value in values):
                return f"{key} of its aggregates is not {wanted}"
        return None


def _asked(request: PlacementRequest) -> Iterator[tuple[str, str]]:
    """Yield (key, value) of each extra spec about aggregates."""
    for name, wanted in request.extra_specs.items():
        if name.startswith(SCOPE):
            yield name.removeprefix(SCOPE), wanted
        elif ":" not in name and name not in OTHERS:
            yield name, wanted
