"""What Placement's API may ask of the conductor: resource providers and who holds what of them."""

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
    """The one truth that claims are made in, as Placement shows it. Who may ask was decided before.

    NotFound: what the path names. Conflict: a generation that is not the current one, something in use, a name taken.
    Invalid: an unknown trait or class, amounts that cannot be. What hosts and servers hold is theirs: their providers
    cannot be deleted, and servers' allocations change with servers alone (Conflict says how).
    """

    topic, version = "placement", "1.0"

    # providers
    @call(reads=True)
    def list_providers(self, query: ProviderQuery) -> tuple[Provider, ...]:
        """Providers that meet all conditions, the oldest first."""

    @call(reads=True)
    def get_provider(self, uuid: str) -> Provider:
        """NotFound."""

    @call()
    def create_provider(self, new: NewProvider) -> Provider:
        """Conflict: name or uuid taken. Invalid: no such parent."""

    @call()
    def update_provider(self, change: ProviderUpdate) -> Provider:
        """Rename, or put below another. Invalid: a parent that is no provider, is itself below, or may not change."""

    @call()
    def delete_provider(self, uuid: str) -> None:
        """Conflict: it has allocations or children, or is a host's that there is."""

    # inventories
    @call(reads=True)
    def get_inventories(self, uuid: str) -> ProviderInventories:
        """All of a provider's."""

    @call()
    def set_inventories(self, wanted: ProviderInventories) -> ProviderInventories:
        """These, and no others. Conflict: the generation is another by now, or a class in use would go."""

    @call()
    def set_inventory(self, uuid: str, generation: int | None, inventory: ClassInventory, create: bool
                      ) -> ProviderInventories:
        """One class. ``create``: Conflict when it is there; else NotFound when it is not."""

    @call()
    def delete_inventory(self, uuid: str, resource_class: str) -> None:
        """NotFound: it has none of that class. Conflict: in use."""

    # usages
    @call(reads=True)
    def get_usages(self, uuid: str) -> ProviderUsages:
        """What is used of each class that the provider has."""

    @call(reads=True)
    def get_project_usages(self, query: PlacementUsageQuery) -> tuple[UsageGroup, ...]:
        """What a project's (and user's) consumers use, by their type."""

    # traits and classes
    @call(reads=True)
    def list_traits(self, query: TraitQuery) -> tuple[str, ...]:
        """Names in their order, standard ones and custom ones."""

    @call()
    def create_trait(self, name: str) -> bool:
        """False: it was there already. Invalid: not a custom name."""

    @call()
    def delete_trait(self, name: str) -> None:
        """NotFound. Invalid: a standard one. Conflict: in use."""

    @call(reads=True)
    def get_provider_traits(self, uuid: str) -> ProviderTraits:
        """What a provider has, reported and given."""

    @call()
    def set_provider_traits(self, wanted: ProviderTraits) -> ProviderTraits:
        """These, and no others, until its host reports its own again."""

    @call(reads=True)
    def list_classes(self) -> tuple[str, ...]:
        """Standard ones, then custom ones in the order of their making."""

    @call()
    def create_class(self, name: str) -> bool:
        """False: it was there already. Invalid: not a custom name."""

    @call()
    def rename_class(self, name: str, new_name: str) -> None:
        """Before 1.7. NotFound. Invalid: a standard one. Conflict: the new name is taken."""

    @call()
    def delete_class(self, name: str) -> None:
        """NotFound. Invalid: a standard one. Conflict: in use."""

    # aggregates
    @call(reads=True)
    def get_provider_aggregates(self, uuid: str) -> ProviderAggregates:
        """Uuids: those given here, and of the aggregates that a host is in."""

    @call()
    def set_provider_aggregates(self, wanted: ProviderAggregates) -> ProviderAggregates:
        """These, and no others; membership of a host in its aggregates is the Compute API's, and stays."""

    # allocations
    @call(reads=True)
    def get_provider_allocations(self, uuid: str) -> ProviderConsumers:
        """What consumers have of one provider."""

    @call(reads=True)
    def get_allocations(self, consumer: str) -> ConsumerAllocations:
        """What a consumer has; nothing when it has nothing."""

    @call()
    def set_allocations(self, wanted: tuple[ConsumerAllocations, ...]) -> None:
        """All of them, or none. One without allocations gives everything back. Conflict: no room, or a generation."""

    @call()
    def delete_allocations(self, consumer: str) -> None:
        """NotFound: it has none."""

    @call()
    def reshape(self, wanted: Reshape) -> None:
        """Inventories and allocations in one transaction."""

    @call(reads=True)
    def list_candidates(self, query: CandidateQuery) -> Candidates:
        """Ways to meet a request."""
