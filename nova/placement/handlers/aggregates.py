"""Handlers for a provider's aggregates."""

from __future__ import annotations

from nova.model.placement.providers import ProviderAggregates
from nova.placement.request import PlacementAPIRequest
from nova.placement.views import providers as views


def index(req: PlacementAPIRequest, uuid: str) -> dict[str, object]:
    """List the aggregate UUIDs of a provider. They are those set here, and those of its compute host. Raises
    placement.ResourceProviderNotFound (404)."""
    return views.aggregates(req, req.conductor.get_provider_aggregates(uuid))


def replace(req: PlacementAPIRequest, uuid: str) -> dict[str, object]:
    """Replace the aggregates set for a provider; from 1.19 with its generation. Those of its compute host stay. UUIDs
    keep their spelling, with or without dashes: clients compare the response with their request. Raises
    placement.ResourceProviderNotFound (404); placement.ConcurrentUpdate (409)."""
    listed = isinstance(req.body, list)
    wanted = ProviderAggregates(
        uuid=uuid, generation=None if listed else req.body["resource_provider_generation"],
        aggregates=tuple(dict.fromkeys(req.body if listed else req.body["aggregates"])))
    return views.aggregates(req, req.conductor.set_provider_aggregates(wanted))
