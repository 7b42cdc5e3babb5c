"""nova-network's networks, as its API asks for them."""

from __future__ import annotations

from nova.conductor.world import World
from nova.db import networks, services
from nova.db.engine import Connection
from nova.model import addressing
from nova.model.base import Scope
from nova.model.networks import Network, NewNetwork
from nova.model.services import ServiceQuery


class Networks:
    """The calls of NetworkCalls."""

    def __init__(self, world: World) -> None:
        self.world = world

    def list_networks(self, scope: Scope) -> tuple[Network, ...]:
        with self.world.cell.reading() as tx:
            return networks.select(tx, scope)

    def get_network(self, uuid: str, scope: Scope) -> Network:
        with self.world.cell.reading() as tx:
            return networks.get(tx, uuid, scope)

    def create_network(self, network: NewNetwork) -> tuple[Network, ...]:
        def make(tx: Connection) -> set[str]:
            plan = addressing.plan(network, networks.select(tx, Scope()), self.world.settings.network_defaults)
            networks.insert(tx, plan.networks)
            hosts = [row.host for row, _clock in services.select(tx, ServiceQuery(binary="nova-network"))]
            if hosts:
                networks.claim_unhosted(tx, hosts[0])
            return {planned.network.uuid for planned in plan.networks}
        made = self.world.cell.transact(make)
        return tuple(one for one in self.list_networks(Scope()) if one.uuid in made)

    def delete_network(self, uuid: str) -> None:
        self.world.cell.transact(lambda tx: networks.delete(tx, uuid))
