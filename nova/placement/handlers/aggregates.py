"""A provider's aggregates."""

from __future__ import annotations

from nova.model.base import Json
from nova.model.providers import ProviderAggregates
from nova.placement.request import PlacementAPIRequest, canonical
from nova.placement.views import providers as views


def index(req: PlacementAPIRequest, uuid: str) -> dict[str, Json]:
    return views.aggregates(req, req.conductor.get_provider_aggregates(uuid))


def replace(req: PlacementAPIRequest, uuid: str) -> dict[str, Json]:
    listed = isinstance(req.body, list)
    wanted = ProviderAggregates(
        uuid=uuid, generation=None if listed else req.body["resource_provider_generation"],
        aggregates=tuple(dict.fromkeys(map(canonical, req.body if listed else req.body["aggregates"]))))
    return views.aggregates(req, req.conductor.set_provider_aggregates(wanted))
