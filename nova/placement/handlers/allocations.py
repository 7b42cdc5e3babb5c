"""Handlers for allocations of consumers, and for inventories that change together with them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import msgspec

from nova import decoding
from nova.model.placement.providers import ConsumerAllocations, ProviderAllocation, Reshape
from nova.placement import versions
from nova.placement.handlers.inventories import AskedInventories, whole
from nova.placement.request import PlacementAPIRequest, canonical, keyed
from nova.placement.views import allocations as views

NOBODY = "00000000-0000-0000-0000-000000000000"  # project and user of allocations before 1.8, which have none
UNCHECKED = -1


class NamedProvider(msgspec.Struct, frozen=True):
    """The provider of an entry of the list form."""

    uuid: str


class ListedAllocation(msgspec.Struct, frozen=True):
    """An entry of the list form."""

    resource_provider: NamedProvider
    resources: Mapping[str, int]


class AskedAllocation(msgspec.Struct, frozen=True):
    """A value of the form by provider."""

    resources: Mapping[str, int]


class AskedAllocations(msgspec.Struct, frozen=True):
    """Allocations of one consumer in a body. ``mappings``: suffix of a request's group -> providers."""

    allocations: tuple[ListedAllocation, ...] | dict[str, AskedAllocation]
    mappings: Mapping[str, tuple[str, ...]] = {}
    project_id: str = NOBODY
    user_id: str = NOBODY
    consumer_type: str | None = None
    consumer_generation: int | None = None


class AskedReshape(msgspec.Struct, frozen=True):
    """A reshape's body: inventories by provider, allocations by consumer."""

    inventories: Mapping[str, AskedInventories]
    allocations: Mapping[str, AskedAllocations]


def show(req: PlacementAPIRequest, consumer: str) -> dict[str, object]:
    """Show what a consumer has of each provider. A consumer that has no allocations, or is unknown, is not an error."""
    return views.of_consumer(req, req.conductor.get_allocations(consumer))


def of_provider(req: PlacementAPIRequest, uuid: str) -> dict[str, object]:
    """Show the allocations of one provider, by consumer. Raises placement.ResourceProviderNotFound (404)."""
    return views.of_provider(req, req.conductor.get_provider_allocations(uuid))


def replace(req: PlacementAPIRequest, consumer: str) -> None:
    """Replace all allocations of a consumer. Raises placement.AllocationNoRoom, ConsumerChanged (from 1.28),
    AllocationServers (409); placement.AllocationInvalid, AllocationUnknownProvider, ResourceClassUnknown, Twice (400).
    """
    req.conductor.set_allocations((_wanted(consumer, decoding.convert(req.body, AskedAllocations), req.version),))


def replace_many(req: PlacementAPIRequest) -> None:
    """Write the allocations of several consumers, all or none; empty allocations release everything. Raises the errors
    of a single consumer."""
    req.conductor.set_allocations(_all_wanted(decoding.convert(req.body, dict[str, AskedAllocations]), req.version))


def delete(req: PlacementAPIRequest, consumer: str) -> None:
    """Delete all allocations of a consumer. Raises placement.AllocationNotFound (404); placement.AllocationServers
    (409)."""
    req.conductor.delete_allocations(consumer)


def reshape(req: PlacementAPIRequest) -> None:
    """Write inventories of providers and allocations of consumers, all or none. Raises placement.InventoryBadCapacity,
    InventoryInvalid, Twice (400); placement.InventoryInuse, ConcurrentUpdate (409); and the errors of allocations."""
    asked = decoding.convert(req.body, AskedReshape)
    inventories = tuple(whole(uuid, one, req.version) for uuid, one in keyed(asked.inventories.items()).items())
    req.conductor.reshape(Reshape(inventories=inventories, allocations=_all_wanted(asked.allocations, req.version)))


def _all_wanted(asked: Mapping[str, AskedAllocations], version: int) -> tuple[ConsumerAllocations, ...]:
    return tuple(_wanted(consumer, one, version) for consumer, one in keyed(asked.items()).items())


def _wanted(consumer: str, asked: AskedAllocations, version: int) -> ConsumerAllocations:
    """Return the allocations that a body requests for one consumer."""
    met: dict[str, list[str]] = defaultdict(list)
    for suffix, uuids in asked.mappings.items():
        for uuid in uuids:
            met[canonical(uuid)].append(suffix)
    allocations = tuple(ProviderAllocation(provider_uuid=uuid, resources=resources, mappings=tuple(met[uuid]))
                        for uuid, resources in _by_provider(asked).items())
    return ConsumerAllocations(
        consumer=consumer, allocations=allocations, project_id=asked.project_id, user_id=asked.user_id,
        consumer_type=asked.consumer_type,
        generation=asked.consumer_generation if versions.consumers_have_generations(version) else UNCHECKED)


def _by_provider(asked: AskedAllocations) -> dict[str, Mapping[str, int]]:
    """Return provider -> class -> amount, from either form. Raises placement.Twice."""
    if isinstance(asked.allocations, dict):
        return keyed((uuid, one.resources) for uuid, one in asked.allocations.items())
    return keyed((one.resource_provider.uuid, one.resources) for one in asked.allocations)
