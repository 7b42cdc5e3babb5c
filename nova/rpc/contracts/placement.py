"""Calls of Placement's API to the conductor: resource providers and their allocations."""

from __future__ import annotations

from nova.model.placement.providers import (
    CandidateQuery,
    Candidates,
    ClassInventory,
    ConsumerAllocations,
    NewProvider,
    PlacementUsageQuery,
    Provider,
    ProviderAggregates,
    ProviderConsumers,
    ProviderInventories,
    ProviderQuery,
    ProviderTraits,
    ProviderUpdate,
    ProviderUsages,
    Reshape,
    TraitQuery,
    UsageGroup,
)
from nova.rpc.interface import Contract, call


class PlacementRPC(Contract):
    """Resources in Placement's terms; their only source is the claims. The API has checked the caller's permission.

    Errors of all calls: NotFound for the object in the path. Conflict for an outdated generation, an object in use, or
    a name that is taken. Invalid for an unknown trait or class, or impossible amounts. Hosts and servers own their
    resources: their providers cannot be deleted, and only servers change servers' allocations (the text of Conflict
    says how).
    """

    topic, version = "placement", "1.0"

    # providers
    @call(reads=True)
    def list_providers(self, query: ProviderQuery) -> tuple[Provider, ...]:
        """Return the providers that meet all conditions, the oldest first."""

    @call(reads=True)
    def get_provider(self, uuid: str) -> Provider:
        """Return one provider. Raises NotFound."""

    @call()
    def create_provider(self, new: NewProvider) -> Provider:
        """Create a provider. Raises Conflict if its name or uuid is taken; Invalid for an unknown parent."""

    @call()
    def update_provider(self, change: ProviderUpdate) -> Provider:
        """Rename a provider, or move it below another. Raises Invalid if the parent is unknown, is its own descendant,
        or cannot change."""

    @call()
    def delete_provider(self, uuid: str) -> None:
        """Delete a provider. Raises Conflict if it has allocations or children, or belongs to an existing host."""

    # inventories
    @call(reads=True)
    def get_inventories(self, uuid: str) -> ProviderInventories:
        """Return all inventories of a provider."""

    @call()
    def set_inventories(self, wanted: ProviderInventories) -> ProviderInventories:
        """Replace all inventories. Raises Conflict if the generation is outdated, or a class in use would be
        removed."""

    @call()
    def set_inventory(self, uuid: str, generation: int | None, inventory: ClassInventory, create: bool
                      ) -> ProviderInventories:
        """Write the inventory of one class. With ``create``, raises Conflict if it exists; else NotFound if it does
        not."""

    @call()
    def delete_inventory(self, uuid: str, resource_class: str) -> None:
        """Delete the inventory of one class. Raises NotFound if the provider has none; Conflict if it is in use."""

    # usages
    @call(reads=True)
    def get_usages(self, uuid: str) -> ProviderUsages:
        """Return the usage of each class that the provider has."""

    @call(reads=True)
    def get_project_usages(self, query: PlacementUsageQuery) -> tuple[UsageGroup, ...]:
        """Return the usage of a project's (and user's) consumers, by their type."""

    # traits and classes
    @call(reads=True)
    def list_traits(self, query: TraitQuery) -> tuple[str, ...]:
        """Return the names of standard and custom traits, sorted."""

    @call()
    def create_trait(self, name: str) -> bool:
        """Create a trait, and return True; False if it exists already. Raises Invalid if the name is not a custom
        one."""

    @call()
    def delete_trait(self, name: str) -> None:
        """Delete a trait. Raises NotFound; Invalid for a standard one; Conflict if it is in use."""

    @call(reads=True)
    def get_provider_traits(self, uuid: str) -> ProviderTraits:
        """Return the traits of a provider, both reported and assigned ones."""

    @call()
    def set_provider_traits(self, wanted: ProviderTraits) -> ProviderTraits:
        """Replace all traits of a provider, until its host reports its own again."""

    @call(reads=True)
    def list_classes(self) -> tuple[str, ...]:
        """Return the standard classes, then the custom ones in the order of their creation."""

    @call()
    def create_class(self, name: str) -> bool:
        """Create a class, and return True; False if it exists already. Raises Invalid if the name is not a custom
        one."""

    @call()
    def rename_class(self, name: str, new_name: str) -> None:
        """Rename a class (before microversion 1.7). Raises NotFound; Invalid for a standard one; Conflict if the new
        name is taken."""

    @call()
    def delete_class(self, name: str) -> None:
        """Delete a class. Raises NotFound; Invalid for a standard one; Conflict if it is in use."""

    # aggregates
    @call(reads=True)
    def get_provider_aggregates(self, uuid: str) -> ProviderAggregates:
        """Return uuids of aggregates: the ones assigned here, and those of the host's aggregates."""

    @call()
    def set_provider_aggregates(self, wanted: ProviderAggregates) -> ProviderAggregates:
        """Replace the assigned aggregates. A host's membership in its aggregates belongs to the Compute API, and
        stays."""

    # allocations
    @call(reads=True)
    def get_provider_allocations(self, uuid: str) -> ProviderConsumers:
        """Return all consumers' allocations at one provider."""

    @call(reads=True)
    def get_allocations(self, consumer: str) -> ConsumerAllocations:
        """Return a consumer's allocations; empty if it has none."""

    @call()
    def set_allocations(self, wanted: tuple[ConsumerAllocations, ...]) -> None:
        """Write all of these allocations, or none. An entry without allocations releases all of its consumer. Raises
        Conflict for a lack of capacity, or a generation."""

    @call()
    def delete_allocations(self, consumer: str) -> None:
        """Delete a consumer's allocations. Raises NotFound if it has none."""

    @call()
    def reshape(self, wanted: Reshape) -> None:
        """Write inventories and allocations in one transaction."""

    @call(reads=True)
    def list_candidates(self, query: CandidateQuery) -> Candidates:
        """Return the allocation candidates for a request."""
