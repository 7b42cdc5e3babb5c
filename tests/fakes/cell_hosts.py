"""A cell conductor beside a small cloud, over the same cell database: the cloud's own conductor is the super one."""

from __future__ import annotations

from typing import Any

from nova.conductor.cells.carrying import Carrying
from nova.conductor.cells.cell_parts import CarriedApiSide, CarriedFeed, LeftOperations, NoApiDatabase, NoClient
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.journal import Journal
from nova.conductor.host_service import HostService
from nova.conductor.hosts.registration import ServiceRegistry
from nova.conductor.nova_network.network_updates import NetworkUpdates
from nova.model.host.hosts import Inventory, Node
from nova.model.host.services import Registration
from tests.fakes.small_cloud import WRAP, SmallCloud, node_id


class CellConductor:
    """The service for hosts of a cell conductor, and the carrying by the cloud's conductor. ``broker``: raises while
    the hosts' broker is away."""

    def __init__(self, cloud: SmallCloud) -> None:
        self.cloud, self.broker = cloud, lambda: None
        nobody: Any = NoClient("control daemons")
        self.deps = deps = Deps(
            api=NoApiDatabase(), cell=cloud.cell, settings=cloud.deps.settings, host="cellctl", scheduler=nobody,
            compute=cloud.deps.compute, network=cloud.deps.network, images=cloud.image_service, certs=nobody)
        deps.secret_wrap, deps.volumes = WRAP, cloud.volume_service
        deps.network_updates = NetworkUpdates(cloud.cell, deps.network)
        deps.networking = cloud.make_back_end(deps)
        deps.feed, deps.api_side = CarriedFeed(lambda: self.broker()), CarriedApiSide(cloud.cell)
        deps.journal, deps.runner = Journal(cloud.cell, "cellctl"), LeftOperations()
        self.daemons = ServiceRegistry(deps, clock=cloud.clock)
        self.hosts = HostService(deps, self.daemons, cloud.clock)
        self.carrying = Carrying(cloud.deps, clock=cloud.clock)

    def join(self, host: str) -> None:
        """Register a new compute host with its first report."""
        self.cloud.enroll(host)
        self.hosts.register(host, Registration(host=host, binary="nova-compute", topic="compute",
                                               host_id=node_id(host)))
        self.report(host)

    def report(self, host: str, version: int = 1, uuid: str = "", **facts: Any) -> None:
        """Report a node of the host's name."""
        node = Node(**{"name": host, "uuid": uuid or node_id(host), "hypervisor_type": "QEMU", "vcpus": 100,
                       "memory_mb": 100_000, "local_gb": 1000, **facts})
        self.hosts.report_inventory(host, Inventory(host=host, host_id=node_id(host), version=version, nodes=(node,)))
