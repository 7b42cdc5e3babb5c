"""Handlers for allocations of consumers, and for inventories that change together with them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from nova.model.base import Json
from nova.model.placement.providers import ConsumerAllocations, ProviderAllocation, Reshape
from nova.placement import versions
from nova.placement.handlers.inventories import whole
from nova.placement.request import PlacementAPIRequest, canonical, keyed
from nova.placement.views import allocations as views

NOBODY = "00000000-0000-0000-0000-000000000000"  # project and user of allocations before 1.8, which have none
UNCHECKED = -1


def show(req: PlacementAPIRequest, consumer: str) -> dict[str, Json]:
    """Show what a consumer has of each provider. A consumer that has no allocations, or is unknown, is not an error."""
    return views.of_consumer(req, req.conductor.get_allocations(consumer))


def of_provider(req: PlacementAPIRequest, uuid: str) -> dict[str, Json]:
    """Show the allocations of one provider, by consumer. Raises placement.ResourceProviderNotFound (404)."""
    return views.of_provider(req, req.conductor.get_provider_allocations(uuid))


def replace(req: PlacementAPIRequest, consumer: str) -> None:
    """Replace all allocations of a consumer. Raises placement.AllocationNoRoom, ConsumerChanged (from 1.28),
    AllocationServers (409); placement.AllocationInvalid, AllocationUnknownProvider, ResourceClassUnknown, Twice (400).
    """
    req.conductor.set_allocations((_wanted(consumer, req.body, req.version),))


def replace_many(req: PlacementAPIRequest) -> None:
    """Write the allocations of several consumers, all or none; empty allocations release everything. Raises the errors
    of a single consumer."""
    req.conductor.set_allocations(_all_wanted(req.body, req.version))


def delete(req: PlacementAPIRequest, consumer: str) -> None:
    """Delete all allocations of a consumer. Raises placement.AllocationNotFound (404); placement.AllocationServers
    (409)."""
    req.conductor.delete_allocations(consumer)


def reshape(req: PlacementAPIRequest) -> None:
    """Write inventories of providers and allocations of consumers, all or none. Raises placement.InventoryBadCapacity,
    InventoryInvalid, Twice (400); placement.InventoryInuse, ConcurrentUpdate (409); and the errors of allocations."""
    inventories = tuple(whole(uuid, body, req.version) for uuid, body in keyed(req.body["inventories"].items()).items())
    req.conductor.reshape(Reshape(inventories=inventories,
                                  allocations=_all_wanted(req.body["allocations"], req.version)))


def _all_wanted(body: Mapping[str, Json], version: int) -> tuple[ConsumerAllocations, ...]:
    return tuple(_wanted(consumer, one, version) for consumer, one in keyed(body.items()).items())


def _wanted(consumer: str, body: Mapping[str, Json], version: int) -> ConsumerAllocations:
    """Return the allocations that a body requests for one consumer."""
    met: dict[str, list[str]] = defaultdict(list)
    for suffix, uuids in body.get("mappings", {}).items():
        for uuid in uuids:
            met[canonical(uuid)].append(suffix)
    allocations = tuple(ProviderAllocation(provider_uuid=uuid, resources=resources, mappings=tuple(met[uuid]))
                        for uuid, resources in _by_provider(body["allocations"]).items())
    return ConsumerAllocations(
        consumer=consumer, allocations=allocations, project_id=body.get("project_id", NOBODY),
        user_id=body.get("user_id", NOBODY), consumer_type=body.get("consumer_type"),
        generation=body["consumer_generation"] if versions.consumers_have_generations(version) else UNCHECKED)


def _by_provider(allocations: Json) -> dict[str, dict[str, int]]:
    """Return provider -> class -> amount, from either form. Raises placement.Twice."""
    if isinstance(allocations, list):
        return keyed((one["resource_provider"]["uuid"], one["resources"]) for one in allocations)
    return keyed((uuid, one["resources"]) for uuid, one in allocations.items())
