"""Views of allocations, and of allocation candidates."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from nova.model.placement.providers import (
    Candidate,
    Candidates,
    ConsumerAllocations,
    ProviderConsumers,
    ProviderSummary,
)
from nova.placement import versions
from nova.placement.request import PlacementAPIRequest
from nova.web.ranges import within

OWNER, GENERATION, TYPE = "1.12", "1.28", "1.38"  # the versions that added these to a consumer
TRAITS, TREE, MAPPINGS = "1.17", "1.29", "1.34"  # the versions that added these to candidates


def of_consumer(req: PlacementAPIRequest, one: ConsumerAllocations) -> dict[str, object]:
    """Return a consumer's ``allocations`` by provider UUID, and from 1.12 its owner. A consumer without any has only
    ``allocations``."""
    body: dict[str, Any] = {"allocations": {
        each.provider_uuid: {"generation": each.generation, "resources": dict(each.resources)}
        for each in one.allocations}}
    if not one.allocations:
        return body
    if within(req.version, OWNER, None):
        body |= {"project_id": one.project_id, "user_id": one.user_id}
    if within(req.version, GENERATION, None):
        body["consumer_generation"] = one.generation
    if within(req.version, TYPE, None):
        body["consumer_type"] = one.consumer_type or "unknown"
    return body


def of_provider(req: PlacementAPIRequest, found: ProviderConsumers) -> dict[str, object]:
    """Return the allocations of one provider by consumer, with the provider's generation."""
    consumers: dict[str, Any] = {}
    for one in found.consumers:
        consumers[one.consumer] = {"resources": {name: amount for each in one.allocations
                                                 for name, amount in each.resources.items()}}
        if within(req.version, GENERATION, None):
            consumers[one.consumer]["consumer_generation"] = one.generation
    return {"resource_provider_generation": found.generation, "allocations": consumers}


def candidates(req: PlacementAPIRequest, found: Candidates, asked: Collection[str]) -> dict[str, object]:
    """Return candidates and provider summaries. ``asked``: the resource classes of the request."""
    return {"allocation_requests": [_candidate(req, one) for one in found.candidates],
            "provider_summaries": {one.uuid: _summary(req, one, asked) for one in found.summaries}}


def _candidate(req: PlacementAPIRequest, one: Candidate) -> dict[str, object]:
    body: dict[str, Any]
    if versions.allocations_are_keyed(req.version):
        body = {"allocations": {each.provider_uuid: {"resources": dict(each.resources)} for each in one.allocations}}
    else:
        body = {"allocations": [{"resource_provider": {"uuid": each.provider_uuid}, "resources": dict(each.resources)}
                                for each in one.allocations]}
    if within(req.version, MAPPINGS, None):
        body["mappings"] = {suffix: list(uuids) for suffix, uuids in one.mappings.items()}
    return body


def _summary(req: PlacementAPIRequest, one: ProviderSummary, asked: Collection[str]) -> dict[str, object]:
    everything = versions.summaries_show_all_classes(req.version)
    body: dict[str, Any] = {"resources": {name: {"capacity": amount.capacity, "used": amount.used}
                                          for name, amount in one.amounts.items() if everything or name in asked}}
    if within(req.version, TRAITS, None):
        body["traits"] = sorted(one.traits)
    if within(req.version, TREE, None):
        body |= {"parent_provider_uuid": one.parent_uuid, "root_provider_uuid": one.root_uuid}
    return body
