"""PlacementRPC: providers and what is held of them, read and changed in the one place where claims are made.

Schedulers are told of each change in a host's tree, after it is committed; what they miss comes with the next sweep.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TypeVar

from nova import errors
from nova.conductor.assembled import Assembled, assemble
from nova.conductor.engine.deps import Deps
from nova.db.host import services
from nova.db.placement import (
    allocations,
    candidates,
    consumers,
    inventories,
    locks,
    names,
    providers,
    traits,
)
from nova.db.placement.locks import Locked
from nova.db.sql.engine import Connection
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
from nova.rpc.contracts.placement import PlacementRPC

LOG = logging.getLogger(__name__)
T = TypeVar("T")


def placement_service(deps: Deps) -> Assembled:
    """The service behind the topic ``placement``."""
    return assemble(PlacementRPC, Providers(deps), TraitsAndClasses(deps), Allocations(deps))


class _Part:
    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def _read(self, read: Callable[[Connection], T]) -> T:
        with self.deps.api.reading() as tx:
            return read(tx)

    def _change(self, change: Callable[[Connection], Iterable[Locked]]) -> None:
        """One transaction; then the schedulers hear of the hosts whose trees changed."""
        self._change_and_read(change, lambda tx: None)

    def _change_and_read(self, change: Callable[[Connection], Iterable[Locked]], read: Callable[[Connection], T]) -> T:
        """The same, and what is there after it: read before anybody else changes it."""
        hosts, found = self.deps.api.transact(lambda tx: (locks.hosts_of(change(tx)), read(tx)))
        self._tell(hosts)
        return found

    def _tell(self, hosts: Iterable[str]) -> None:
        try:
            for host in hosts:
                self.deps.feed.host_changed(host)
        except errors.NovaError as error:  # it is committed: the periodic sweep tells it
            LOG.warning("schedulers were not told of changed resource providers: %s", error)

    def _disabled(self) -> set[str]:
        """Hosts whose nodes have the trait COMPUTE_STATUS_DISABLED."""
        with self.deps.cell.reading() as tx:
            return services.closed_hosts(tx)


class Providers(_Part):
    """Providers, and what each has."""

    def list_providers(self, query: ProviderQuery) -> tuple[Provider, ...]:
        """placement.NameUnknown: a trait or class that nobody has heard of."""
        disabled = self._disabled() if query.group.required or query.group.forbidden else set()

        def read(tx: Connection) -> tuple[Provider, ...]:
            names.check(tx, [query.group])
            return providers.select(tx, query, disabled)
        return self._read(read)

    def get_provider(self, uuid: str) -> Provider:
        """placement.ResourceProviderNotFound."""
        return self._read(lambda tx: providers.get(tx, uuid))

    def create_provider(self, new: NewProvider) -> Provider:
        """placement.DuplicateName; placement.ResourceProviderBadParent: there is no such parent."""
        made, hosts = self.deps.api.transact(lambda tx: providers.insert(tx, new))
        self._tell(hosts)
        return made

    def update_provider(self, change: ProviderUpdate) -> Provider:
        """placement.ResourceProviderNotFound, placement.DuplicateName, placement.ResourceProviderBadParent;
        placement.ResourceProviderHostsOwn: it is a host's."""
        changed, hosts = self.deps.api.transact(lambda tx: providers.update(tx, change))
        self._tell(hosts)
        return changed

    def delete_provider(self, uuid: str) -> None:
        """placement.ResourceProviderNotFound, placement.ResourceProviderCannotDeleteParent,
        placement.ResourceProviderInuse; placement.ResourceProviderHostsOwn, while there is such a compute host."""
        gone = self._gone_host(uuid)
        self._tell(self.deps.api.transact(lambda tx: providers.delete(tx, uuid, gone)))

    def _gone_host(self, uuid: str) -> str:
        """The provider's host, where there is no such compute host any more: its conductor died while it was taken
        out, or somebody wrote to its providers in that moment."""
        found = self._read(lambda tx: locks.known(tx, [uuid])).get(uuid)
        if found is None or not found.own_host:
            return ""
        with self.deps.cell.reading() as tx:
            return "" if services.has_compute(tx, found.own_host) else found.own_host

    def get_inventories(self, uuid: str) -> ProviderInventories:
        """placement.ResourceProviderNotFound."""
        return self._read(lambda tx: inventories.get(tx, uuid))

    def set_inventories(self, wanted: ProviderInventories) -> ProviderInventories:
        """What is there after it. placement.ResourceProviderNotFound, placement.ConcurrentUpdate,
        placement.InventoryInuse, placement.InventoryInvalid. What a host reports itself comes with its next report."""
        return self._change_and_read(lambda tx: [inventories.replace(tx, wanted)],
                                     lambda tx: inventories.get(tx, wanted.uuid))

    def set_inventory(self, uuid: str, generation: int | None, inventory: ClassInventory, create: bool
                      ) -> ProviderInventories:
        """All inventories after it. ``generation`` None: whatever it is. placement.ResourceProviderNotFound,
        placement.ConcurrentUpdate, placement.InventoryExists, placement.InventoryMissing,
        placement.InventoryInvalid."""
        return self._change_and_read(lambda tx: [inventories.set_one(tx, uuid, generation, inventory, create)],
                                     lambda tx: inventories.get(tx, uuid))

    def delete_inventory(self, uuid: str, resource_class: str) -> None:
        """placement.ResourceProviderNotFound, placement.InventoryNotFound, placement.InventoryInuse."""
        self._change(lambda tx: [inventories.delete(tx, uuid, resource_class)])

    def get_usages(self, uuid: str) -> ProviderUsages:
        """Of classes that it has no more, too, as long as somebody holds some. placement.ResourceProviderNotFound."""
        return self._read(lambda tx: inventories.usages(tx, uuid))

    def get_provider_aggregates(self, uuid: str) -> ProviderAggregates:
        """placement.ResourceProviderNotFound."""
        return self._read(lambda tx: traits.get_aggregates(tx, uuid))

    def set_provider_aggregates(self, wanted: ProviderAggregates) -> ProviderAggregates:
        """What is there after it. placement.ResourceProviderNotFound, placement.ConcurrentUpdate."""
        return self._change_and_read(lambda tx: [traits.replace_aggregates(tx, wanted)],
                                     lambda tx: traits.get_aggregates(tx, wanted.uuid))


class TraitsAndClasses(_Part):
    """Traits and resource classes."""

    def list_traits(self, query: TraitQuery) -> tuple[str, ...]:
        """By name. ``associated``: those that some provider has, or none has; COMPUTE_STATUS_DISABLED counts, too."""
        disabled = query.associated is not None and bool(self._disabled())
        return self._read(lambda tx: names.traits(tx, query, disabled))

    def create_trait(self, name: str) -> bool:
        """False: it was there already. placement.NameInvalid, placement.NameStandard."""
        return self.deps.api.transact(lambda tx: names.create_trait(tx, name))

    def delete_trait(self, name: str) -> None:
        """placement.NameStandard, placement.NameNotFound, placement.NameInuse."""
        self.deps.api.transact(lambda tx: names.delete_trait(tx, name))

    def get_provider_traits(self, uuid: str) -> ProviderTraits:
        """placement.ResourceProviderNotFound. COMPUTE_STATUS_DISABLED follows from the host's service."""
        disabled = self._disabled()
        return self._read(lambda tx: traits.get(tx, uuid, disabled))

    def set_provider_traits(self, wanted: ProviderTraits) -> ProviderTraits:
        """What is there after it. placement.ResourceProviderNotFound, placement.ConcurrentUpdate,
        placement.TraitUnknown."""
        disabled = self._disabled()
        return self._change_and_read(lambda tx: [one for one in [traits.replace(tx, wanted)] if one is not None],
                                     lambda tx: traits.get(tx, wanted.uuid, disabled))

    def list_classes(self) -> tuple[str, ...]:
        """Standard classes, then custom classes in the order of their making, then those that hosts alone know."""
        return self._read(names.classes)

    def create_class(self, name: str) -> bool:
        """False: it was there already. placement.NameInvalid, placement.NameStandard."""
        return self.deps.api.transact(lambda tx: names.create_class(tx, name))

    def rename_class(self, name: str, new_name: str) -> None:
        """With all that is said of it. placement.NameStandard, placement.NameInvalid, placement.NameNotFound,
        placement.NameTaken."""
        self.deps.api.transact(lambda tx: names.rename_class(tx, name, new_name))

    def delete_class(self, name: str) -> None:
        """placement.NameStandard, placement.NameNotFound, placement.NameInuse."""
        self.deps.api.transact(lambda tx: names.delete_class(tx, name))


class Allocations(_Part):
    """Who holds what, and who might."""

    def get_provider_allocations(self, uuid: str) -> ProviderConsumers:
        """placement.ResourceProviderNotFound."""
        return self._read(lambda tx: allocations.of_provider(tx, uuid))

    def get_allocations(self, consumer: str) -> ConsumerAllocations:
        """A consumer that has nothing is no error."""
        return self._read(lambda tx: allocations.of_consumer(tx, consumer))

    def set_allocations(self, wanted: tuple[ConsumerAllocations, ...]) -> None:
        """placement.AllocationInvalid, placement.ResourceClassUnknown, placement.AllocationUnknownProvider,
        placement.AllocationNoRoom, placement.ConsumerChanged; placement.AllocationServers: a server's change with the
        server alone."""
        self._change(lambda tx: consumers.replace(tx, wanted))

    def delete_allocations(self, consumer: str) -> None:
        """placement.AllocationNotFound; placement.AllocationServers: a server's go with the server alone."""
        self._change(lambda tx: consumers.delete(tx, consumer))

    def reshape(self, wanted: Reshape) -> None:
        """Inventories are written before allocations are looked at. Errors as of both."""
        self._change(lambda tx: consumers.reshape(tx, wanted))

    def get_project_usages(self, query: PlacementUsageQuery) -> tuple[UsageGroup, ...]:
        """Sums of all that a project's (and user's) consumers hold."""
        return self._read(lambda tx: allocations.project_usages(tx, query))

    def list_candidates(self, query: CandidateQuery) -> Candidates:
        """In the order of their trees' making. placement.NameUnknown: a trait or class that nobody has heard of."""
        disabled = self._disabled()
        wanted = query.request

        def read(tx: Connection) -> Candidates:
            names.check(tx, wanted.groups, (*wanted.root_required, *wanted.root_forbidden))
            return candidates.select(tx, query, disabled)
        return self._read(read)
