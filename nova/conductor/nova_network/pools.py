"""Networks of nova-network, as its API and nova-manage show and change them."""

from __future__ import annotations

from nova import errors
from nova.conductor.engine.deps import Deps
from nova.conductor.nova_network.addresses import Addresses
from nova.conductor.nova_network.fixed_addresses import FixedAddresses
from nova.conductor.quota import quota
from nova.conductor.quota.projects import check_project
from nova.db.host import services
from nova.db.network import network_pools, network_quota, network_usage, networks
from nova.db.sql.engine import Connection
from nova.model.base import Scope
from nova.model.host.services import ServiceQuery
from nova.model.network import addressing, bridges
from nova.model.network.networks import Network, NetworkChange, NewNetwork
from nova.model.quota.quotas import UNLIMITED

RESOURCE = "networks"


class Networks(FixedAddresses):
    """The calls of NetworkCalls, and the calls of InterfaceCalls about single addresses."""

    def __init__(self, deps: Deps, addresses: Addresses) -> None:
        super().__init__(deps, addresses)
        self.options = deps.settings.networking

    def list_networks(self, scope: Scope) -> tuple[Network, ...]:
        """Return the scope's own networks and the ones without a project, by priority, then by age; without a project
        in the scope, all."""
        with self.deps.cell.reading() as tx:
            return networks.select(tx, scope)

    def get_network(self, uuid: str, scope: Scope) -> Network:
        """Return one network. Raises network.NotFound, also outside the scope."""
        with self.deps.cell.reading() as tx:
            return networks.get(tx, uuid, scope)

    def create_network(self, network: NewNetwork) -> tuple[Network, ...]:
        """Create networks. A project's own request (``by_project``) counts against its quota, if networks are counted.
        Raises network.BridgeHasNetwork, service.NotAProject."""
        check_project(self.deps, network.project_id)
        limit = self._limit(network)

        def make(tx: Connection) -> set[str]:
            if limit != UNLIMITED:
                self._check_quota(tx, network, limit)
            network_quota.lock_owner(tx, "networks:new")  # concurrent creates would take the same range and VLAN
            present = networks.select(tx, Scope())
            plan = addressing.plan(network, present, self.deps.settings.network_defaults)
            if self.options.manager.dhcp:
                bridges.check([planned.network for planned in plan.networks],
                              sorted(present, key=lambda one: one.id))
            networks.insert(tx, plan.networks)
            hosts = [row.host for row, _clock in services.select(tx, ServiceQuery(binary="nova-network"))]
            if hosts:
                networks.claim_unhosted(tx, hosts[0])
            return {planned.network.uuid for planned in plan.networks}
        made = self.deps.cell.transact(make)
        return tuple(one for one in self.list_networks(Scope()) if one.uuid in made)

    def _limit(self, network: NewNetwork) -> int:
        if not (network.by_project and network.project_id and self.options.enable_network_quota):
            return UNLIMITED
        whose = quota.owner(self.deps, network.project_id, None)
        with self.deps.api.reading() as tx:
            project, _user = quota.effective(self.deps, tx, whose)
        return project.get(RESOURCE, UNLIMITED)

    @staticmethod
    def _check_quota(tx: Connection, network: NewNetwork, limit: int) -> None:
        project = network.project_id or ""
        network_quota.lock_owner(tx, project)
        if not quota.fits(limit, network_pools.owned(tx, project), network.num_networks):
            raise errors.network.OverQuota(limit=limit)

    def delete_network(self, uuid: str) -> None:
        """Delete a network. Its hosts release it first, if they can: its bridge and range may be reused immediately."""
        self.deps.network_updates.refresh_host(self.deps.cell.transact(lambda tx: networks.delete(tx, uuid)))

    def delete_own_network(self, uuid: str, project_id: str) -> None:
        """Delete a project's own network; its hosts release it, if they can. Raises network.NotFound, also if it has no
        project; network.InUse."""
        def remove(tx: Connection) -> set[str]:
            if networks.get(tx, uuid, Scope(project_id=project_id)).project_id != project_id:
                raise errors.network.NotFound(network_id=uuid)  # it has no project, so the project may not delete it
            network_pools.change(tx, uuid, {"project_id": None})
            return networks.delete(tx, uuid)
        self.deps.network_updates.refresh_host(self.deps.cell.transact(remove))

    def change_network(self, change: NetworkChange) -> Network:
        """Change a network. Unreachable hosts learn of it when they next read all of their networks."""
        if not (self.options.manager.per_project or change.forced):
            raise errors.network.NoOwners(manager=self.options.manager.path)
        fields = {name: getattr(change, name) for name in change.fields}
        check_project(self.deps, fields.get("project_id"))

        def write(tx: Connection) -> tuple[Network, Network]:
            before, after = network_pools.change(tx, change.uuid, fields)
            if before.host != after.host:
                networks.serve_floating(tx, after.host, change.uuid)
            return before, after
        before, after = self.deps.cell.transact(write)
        if before.host and before.host != after.host:  # before the new host has the same addresses
            self.deps.network_updates.refresh_host({before.host})
        if "host" in fields and after.host:
            self.addresses.update_hosts({after.uuid}, {after.host})
        return after

    def add_network_to_project(self, uuid: str | None, project_id: str) -> Network:
        """Assign a network to a project (``uuid`` None: any free one). Raises network.NotFound, network.OfAnother,
        network.NoneFree; network.NoOwners if this manager's networks have no projects."""
        if not self.options.manager.per_project:
            raise errors.network.NoOwners(manager=self.options.manager.path)
        return self.deps.cell.transact(lambda tx: network_pools.add_to_project(tx, uuid, project_id))

    def used(self, project_id: str) -> dict[str, int]:
        """Return the project's usage of nova-network's resources. With VlanManager, addresses are not counted."""
        with self.deps.cell.reading() as tx:
            counted = network_usage.used(tx, project_id)
        return counted if self.options.manager.charges_quota else {**counted, "fixed_ips": 0}


__all__ = ["Networks"]
