"""A provider's aggregates."""

from __future__ import annotations

from nova.model.base import Json
from nova.model.placement.providers import ProviderAggregates
from nova.placement.request import PlacementAPIRequest
from nova.placement.views import providers as views


def index(req: PlacementAPIRequest, uuid: str) -> dict[str, Json]:
    """List the aggregates of a provider, as uuids: given here, and those its compute host is in.
    placement.ResourceProviderNotFound (404)."""
    return views.aggregates(req, req.conductor.get_provider_aggregates(uuid))


def replace(req: PlacementAPIRequest, uuid: str) -> dict[str, Json]:
    """Put these aggregates in the place of those a provider was given; from 1.19 with its generation. Those of its
    compute host stay. Each stays spelled as it came, with dashes or without: clients compare the answer with what they
    sent. placement.ResourceProviderNotFound (404); placement.ConcurrentUpdate (409)."""
    listed = isinstance(req.body, list)
    wanted = ProviderAggregates(
        uuid=uuid, generation=None if listed else req.body["resource_provider_generation"],
        aggregates=tuple(dict.fromkeys(req.body if listed else req.body["aggregates"])))
    return views.aggregates(req, req.conductor.set_provider_aggregates(wanted))
