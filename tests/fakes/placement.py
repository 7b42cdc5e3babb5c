"""A small cloud's providers, accessed like Placement's API does: over the bus, with the codec."""

from __future__ import annotations

from typing import Any

import pytest

from nova import errors
from nova.conductor.queries.placement import placement_service
from nova.model.placement.providers import (
    ClassInventory,
    ConsumerAllocations,
    NewProvider,
    Provider,
    ProviderAggregates,
    ProviderAllocation,
    ProviderInventories,
    ProviderTraits,
)
from nova.rpc.contracts.placement import PlacementRPC
from tests.fakes.rows import new_uuid
from tests.fakes.small_cloud import SmallCloud


class Placement:
    """Shorthands for PlacementRPC; ``rpc`` is its client."""

    def __init__(self, cloud: SmallCloud) -> None:
        cloud.bus.serve(PlacementRPC, placement_service(cloud.deps))
        self.cloud, self.rpc = cloud, cloud.bus.client(PlacementRPC)

    def make(self, name: str = "", parent: str | None = None, traits: tuple[str, ...] = (),
             aggregates: tuple[str, ...] = (), **totals: int) -> str:
        """Create a provider with these amounts of each class, and return its uuid."""
        uuid = new_uuid()
        self.rpc.create_provider(NewProvider(uuid=uuid, name=name or uuid, parent_uuid=parent))
        if totals:
            self.fill(uuid, **totals)
        if traits:
            for trait in traits:
                if trait.startswith("CUSTOM_"):
                    self.rpc.create_trait(trait)
            self.rpc.set_provider_traits(ProviderTraits(uuid=uuid, traits=traits))
        if aggregates:
            self.rpc.set_provider_aggregates(ProviderAggregates(uuid=uuid, aggregates=aggregates))
        return uuid

    def fill(self, uuid: str, **totals: int) -> ProviderInventories:
        return self.rpc.set_inventories(ProviderInventories(uuid=uuid, inventories=tuple(
            ClassInventory(resource_class=name, total=total, max_unit=total) for name, total in totals.items())))

    def get(self, uuid: str) -> Provider:
        return self.rpc.get_provider(uuid)

    def used(self, uuid: str) -> dict[str, int]:
        return dict(self.rpc.get_usages(uuid).used)

    def allocate(self, provider: str, consumer: str = "", generation: int | None = None, **amounts: int) -> str:
        """Give a consumer this allocation on the provider and no other, and return the consumer."""
        consumer = consumer or new_uuid()
        self.rpc.set_allocations((allocation_write(consumer, {provider: amounts}, generation),))
        return consumer

    def trouble(self, call: str, *arguments: Any) -> tuple[str, str]:
        """Return (kind, code) of the error that a call raises."""
        with pytest.raises(errors.NovaError) as caught:
            getattr(self.rpc, call)(*arguments)
        return caught.value.kind, caught.value.code


def allocation_write(consumer: str, held: dict[str, dict[str, int]], generation: int | None = None, **fields: Any
         ) -> ConsumerAllocations:
    values: dict[str, Any] = {"project_id": "demo", "user_id": "joe", **fields}
    return ConsumerAllocations(consumer=consumer, generation=generation, **values, allocations=tuple(
        ProviderAllocation(provider_uuid=uuid, resources=amounts) for uuid, amounts in held.items()))
