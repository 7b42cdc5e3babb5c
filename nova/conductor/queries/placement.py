"""PlacementRPC: resource providers and allocations, read and changed where claims are made.

Schedulers are updated about each change of a host's provider tree after its commit; missed updates arrive with the next
sweep.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TypeVar

from nova import failures
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
    """Return the service behind the topic ``placement``."""
    return assemble(PlacementRPC, Providers(deps), TraitsAndClasses(deps), Allocations(deps))


class _Part:
    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def _read(self, read: Callable[[Connection], T]) -> T:
        with self.deps.api.reading() as tx:
            return read(tx)

    def _change(self, change: Callable[[Connection], Iterable[Locked]]) -> None:
        """Run one transaction, then update the schedulers about hosts whose provider trees changed."""
        self._change_and_read(change, lambda tx: None)

    def _change_and_read(self, change: Callable[[Connection], Iterable[Locked]], read: Callable[[Connection], T]) -> T:
        """Change and return the new state, read in the same transaction, before other changes."""
        hosts, found = self.deps.api.transact(lambda tx: (locks.hosts_of(change(tx)), read(tx)))
        self._tell(hosts)
        return found

    def _tell(self, hosts: Iterable[str]) -> None:
        # it is committed: the periodic sweep sends it
        with failures.best_effort(LOG, "schedulers were not updated about changed resource providers: %s"):
            for host in hosts:
                self.deps.feed.host_changed(host)

    def _disabled(self) -> set[str]:
        """Return the hosts whose nodes have the trait COMPUTE_STATUS_DISABLED."""
        return set[str]().union(*self.deps.cells.read(services.closed_hosts))


class Providers(_Part):
    """Resource providers with their inventories, usages and aggregates."""

    def list_providers(self, query: ProviderQuery) -> tuple[Provider, ...]:
        """Return providers. Raises placement.NameUnknown for an unknown trait or class."""
        disabled = self._disabled() if query.group.required or query.group.forbidden else set()

        def read(tx: Connection) -> tuple[Provider, ...]:
            names.check(tx, [query.group])
            return providers.select(tx, query, disabled)
        return self._read(read)

    def get_provider(self, uuid: str) -> Provider:
        """Return a provider. Raises placement.ResourceProviderNotFound."""
        return self._read(lambda tx: providers.get(tx, uuid))

    def create_provider(self, new: NewProvider) -> Provider:
        """Create a provider. Raises placement.DuplicateName; placement.ResourceProviderBadParent if the parent is
        missing."""
        made, hosts = self.deps.api.transact(lambda tx: providers.insert(tx, new))
        self._tell(hosts)
        return made

    def update_provider(self, change: ProviderUpdate) -> Provider:
        """Change a provider's name or parent.

        Raises placement.ResourceProviderNotFound, placement.DuplicateName, placement.ResourceProviderBadParent;
        placement.ResourceProviderHostsOwn if it belongs to a host.
        """
        changed, hosts = self.deps.api.transact(lambda tx: providers.update(tx, change))
        self._tell(hosts)
        return changed

    def delete_provider(self, uuid: str) -> None:
        """Delete a provider.

        Raises placement.ResourceProviderNotFound, placement.ResourceProviderCannotDeleteParent,
        placement.ResourceProviderInuse; placement.ResourceProviderHostsOwn while its compute host exists.
        """
        gone = self._gone_host(uuid)
        self._tell(self.deps.api.transact(lambda tx: providers.delete(tx, uuid, gone)))

    def _gone_host(self, uuid: str) -> str:
        """Return the provider's host if that compute host no longer exists, else "". Its conductor died while it
        removed the host, or the providers were written in that moment."""
        found = self._read(lambda tx: locks.known(tx, [uuid])).get(uuid)
        if found is None or not found.own_host:
            return ""
        host = found.own_host
        for cell in self.deps.cells.all():  # one that does not answer may have the host
            with cell.cell.reading() as tx:
                if services.has_compute(tx, host):
                    return ""
        return host

    def get_inventories(self, uuid: str) -> ProviderInventories:
        """Return a provider's inventories. Raises placement.ResourceProviderNotFound."""
        return self._read(lambda tx: inventories.get(tx, uuid))

    def set_inventories(self, wanted: ProviderInventories) -> ProviderInventories:
        """Replace a provider's inventories and return the new ones. Inventories that a host reports return with its
        next report.

        Raises placement.ResourceProviderNotFound, placement.ConcurrentUpdate, placement.InventoryInuse,
        placement.InventoryInvalid.
        """
        return self._change_and_read(lambda tx: [inventories.replace(tx, wanted)],
                                     lambda tx: inventories.get(tx, wanted.uuid))

    def set_inventory(self, uuid: str, generation: int | None, inventory: ClassInventory, create: bool
                      ) -> ProviderInventories:
        """Set one inventory and return all inventories. ``generation`` None: do not check it.

        Raises placement.ResourceProviderNotFound, placement.ConcurrentUpdate, placement.InventoryExists,
        placement.InventoryMissing, placement.InventoryInvalid.
        """
        return self._change_and_read(lambda tx: [inventories.set_one(tx, uuid, generation, inventory, create)],
                                     lambda tx: inventories.get(tx, uuid))

    def delete_inventory(self, uuid: str, resource_class: str) -> None:
        """Delete an inventory. Raises placement.ResourceProviderNotFound, placement.InventoryNotFound,
        placement.InventoryInuse."""
        self._change(lambda tx: [inventories.delete(tx, uuid, resource_class)])

    def get_usages(self, uuid: str) -> ProviderUsages:
        """Return a provider's usages, also of classes it no longer has while consumers hold some. Raises
        placement.ResourceProviderNotFound."""
        return self._read(lambda tx: inventories.usages(tx, uuid))

    def get_provider_aggregates(self, uuid: str) -> ProviderAggregates:
        """Return a provider's aggregates. Raises placement.ResourceProviderNotFound."""
        return self._read(lambda tx: traits.get_aggregates(tx, uuid))

    def set_provider_aggregates(self, wanted: ProviderAggregates) -> ProviderAggregates:
        """Replace a provider's aggregates and return the new ones. Raises placement.ResourceProviderNotFound,
        placement.ConcurrentUpdate."""
        return self._change_and_read(lambda tx: [traits.replace_aggregates(tx, wanted)],
                                     lambda tx: traits.get_aggregates(tx, wanted.uuid))


class TraitsAndClasses(_Part):
    """The trait and resource class calls of PlacementRPC."""

    def list_traits(self, query: TraitQuery) -> tuple[str, ...]:
        """Return traits by name. ``associated``: only traits with a provider, or only traits without one;
        COMPUTE_STATUS_DISABLED counts too."""
        disabled = query.associated is not None and bool(self._disabled())
        return self._read(lambda tx: names.traits(tx, query, disabled))

    def create_trait(self, name: str) -> bool:
        """Create a trait; return False if it exists already. Raises placement.NameInvalid, placement.NameStandard."""
        return self.deps.api.transact(lambda tx: names.create_trait(tx, name))

    def delete_trait(self, name: str) -> None:
        """Delete a trait. Raises placement.NameStandard, placement.NameNotFound, placement.NameInuse."""
        self.deps.api.transact(lambda tx: names.delete_trait(tx, name))

    def get_provider_traits(self, uuid: str) -> ProviderTraits:
        """Return a provider's traits; COMPUTE_STATUS_DISABLED is derived from the host's service. Raises
        placement.ResourceProviderNotFound."""
        disabled = self._disabled()
        return self._read(lambda tx: traits.get(tx, uuid, disabled))

    def set_provider_traits(self, wanted: ProviderTraits) -> ProviderTraits:
        """Replace a provider's traits and return the new ones. Raises placement.ResourceProviderNotFound,
        placement.ConcurrentUpdate, placement.TraitUnknown."""
        disabled = self._disabled()
        return self._change_and_read(lambda tx: [one for one in [traits.replace(tx, wanted)] if one is not None],
                                     lambda tx: traits.get(tx, wanted.uuid, disabled))

    def list_classes(self) -> tuple[str, ...]:
        """Return standard classes, then custom classes in the order of creation, then classes that only hosts
        report."""
        return self._read(names.classes)

    def create_class(self, name: str) -> bool:
        """Create a class; return False if it exists already. Raises placement.NameInvalid, placement.NameStandard."""
        return self.deps.api.transact(lambda tx: names.create_class(tx, name))

    def rename_class(self, name: str, new_name: str) -> None:
        """Rename a class, with its inventories and allocations. Raises placement.NameStandard, placement.NameInvalid,
        placement.NameNotFound, placement.NameTaken."""
        self.deps.api.transact(lambda tx: names.rename_class(tx, name, new_name))

    def delete_class(self, name: str) -> None:
        """Delete a class. Raises placement.NameStandard, placement.NameNotFound, placement.NameInuse."""
        self.deps.api.transact(lambda tx: names.delete_class(tx, name))


class Allocations(_Part):
    """Allocations of consumers, and allocation candidates."""

    def get_provider_allocations(self, uuid: str) -> ProviderConsumers:
        """Return a provider's allocations. Raises placement.ResourceProviderNotFound."""
        return self._read(lambda tx: allocations.of_provider(tx, uuid))

    def get_allocations(self, consumer: str) -> ConsumerAllocations:
        """Return a consumer's allocations; an unknown consumer has none."""
        return self._read(lambda tx: allocations.of_consumer(tx, consumer))

    def set_allocations(self, wanted: tuple[ConsumerAllocations, ...]) -> None:
        """Replace the allocations of consumers.

        Raises placement.AllocationInvalid, placement.ResourceClassUnknown, placement.AllocationUnknownProvider,
        placement.AllocationNoRoom, placement.ConsumerChanged; placement.AllocationServers, because a server's
        allocations only change with the server.
        """
        self._change(lambda tx: consumers.replace(tx, wanted))

    def delete_allocations(self, consumer: str) -> None:
        """Delete a consumer's allocations. Raises placement.AllocationNotFound; placement.AllocationServers for a
        server."""
        self._change(lambda tx: consumers.delete(tx, consumer))

    def reshape(self, wanted: Reshape) -> None:
        """Write inventories, then check and write allocations. Raises the errors of both."""
        self._change(lambda tx: consumers.reshape(tx, wanted))

    def get_project_usages(self, query: PlacementUsageQuery) -> tuple[UsageGroup, ...]:
        """Return the sums of all allocations of a project's (and user's) consumers."""
        return self._read(lambda tx: allocations.project_usages(tx, query))

    def list_candidates(self, query: CandidateQuery) -> Candidates:
        """Return allocation candidates in the order in which their provider trees were created. Raises
        placement.NameUnknown for an unknown trait or class."""
        disabled = self._disabled()
        wanted = query.request

        def read(tx: Connection) -> Candidates:
            names.check(tx, wanted.groups, (*wanted.root_required, *wanted.root_forbidden))
            return candidates.select(tx, query, disabled)
        return self._read(read)
