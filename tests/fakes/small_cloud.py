"""The conductor over SQLite and the in-process bus: real journal, steps and queries; fake hosts."""

from __future__ import annotations

import dataclasses
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import sqlalchemy as sa

from nova import context
from nova.conductor.actions.interfaces import detach_without_waiting
from nova.conductor.engine.deps import ConductorSettings, Deps
from nova.conductor.engine.journal import Journal
from nova.conductor.engine.runner import Runner
from nova.conductor.host_service import HostService
from nova.conductor.hosts.api_side import DirectApiSide
from nova.conductor.hosts.enrolment import HOST_DAEMONS
from nova.conductor.hosts.feed import Feed
from nova.conductor.hosts.image_tickets import TicketedCalls, TicketMaker, TicketSettings
from nova.conductor.hosts.registration import ServiceRegistry
from nova.conductor.networking.network_options import FloatingOptions, NetworkOptions
from nova.conductor.neutron import proxies
from nova.conductor.neutron.back_end import NeutronBackEnd
from nova.conductor.nova_network.back_end import NovaNetwork
from nova.conductor.nova_network.network_updates import NetworkUpdates
from nova.conductor.nova_network.no_cloudpipes import NoCloudpipes
from nova.conductor.registry import ALL
from nova.conductor.service import MakeCloudpipes, conductor_service
from nova.db import flavors
from nova.db.host import enrolments, hosts, services
from nova.db.models import api as api_tables
from nova.db.models import cell as cell_tables
from nova.db.schema import migrate
from nova.model.flavor.flavors import NewFlavor
from nova.model.host.hosts import Inventory, Node
from nova.model.host.services import Registration
from nova.model.network import addressing
from nova.model.network.networks import NewNetwork
from nova.model.placement.traits import RESCUE_BFV
from nova.model.quota.quotas import NETWORK_RESOURCES, RESOURCES
from nova.model.scheduling.decisions import HostChoice
from nova.model.security import secret_wrap
from nova.model.security.secret_wrap import SecretWrap
from nova.model.server.servers import NewServer, ServerOrder
from nova.rpc.contracts.compute import ComputeRPC
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.contracts.conductor_host import ConductorHostRPC
from nova.rpc.contracts.network import NetworkRPC
from nova.rpc.contracts.scheduler import SchedulerRPC
from nova.rpc.local import LocalBus
from nova.rpc.ticket_encryption import TicketCipher
from tests.fakes import furnished
from tests.fakes.compute_hosts import FakeCompute
from tests.fakes.daemons import FakeNetworkHost, FakeScheduler
from tests.fakes.databases import QuickDatabase
from tests.fakes.furnished import SCHEMAS
from tests.fakes.images import FakeImages
from tests.fakes.neutron import FakeNeutron
from tests.fakes.volumes import FakeVolumeKeys, FakeVolumes

DEMO = context.RequestContext(request_id="req-demo", user_id="joe", project_id="demo", token="joe's own token")
TIMEOUT_S = 15.0

TINY = NewFlavor(name="tiny", flavorid="1", memory_mb=64, vcpus=1, root_gb=1)


def node_id(host: str) -> str:
    return f"{host:_<8}-0000-0000-0000-000000000000".replace("_", "0")


@dataclasses.dataclass(frozen=True)
class Networks:
    """A cloud's network back end with options. ``filtered``: hosts filter guests' packets (in living clouds)."""

    neutron: bool = False
    networking: NetworkOptions = NetworkOptions()
    floating: FloatingOptions = FloatingOptions()
    multi_host: bool = False
    filtered: bool = False

    @property
    def defaults(self) -> addressing.Defaults:
        manager = self.networking.manager
        return addressing.Defaults(manager=manager.path, vlan_interface="eth1" if manager.vlans else None,
                                   multi_host=self.multi_host)

    @property
    def kind(self) -> str:
        """Key of the sample data: networks of the same kind share it."""
        return (f"{self.networking.manager.path.rpartition('.')[2]}{'-multi' * self.multi_host}"
                f"{'-auto' * self.floating.auto_assign_floating_ip}")


NOVA_NETWORK, NEUTRON = Networks(), Networks(neutron=True)


WRAP = SecretWrap((secret_wrap.new_key(),))  # of hosts' secrets
KEYS = ("bm92YSdzIHRlc3RzIHNlYWwgdGlja2V0cyB3aXRoLi4=",)  # of image tickets


def secret_of(host: str) -> str:
    """Return the secret of a host."""
    return f"the secret of {host}"


def ticketed(client: Any) -> Any:
    """Return a client of ComputeRPC whose orders have image tickets."""
    return TicketedCalls(ComputeRPC, client, TicketMaker(
        TicketCipher(KEYS), TicketSettings(("http://proxy:9293",)), secret_of))


class SmallCloud:
    """Some compute hosts, a network host ``net``, a flavor ``1`` and a network. ``templates`` has prepared databases.

    The first cloud of its class with these hosts registers them and creates its flavors and network by the conductor's
    own calls. Later clouds copy these rows, which is faster and has the same result.

    With Neutron, ``neutron`` has the project's only network, ``net``, with IPv4 and IPv6; the sample network of
    nova-network, which all clouds have, belongs to no project.
    """

    flavors: tuple[NewFlavor, ...] = (TINY,)
    cloudpipes: MakeCloudpipes = NoCloudpipes
    reuses_data = True  # of earlier clouds of its class

    def __init__(self, folder: Path, templates: Path, computes: Sequence[str] = ("a", "b"),
                 networks: Networks = NOVA_NETWORK) -> None:
        kind = (type(self).__name__, networks.kind, *computes)
        again = furnished.of(templates, kind) if self.reuses_data else None
        self.folder = folder
        for name in SCHEMAS:
            shutil.copyfile((again.folder if again else templates) / name, folder / name)
        self.api, self.cell = self.api_database(), QuickDatabase(folder / "cell")
        self.image_service, self.volume_service, self.volume_keys = FakeImages(), FakeVolumes(), FakeVolumeKeys()
        self.networks, self.furnished = networks, False
        if networks.neutron:
            self.use_neutron()
        self.bus, self.scheduler, self.network = LocalBus(), FakeScheduler(), FakeNetworkHost()
        self.computes: dict[str, FakeCompute] = {}
        self.clock_s = 0.0
        self.bus.serve(SchedulerRPC, self.scheduler)
        self.bus.serve(NetworkRPC, self.network, "net")
        self.conductors: list[Deps] = []
        self.deps = self.conductor()
        self.daemons = ServiceRegistry(self.deps, clock=self.clock)
        self.hosts = HostService(self.deps, self.daemons, self.clock)
        self.bus.serve(ConductorRPC, conductor_service(self.deps, self.daemons, self.cloudpipes))
        self.bus.serve(ConductorHostRPC, self.hosts)
        self.control = self.bus.client(ConductorRPC)
        if again is None:
            self._furnish(computes)
            if self.reuses_data:
                furnished.keep(folder, templates, kind, (self.scheduler.choices, self.scheduler.calls,
                                                         self.network.calls))
        else:
            self._as_furnished(computes, again)
        self.furnished = True
        if networks.neutron:
            self.deps.networking = self.make_back_end(self.deps)

    def api_database(self) -> QuickDatabase:
        return QuickDatabase(self.folder / "api")

    def use_neutron(self) -> None:
        self.neutron = FakeNeutron(tokens={str(DEMO.token): "demo"})
        self.net = self.neutron.add_network("private", ("10.1.0.0/24", "fd00:1::/64"))
        self.neutron.add_group("default")

    def enroll(self, *hosts: str) -> None:
        """Enrol hosts for all daemons of hosts."""
        self.cell.transact(lambda tx: [enrolments.enroll(tx, host, HOST_DAEMONS, "") for host in hosts])

    def _furnish(self, computes: Sequence[str]) -> None:
        self.enroll("net", *computes)
        self.daemons.register(Registration(host="net", binary="nova-network", topic="network"))
        for host in computes:
            self.add_compute(host)
        self.api.transact(lambda tx: [flavors.insert(tx, one) for one in self.flavors])
        self.control.create_network(NewNetwork(label="private", cidr="10.0.0.0/24", bridge="br100"))

    def _as_furnished(self, computes: Sequence[str], again: furnished.Furnished) -> None:
        """Complete a copy of the sample data: mark the hosts alive, and restore the recorded calls of daemons."""
        for host in computes:
            self._compute(host)
        self.scheduler.choices, self.scheduler.calls, self.network.calls = map(list, again.calls)
        self.cell.transact(lambda tx: services.record_heartbeats(tx, dict.fromkeys(services.known(tx))))
        self.daemons.refresh()

    def make_back_end(self, deps: Deps, doubts_s: Sequence[float] = (), gather_s: float = 0.0) -> Any:
        """Return the network back end."""
        if not (self.networks.neutron and self.furnished):
            return NovaNetwork(deps)
        client = self.neutron.client(doubts_s=doubts_s)
        return with_proxies(NeutronBackEnd(deps, client, detach_without_waiting(deps), gather_s=gather_s), deps, client)

    def conductor(self, name: str = "ctl") -> Deps:
        """Return another conductor process, with its own lease."""
        limits = {**dict.fromkeys(RESOURCES, 100), "ram": 100_000, **dict.fromkeys(NETWORK_RESOURCES, -1)}
        deps = Deps(api=self.api, cell=self.cell, host=name, images=self.image_service, certs=None,
                    settings=ConductorSettings(quota_defaults=limits, networking=self.networks.networking,
                                               floating=self.networks.floating,
                                               network_defaults=self.networks.defaults),
                    scheduler=self.bus.client(SchedulerRPC, name), compute=ticketed(self.bus.client(ComputeRPC, name)),
                    network=self.bus.client(NetworkRPC, name))
        deps.secret_wrap, deps.volumes, deps.volume_keys = WRAP, self.volume_service, self.volume_keys
        deps.feed, deps.api_side = Feed(deps), DirectApiSide(deps)
        deps.network_updates = NetworkUpdates(self.cell, deps.network)
        deps.networking = self.make_back_end(deps)
        deps.journal = Journal(self.cell, name, clock=self.clock)
        deps.journal.open()
        deps.runner = Runner(deps, ALL, again_s=0.001)
        self.conductors.append(deps)
        return deps

    def clock(self) -> float:
        """Return the time of a running clock that is ``clock_s`` ahead."""
        return time.monotonic() + self.clock_s

    def add_compute(self, host: str, nodes: Sequence[str] = ()) -> FakeCompute:
        """Register a compute host with an inventory; it is the scheduler's last choice."""
        made = self._compute(host)
        self.daemons.register(Registration(host=host, binary="nova-compute", topic="compute", host_id=node_id(host)))
        self.report(host, nodes or (host,))
        with self.api.reading() as tx:
            found = {row.name: row.id for row in hosts.provider_rows(tx).values() if row.host == host}
        self.scheduler.choices += [HostChoice(host=host, node=name, provider_id=found[name])
                                   for name in (nodes or (host,))]
        return made

    def _compute(self, host: str) -> FakeCompute:
        made = self.computes[host] = FakeCompute(host)
        made.on_upload = self.image_service.fill
        made.moving.peers = self.computes
        self.bus.serve(ComputeRPC, made, host)
        return made

    def report(self, host: str, nodes: Sequence[str], version: int = 1, **facts: Any) -> None:
        self.hosts.report_inventory(host, Inventory(
            host=host, host_id=node_id(host), version=version, nodes=tuple(Node(**{
                "name": name, "uuid": node_id(name), "hypervisor_type": "QEMU", "vcpus": 100, "memory_mb": 100_000,
                "local_gb": 1000, "traits": (RESCUE_BFV,), **facts}) for name in nodes)))

    # -- actions of users

    def boot(self, count: int = 1, **fields: Any) -> list[str]:
        with context.entered(DEMO):
            made = self.control.create_servers(NewServer(**{
                "name": "vm", "flavor_id": "1", "min_count": count, "max_count": count, **fields}))
        return list(made.uuids)

    def order(self, uuid: str, action: str) -> None:
        with context.entered(DEMO):
            self.control.order_server(ServerOrder(uuid=uuid, action=action))

    def active(self, count: int = 1, **fields: Any) -> list[str]:
        """Boot servers and wait until they are ACTIVE."""
        uuids = self.boot(count, **fields)
        for uuid in uuids:
            assert self.ended(uuid).vm_state == "active", self.server(uuid).fault
        return uuids

    def delete(self, uuid: str) -> None:
        self.order(uuid, "delete")
        until(lambda: self.server(uuid).deleted, "the server is gone")

    # -- state

    def server(self, uuid: str) -> Any:
        return self.rows("cell", sa.select(cell_tables.servers).where(cell_tables.servers.c.uuid == uuid))[0]

    def ended(self, uuid: str) -> Any:
        """Wait until no operation on the server is open, and return its row."""
        until(lambda: not self.open(uuid), f"operations on {uuid} end")
        return self.server(uuid)

    def open(self, uuid: str) -> list[Any]:
        return [row for row in self.journal(uuid) if row.finished_at is None]

    def journal(self, uuid: str) -> list[Any]:
        table = cell_tables.operations
        return self.rows("cell", sa.select(table).where(table.c.server_uuid == uuid).order_by(table.c.id))

    def debts(self) -> list[Any]:
        return self.rows("cell", sa.select(cell_tables.cleanups))

    def claims(self) -> set[tuple[str, str]]:
        """Return (host, server) of all claims."""
        claimed, given = api_tables.allocations, api_tables.providers
        return {tuple(row) for row in self.rows("api", sa.select(given.c.host, claimed.c.consumer).join_from(
            claimed, given, given.c.id == claimed.c.provider_id).distinct())}

    def addresses(self) -> dict[str, str]:
        """Return the servers' addresses: server -> address."""
        table = cell_tables.fixed_addresses
        return {row.server_uuid: row.address for row in self.rows("cell", sa.select(table).where(
            table.c.server_uuid.is_not(None)))}

    def open_ledger(self) -> set[str]:
        table = api_tables.ledger
        return {row.server_uuid for row in self.rows("api", sa.select(table).where(table.c.closed == sa.false()))}

    def rows(self, schema: str, query: Any) -> list[Any]:
        with (self.api if schema == "api" else self.cell).reading() as tx:
            return list(tx.execute(query))

    def write(self, schema: str, *statements: Any) -> None:
        (self.api if schema == "api" else self.cell).transact(lambda tx: [tx.execute(one) for one in statements])

    # -- failures

    def die(self, deps: Deps) -> None:
        """End a conductor's lease, as if it had been killed; its later work has no effect."""
        table = cell_tables.runners
        self.write("cell", sa.delete(table).where(table.c.id == deps.runner.journal.runner_id))

    def stand_at(self, uuid: str, deps: Deps, **fields: Any) -> None:
        """Put the newest operation of a server back into the journal, in the hands of a conductor that died."""
        key = self.journal(uuid)[-1].id
        table = cell_tables.operations
        self.write("cell", sa.update(table).where(table.c.id == key).values(
            finished_at=None, outcome=None, runner_id=deps.runner.journal.runner_id, **fields))
        self.die(deps)

    def close(self) -> None:
        if self.networks.neutron:
            until(lambda: not self.deps.networking.events.busy, "events are passed on")
        for deps in self.conductors:
            until(lambda deps=deps: not deps.runner.running, "the runner is idle")
        self.api.dispose()
        self.cell.dispose()


def until(condition: Callable[[], Any], what: str, seconds: float = TIMEOUT_S) -> Any:
    """Return the first true result of a condition. Raises AssertionError after ``seconds``."""
    end = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(0.01)
    return answer


def with_proxies(made: NeutronBackEnd, deps: Deps, client: Any) -> NeutronBackEnd:
    """Return the back end with the API of Neutron's networks, floating addresses and groups for users."""
    def changed(server_uuid: str) -> None:
        made.healer.refresh([server_uuid])
    made.networks, made.floating = proxies.NetworksByNeutron(client), proxies.FloatingByNeutron(deps, client, "public",
                                                                                                changed)
    made.groups = proxies.GroupsByNeutron(deps, client, changed)
    return made


def make_templates(folder: Path) -> Path:
    """Create both empty schemas, as templates for copies."""
    for name in SCHEMAS:
        database = QuickDatabase(folder / name)
        migrate.sync(name, database)
        with database.reading() as tx:
            tx.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        database.dispose()
    return folder


def changed(value: Any, **fields: Any) -> Any:
    return msgspec.structs.replace(value, **fields)
