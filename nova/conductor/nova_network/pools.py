"""nova-network's networks, as its API and nova-manage ask for them."""

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
    """The calls of NetworkCalls, and of InterfaceCalls those about single addresses."""

    def __init__(self, deps: Deps, addresses: Addresses) -> None:
        super().__init__(deps, addresses)
        self.options = deps.settings.networking

    def list_networks(self, scope: Scope) -> tuple[Network, ...]:
        """The scope's own and those of nobody, by priority, then by age; without a project, all."""
        with self.deps.cell.reading() as tx:
            return networks.select(tx, scope)

    def get_network(self, uuid: str, scope: Scope) -> Network:
        """network.NotFound, also outside the scope."""
        with self.deps.cell.reading() as tx:
            return networks.get(tx, uuid, scope)

    def create_network(self, network: NewNetwork) -> tuple[Network, ...]:
        """A network that a project makes for itself (``by_project``) counts, where networks are counted.
        network.BridgeHasNetwork, service.NotAProject."""
        check_project(self.deps, network.project_id)
        limit = self._limit(network)

        def make(tx: Connection) -> set[str]:
            if limit != UNLIMITED:
                self._check_quota(tx, network, limit)
            network_quota.lock_owner(tx, "networks:new")  # two at once would take the same range and VLAN
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
        """Whoever comes next may use its bridge and range at once: its hosts give them up first, if they can."""
        self.deps.network_updates.look_anew(self.deps.cell.transact(lambda tx: networks.delete(tx, uuid)))

    def delete_own_network(self, uuid: str, project_id: str) -> None:
        """network.NotFound, also when it is nobody's; network.InUse. Its hosts give it up, if they can."""
        def remove(tx: Connection) -> set[str]:
            if networks.get(tx, uuid, Scope(project_id=project_id)).project_id != project_id:
                raise errors.network.NotFound(network_id=uuid)  # it is nobody's, and so not the project's to delete
            network_pools.change(tx, uuid, {"project_id": None})
            return networks.delete(tx, uuid)
        self.deps.network_updates.look_anew(self.deps.cell.transact(remove))

    def change_network(self, change: NetworkChange) -> Network:
        """Hosts that are away learn it when they next ask for all of their networks."""
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
        if before.host and before.host != after.host:  # before the new one has the same addresses
            self.deps.network_updates.look_anew({before.host})
        if "host" in fields and after.host:
            self.addresses.update_hosts({after.uuid}, {after.host})
        return after

    def add_network_to_project(self, uuid: str | None, project_id: str) -> Network:
        """``uuid`` None: any that is nobody's. network.NotFound, network.OfAnother, network.NoneFree; network.NoOwners:
        with this manager, networks are everybody's."""
        if not self.options.manager.per_project:
            raise errors.network.NoOwners(manager=self.options.manager.path)
        return self.deps.cell.transact(lambda tx: network_pools.add_to_project(tx, uuid, project_id))

    def used(self, project_id: str) -> dict[str, int]:
        """What quota counts of all that nova-network has. With VlanManager, addresses are not counted."""
        with self.deps.cell.reading() as tx:
            counted = network_usage.used(tx, project_id)
        return counted if self.options.manager.charges_quota else {**counted, "fixed_ips": 0}


__all__ = ["Networks"]
