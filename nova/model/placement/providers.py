"""Resource providers, their inventories and allocations, and requests, in the terms of Placement.

A provider is a node of a host, a part of one (a PCI device, a NIC's bandwidth), or a resource that another client
registered by Placement's API. Providers form trees. A consumer is a server, a migration of one, or any other client
with allocations.

Source: the public reference of the Placement API.
"""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import Time, Value

Traits = tuple[str, ...]

# -- states, for schedulers and claims


class Amount(Value):
    """Inventory and usage of one resource class of a provider. ``capacity`` already includes ratio and reservation."""

    capacity: int
    used: int = 0
    min_unit: int = 1
    max_unit: int
    step_size: int = 1

    def has_room(self, amount: int) -> bool:
        """Return whether the amount can be allocated in one step."""
        return self.used + amount <= self.capacity and self.allows(amount)

    def allows(self, amount: int) -> bool:
        """Return whether the inventory's units allow the amount in one step, available or not."""
        return self.min_unit <= amount <= self.max_unit and amount % self.step_size == 0


class ProviderState(Value):
    """A provider of a tree, with its usage. ``parent_id`` None: the tree's root."""

    id: int
    uuid: str
    name: str = ""
    parent_id: int | None = None
    amounts: Mapping[str, Amount] = {}  # by resource class
    traits: Traits = ()
    aggregates: tuple[str, ...] = ()  # uuids


class RequestGroup(Value):
    """Resources from one provider; those of the unnamed group (suffix "") may come from any providers of the tree.

    ``required`` and ``member_of``: at least one of each tuple. ``in_tree``: uuid of any provider of the tree.
    """

    suffix: str = ""
    resources: Mapping[str, int] = {}
    required: tuple[Traits, ...] = ()
    forbidden: Traits = ()
    member_of: tuple[tuple[str, ...], ...] = ()
    not_member_of: tuple[str, ...] = ()
    in_tree: str | None = None


MOST_PARTS = 200  # of a request; see ResourceRequest.parts


class ResourceRequest(Value):
    """Groups that one consumer requests together. ``group_policy`` isolate: no two named groups share a provider, even
    if a group only requires traits.

    ``same_subtree``: suffixes whose providers have one of them as their common ancestor. ``root_required`` and
    ``root_forbidden`` are traits of the tree's root.
    """

    groups: tuple[RequestGroup, ...] = ()
    group_policy: str = "none"
    same_subtree: tuple[tuple[str, ...], ...] = ()
    root_required: Traits = ()
    root_forbidden: Traits = ()

    @property
    def parts(self) -> int:
        """The number of slots that need a provider each."""
        return sum(1 if group.suffix else len(group.resources) for group in self.groups)


# -- a host's own reports


class ClassInventory(Value):
    """A provider's inventory of one class, as reported by a host or written by Placement's API."""

    resource_class: str
    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = 2147483647
    step_size: int = 1
    allocation_ratio: float = 1.0


class ChildProvider(Value):
    """A provider inside a node. ``parent``: the name of another child; empty: the node itself. Each child has its own
    ``uuid``, which is the same in every report."""

    name: str
    uuid: str
    parent: str = ""
    inventories: tuple[ClassInventory, ...] = ()
    traits: Traits = ()


# -- Placement's API


class Provider(Value):
    """A provider as Placement's API shows it."""

    uuid: str
    name: str
    generation: int = 0
    parent_uuid: str | None = None
    root_uuid: str = ""
    updated_at: Time | None = None


class ProviderQuery(Value):
    """Conditions for providers, all of which must hold. ``group``: free amounts, traits, aggregates and tree (its
    suffix is ignored)."""

    name: str | None = None
    uuid: str | None = None
    group: RequestGroup = RequestGroup()


class NewProvider(Value):
    uuid: str
    name: str
    parent_uuid: str | None = None


class ProviderUpdate(Value):
    """A new name and parent. ``may_reparent``: an existing parent may be changed (from 1.37)."""

    uuid: str
    name: str
    parent_uuid: str | None = None
    parent_asked: bool = False
    may_reparent: bool = False


class ProviderInventories(Value):
    """All inventories of a provider. To write them, set ``generation`` to the value that was read."""

    uuid: str
    generation: int | None = None
    inventories: tuple[ClassInventory, ...] = ()


class ProviderUsages(Value):
    uuid: str
    generation: int
    used: Mapping[str, int] = {}


class UsageGroup(Value):
    """Usage of one type of consumer in a project. ``consumer_type`` "all" (before 1.38) or "unknown" are types too."""

    consumer_type: str
    consumers: int
    used: Mapping[str, int] = {}


class PlacementUsageQuery(Value):
    """Query for usage in a project. ``consumer_type`` None: every type, one group each; "all": one group for all."""

    project_id: str
    user_id: str | None = None
    consumer_type: str | None = "all"


class ProviderTraits(Value):
    """A provider's traits. To write them, set ``generation`` to the value that was read; None: not checked."""

    uuid: str
    generation: int | None = None
    traits: Traits = ()


class TraitQuery(Value):
    """Filters of a trait list. ``associated``: only traits that some provider has (True), or that no provider has
    (False)."""

    names: tuple[str, ...] | None = None
    prefix: str | None = None
    associated: bool | None = None


class ProviderAggregates(Value):
    """A provider's aggregates. ``generation`` None: not checked (before 1.19)."""

    uuid: str
    generation: int | None = None
    aggregates: tuple[str, ...] = ()


class ProviderAllocation(Value):
    """Allocation of one consumer on one provider."""

    provider_uuid: str
    resources: Mapping[str, int]
    generation: int = 0
    mappings: tuple[str, ...] = ()  # suffixes of the groups that it meets


class ConsumerAllocations(Value):
    """All allocations of a consumer. ``generation`` None: it must not exist yet; -1: not checked (before 1.28)."""

    consumer: str
    allocations: tuple[ProviderAllocation, ...] = ()
    project_id: str = ""
    user_id: str = ""
    consumer_type: str | None = None
    generation: int | None = -1


class ProviderConsumers(Value):
    """Allocations of all consumers on one provider."""

    uuid: str
    generation: int
    consumers: tuple[ConsumerAllocations, ...] = ()


class Reshape(Value):
    """Inventories and allocations that change in one transaction."""

    inventories: tuple[ProviderInventories, ...] = ()
    allocations: tuple[ConsumerAllocations, ...] = ()


class CandidateQuery(Value):
    """Query for allocation candidates. ``limit`` None: all. ``nested``: allow several providers of a tree (from
    1.29)."""

    request: ResourceRequest
    limit: int | None = None
    nested: bool = True


class Candidate(Value):
    """An allocation candidate for a request. ``mappings``: suffix -> uuids of the providers that meet the group."""

    allocations: tuple[ProviderAllocation, ...]
    mappings: Mapping[str, tuple[str, ...]] = {}


class ProviderSummary(Value):
    """A provider of the candidates' trees. ``amounts``: its inventories, by class."""

    uuid: str
    parent_uuid: str | None
    root_uuid: str
    amounts: Mapping[str, Amount] = {}
    traits: Traits = ()


class Candidates(Value):
    candidates: tuple[Candidate, ...] = ()
    summaries: tuple[ProviderSummary, ...] = ()
