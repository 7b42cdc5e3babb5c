"""The conductor's rooms over SQLite and the in-process bus: real journal, steps and queries; hosts that do as told."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import sqlalchemy as sa

from nova import context, errors
from nova.conductor.engine.deps import Deps, Settings
from nova.conductor.engine.journal import Journal
from nova.conductor.engine.runner import Runner
from nova.conductor.host_service import HostService
from nova.conductor.hosts.feed import Feed
from nova.conductor.hosts.registration import Daemons
from nova.conductor.nova_network.back_end import NovaNetwork
from nova.conductor.nova_network.network_updates import Teller
from nova.conductor.registry import ALL
from nova.conductor.service import conductor_service
from nova.db import flavors, hosts, migrate, services
from nova.db.models import api as api_tables
from nova.db.models import cell as cell_tables
from nova.model import addressing
from nova.model.aggregates import CachedImage
from nova.model.consoles import ConsoleAddress, ConsoleType
from nova.model.diagnostics import Diagnostics
from nova.model.flavors import NewFlavor
from nova.model.guests import DevicePlace
from nova.model.hosts import Inventory, Node
from nova.model.images import Image
from nova.model.networks import NewNetwork
from nova.model.orders import (
    BuildOrder,
    ConsoleOutput,
    GuestOrder,
    InterfaceOrder,
    LiveOrder,
    MoveOrder,
    Outcome,
    PasswordOrder,
    RebuildOrder,
    RescueOrder,
    Snapshot,
    SnapshotOrder,
)
from nova.model.quotas import NETWORK_RESOURCES, RESOURCES
from nova.model.scheduling import HostChoice
from nova.model.servers import NewServer, ServerOrder
from nova.model.services import Registration
from nova.model.states import PowerState
from nova.rpc.contracts.compute import ComputeRPC
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.contracts.conductor_host import ConductorHostRPC
from nova.rpc.contracts.network import NetworkRPC
from nova.rpc.contracts.scheduler import SchedulerRPC
from nova.rpc.local import LocalBus
from tests.fakes import furnished, moving_guests
from tests.fakes.compute_networks import GuestNetworks
from tests.fakes.daemons import FakeNetworkHost, FakeScheduler
from tests.fakes.databases import QuickDatabase
from tests.fakes.furnished import SCHEMAS
from tests.fakes.images import FakeImages
from tests.fakes.moving_guests import MovingGuests

DEMO = context.RequestContext(request_id="req-demo", user_id="joe", project_id="demo", token="joe's own token")
PATIENCE_S = 15.0

Answer = Callable[[str, Any], Outcome]

#: Kind of order -> power state after it, where it is not running. Some tell none.
POWER_AFTER = {"pause": PowerState.PAUSED, "suspend": PowerState.SUSPENDED, "password": PowerState.NOSTATE,
               "crash": PowerState.NOSTATE}


def node_id(host: str) -> str:
    return f"{host:_<8}-0000-0000-0000-000000000000".replace("_", "0")


class FakeCompute(GuestNetworks):
    """ComputeRPC of one host. ``answers``: method -> what is done with an order (an Outcome, or it raises)."""

    def __init__(self, host: str) -> None:
        super().__init__()
        self.host = host
        self.guests: dict[str, BuildOrder] = {}
        self.moving = MovingGuests(host, self.guests)
        self.orders: list[tuple[str, Any]] = []
        self.told: list[tuple[str, str]] = []
        self.asked_to_look = 0
        self.contexts: list[context.RequestContext] = []
        self.power_actions: list[str] = []
        self.cached: list[str] = []
        self.on_cache: Callable[[], None] | None = None
        self.asked: list[tuple[str, ConsoleType]] = []  # what consoles were asked for
        self.on_find: Callable[[], None] | None = None
        self.ports: dict[str, int] = {}
        self.answers: dict[str, Answer] = {}
        self.snapshots: set[tuple[str, str]] = set()  # (server, image)
        self.on_upload: Callable[[str], None] = lambda image_id: None
        self.before: dict[str, Callable[[Sequence[Any]], None]] = {}  # called with a whole call's orders

    def build_guests(self, host: str, orders: tuple[BuildOrder, ...]) -> tuple[Outcome, ...]:
        return self._do("build", orders)

    def destroy_guests(self, host: str, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._do("destroy", orders)

    def start_guests(self, host: str, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._do("start", orders)

    def stop_guests(self, host: str, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._do("stop", orders)

    def reboot_guests(self, host: str, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._do("reboot", orders)

    def pause_guests(self, host: str, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._do("pause", orders)

    def unpause_guests(self, host: str, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._do("unpause", orders)

    def suspend_guests(self, host: str, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._do("suspend", orders)

    def resume_guests(self, host: str, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._do("resume", orders)

    def rescue_guests(self, host: str, orders: tuple[RescueOrder, ...]) -> tuple[Outcome, ...]:
        return self._do("rescue", orders)

    def unrescue_guests(self, host: str, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._do("unrescue", orders)

    def rebuild_guests(self, host: str, orders: tuple[RebuildOrder, ...]) -> tuple[Outcome, ...]:
        return self._do("rebuild", orders)

    def set_passwords(self, host: str, orders: tuple[PasswordOrder, ...]) -> tuple[Outcome, ...]:
        return self._do("password", orders)

    def crash_guests(self, host: str, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._do("crash", orders)

    def snapshot_guests(self, host: str, orders: tuple[SnapshotOrder, ...]) -> tuple[Outcome, ...]:
        return self._do("snapshot", orders)

    def upload_snapshots(self, host: str, orders: tuple[SnapshotOrder, ...]) -> tuple[Outcome, ...]:
        return self._do("upload", orders)

    def drop_snapshots(self, host: str, orders: tuple[SnapshotOrder, ...]) -> tuple[Outcome, ...]:
        return self._do("drop", orders)

    def leave_guests(self, host: str, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._do("leave", orders)

    def fetch_guests(self, host: str, orders: tuple[MoveOrder, ...]) -> tuple[Outcome, ...]:
        return self._do("fetch", orders)

    def finish_guests(self, host: str, orders: tuple[MoveOrder, ...]) -> tuple[Outcome, ...]:
        return self._do("finish", orders)

    def return_guests(self, host: str, orders: tuple[MoveOrder, ...]) -> tuple[Outcome, ...]:
        return self._do("return", orders)

    def forget_guests(self, host: str, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._do("forget", orders)

    def describe_guests(self, host: str, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self._do("describe", orders)

    def prepare_arrivals(self, host: str, orders: tuple[MoveOrder, ...]) -> tuple[Outcome, ...]:
        return self._do("prepare", orders)

    def migrate_guests(self, host: str, orders: tuple[LiveOrder, ...]) -> tuple[Outcome, ...]:
        return self._do("migrate", orders)

    def land_guests(self, host: str, orders: tuple[MoveOrder, ...]) -> tuple[Outcome, ...]:
        return self._do("land", orders)

    def attach_interfaces(self, host: str, orders: tuple[InterfaceOrder, ...]) -> tuple[Outcome, ...]:
        return self._do("attach", orders)

    def detach_interfaces(self, host: str, orders: tuple[InterfaceOrder, ...]) -> tuple[Outcome, ...]:
        return self._do("detach", orders)

    def abort_migration(self, host: str, server_uuid: str, epoch: int) -> None:
        self.told.append(("abort", server_uuid))

    def force_migration(self, host: str, server_uuid: str, epoch: int) -> None:
        self.told.append(("force", server_uuid))

    def get_console_output(self, host: str, server_uuid: str, length: int | None) -> ConsoleOutput:
        return ConsoleOutput(text="")

    def find_console(self, host: str, server_uuid: str, type: ConsoleType) -> ConsoleAddress:
        self.asked.append((server_uuid, type))
        if self.on_find:
            self.on_find()
        if server_uuid not in self.guests:
            raise errors.NotFound("no such guest")
        return ConsoleAddress(access_url_base=f"http://proxy/{type}", host=self.host,
                              port=self.ports.setdefault(server_uuid, 5900 + len(self.ports)))

    def device_places(self, host: str, server_uuid: str) -> Mapping[str, DevicePlace]:
        if server_uuid not in self.guests:
            raise errors.NotFound("no such guest")
        return {one.mac: DevicePlace(bus="pci", address="0000:00:03.0") for one in self.guests[server_uuid].interfaces}

    def get_diagnostics(self, host: str, server_uuid: str) -> Diagnostics:
        if server_uuid not in self.guests:
            raise errors.NotFound("no such guest")
        return Diagnostics(power_state=PowerState.RUNNING, driver="libvirt", memory_max_mb=64)

    def look_for_debts(self, host: str) -> None:
        self.asked_to_look += 1

    def get_host_uptime(self, host: str) -> str:
        return "up 1 day"

    def change_host_power(self, host: str, action: str) -> str:
        self.power_actions.append(action)
        return action

    def cache_images(self, host: str, images: tuple[Image, ...]) -> tuple[CachedImage, ...]:
        self.cached += [image.id for image in images]
        if self.on_cache:
            self.on_cache()
        return tuple(CachedImage(image_id=image.id, state="cached") for image in images)

    def ping(self, host: str) -> str:
        return self.host

    def _do(self, kind: str, orders: Sequence[Any]) -> tuple[Outcome, ...]:
        self.contexts.append(context.current())
        self.orders += [(kind, order) for order in orders]
        if kind in self.before:
            self.before[kind](orders)
        return tuple(self._one(kind, order) for order in orders)

    def _one(self, kind: str, order: Any) -> Outcome:
        if kind in self.answers:
            return self.answers[kind](kind, order)
        if kind == "build":
            self.guests[order.server_uuid] = order
        if kind in ("rebuild", "attach", "detach"):
            self.guests[order.server_uuid] = order.build
        if kind in moving_guests.KINDS:
            return self.moving.one(kind, order)
        if kind == "destroy":
            self.moving.destroy(order)
            self.guests.pop(order.server_uuid, None)
            self.snapshots = {one for one in self.snapshots if one[0] != order.server_uuid}
        if kind in ("snapshot", "upload", "drop"):
            return self._snapshot(kind, order)
        off = kind in ("stop", "destroy") or (kind == "rebuild" and not order.start)
        power = PowerState.SHUTDOWN if off else POWER_AFTER.get(kind, PowerState.RUNNING)
        return Outcome(server_uuid=order.server_uuid, power_state=power)

    def _snapshot(self, kind: str, order: SnapshotOrder) -> Outcome:
        key = (order.server_uuid, order.image_id)
        if kind == "snapshot":
            self.snapshots.add(key)
            kept = Snapshot(format="qcow2", size_bytes=1 << 20, virtual_size_bytes=1 << 30)
            return Outcome(server_uuid=order.server_uuid, snapshot=kept)
        if kind == "upload" and key in self.snapshots:
            self.on_upload(order.image_id)
        self.snapshots.discard(key)
        return Outcome(server_uuid=order.server_uuid)

    def built(self) -> list[BuildOrder]:
        return [order for kind, order in self.orders if kind == "build"]


def refused(error: errors.NovaError) -> Answer:
    """An answer of a host that reports this error."""
    return lambda _kind, order: Outcome(server_uuid=order.server_uuid, ok=False, error_kind=error.kind,
                                        error_code=error.code, error_message=error.message)


def silent(_kind: str, _order: Any) -> Outcome:
    """A host that does not answer."""
    raise errors.Unavailable("host did not answer")


class SmallCloud:
    """Some compute hosts, a network host ``net``, a flavor ``1`` and a network. ``templates`` holds made databases.

    The first cloud of its class with these hosts registers them and makes its flavor and network by the conductor's own
    calls; what that has written is kept for the next ones, which differ in nothing but how long it took.
    """

    def __init__(self, folder: Path, templates: Path, computes: Sequence[str] = ("a", "b")) -> None:
        kind = (type(self).__name__, *computes)  # networks are made as each kind of cloud is configured
        again = furnished.of(templates, kind)
        for name in SCHEMAS:
            shutil.copyfile((again.folder if again else templates) / name, folder / name)
        self.api, self.cell = QuickDatabase(folder / "api"), QuickDatabase(folder / "cell")
        self.image_service = FakeImages()
        self.bus, self.scheduler, self.network = LocalBus(), FakeScheduler(), FakeNetworkHost()
        self.computes: dict[str, FakeCompute] = {}
        self.clock_s = 0.0
        self.bus.serve(SchedulerRPC, self.scheduler)
        self.bus.serve(NetworkRPC, self.network, "net")
        self.conductors: list[Deps] = []
        self.deps = self.conductor()
        self.daemons = Daemons(self.deps)
        self.hosts = HostService(self.deps, self.daemons)
        self.bus.serve(ConductorRPC, conductor_service(self.deps, self.daemons))
        self.bus.serve(ConductorHostRPC, self.hosts)
        self.control = self.bus.client(ConductorRPC)
        if again is None:
            self._furnish(computes)
            furnished.keep(folder, templates, kind, (self.scheduler.choices, self.scheduler.told,
                                                     self.network.served))
        else:
            self._as_furnished(computes, again)

    def _furnish(self, computes: Sequence[str]) -> None:
        self.daemons.register(Registration(host="net", binary="nova-network", topic="network"))
        for host in computes:
            self.add_compute(host)
        self.api.transact(lambda tx: flavors.insert(tx, NewFlavor(name="tiny", flavorid="1", memory_mb=64, vcpus=1,
                                                                  root_gb=1)))
        self.control.create_network(NewNetwork(label="private", cidr="10.0.0.0/24", bridge="br100"))

    def _as_furnished(self, computes: Sequence[str], again: furnished.Furnished) -> None:
        """The rows are there; the hosts are alive now, and everybody has been told what they were told then."""
        for host in computes:
            self._compute(host)
        self.scheduler.choices, self.scheduler.told, self.network.served = map(list, again.told)
        self.cell.transact(lambda tx: services.beat(tx, sorted(services.known(tx))))
        self.daemons.refresh()

    def make_back_end(self, deps: Deps) -> Any:
        """Who keeps the networks."""
        return NovaNetwork(deps)

    def conductor(self, name: str = "ctl") -> Deps:
        """One more conductor process, with a lease of its own."""
        limits = {**dict.fromkeys(RESOURCES, 100), "ram": 100_000, **dict.fromkeys(NETWORK_RESOURCES, -1)}
        deps = Deps(api=self.api, cell=self.cell, host=name, images=self.image_service, certs=None,
                    settings=Settings(quota_defaults=limits, network_defaults=addressing.Defaults()),
                    scheduler=self.bus.client(SchedulerRPC, name), compute=self.bus.client(ComputeRPC, name),
                    network=self.bus.client(NetworkRPC, name))
        deps.feed, deps.teller = Feed(deps), Teller(self.cell, deps.network)
        deps.networking = self.make_back_end(deps)
        journal = Journal(self.cell, name, clock=lambda: time.monotonic() + self.clock_s)
        journal.open()
        deps.runner = Runner(deps, journal, ALL, again_s=0.001)
        self.conductors.append(deps)
        return deps

    def add_compute(self, host: str, nodes: Sequence[str] = ()) -> FakeCompute:
        """Register a compute host with an inventory; it is the scheduler's last choice."""
        made = self._compute(host)
        self.daemons.register(Registration(host=host, binary="nova-compute", topic="compute", host_id=node_id(host)))
        self.report(host, nodes or (host,))
        with self.api.reading() as tx:
            found = {row["name"]: row["id"] for row in hosts.provider_rows(tx).values() if row["host"] == host}
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
                "local_gb": 1000, **facts}) for name in nodes)))

    # -- what users do

    def boot(self, count: int = 1, **fields: Any) -> list[str]:
        with context.entered(DEMO):
            made = self.control.create_servers(NewServer(**{
                "name": "vm", "flavor_id": "1", "min_count": count, "max_count": count, **fields}))
        return list(made.uuids)

    def order(self, uuid: str, action: str) -> None:
        with context.entered(DEMO):
            self.control.order_server(ServerOrder(uuid=uuid, action=action))

    def active(self, count: int = 1, **fields: Any) -> list[str]:
        """Booted, and ACTIVE."""
        uuids = self.boot(count, **fields)
        for uuid in uuids:
            assert self.ended(uuid).vm_state == "active", self.server(uuid).fault
        return uuids

    def delete(self, uuid: str) -> None:
        self.order(uuid, "delete")
        until(lambda: self.server(uuid).deleted, "the server is gone")

    # -- what is true

    def server(self, uuid: str) -> Any:
        return self.rows("cell", sa.select(cell_tables.servers).where(cell_tables.servers.c.uuid == uuid))[0]

    def ended(self, uuid: str) -> Any:
        """The server's row once no operation on it is open."""
        until(lambda: not self.open(uuid), f"operations on {uuid} end")
        return self.server(uuid)

    def open(self, uuid: str) -> list[Any]:
        return [row for row in self.journal(uuid) if row.finished_at is None]

    def journal(self, uuid: str) -> list[Any]:
        table = cell_tables.operations
        return self.rows("cell", sa.select(table).where(table.c.server_uuid == uuid).order_by(table.c.id))

    def debts(self) -> list[Any]:
        return self.rows("cell", sa.select(cell_tables.owed))

    def claims(self) -> set[tuple[str, str]]:
        """(host, server) of every claim."""
        claimed, given = api_tables.allocations, api_tables.providers
        return {tuple(row) for row in self.rows("api", sa.select(given.c.host, claimed.c.consumer).join_from(
            claimed, given, given.c.id == claimed.c.provider_id).distinct())}

    def addresses(self) -> dict[str, str]:
        """Server -> its address."""
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

    # -- what goes wrong

    def die(self, deps: Deps) -> None:
        """Its lease is over, as if it had been killed; what it runs from now on changes nothing."""
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
        for deps in self.conductors:
            until(lambda deps=deps: not deps.runner.running, "the runner is idle")
        self.api.dispose()
        self.cell.dispose()


def until(condition: Callable[[], Any], what: str, seconds: float = PATIENCE_S) -> Any:
    """The first truthy answer, within a bound."""
    end = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(0.01)
    return answer


def make_templates(folder: Path) -> Path:
    """Both schemas, empty, to be copied."""
    for name in SCHEMAS:
        database = QuickDatabase(folder / name)
        migrate.sync(name, database)
        with database.reading() as tx:
            tx.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        database.dispose()
    return folder


def changed(value: Any, **fields: Any) -> Any:
    return msgspec.structs.replace(value, **fields)


__all__ = ["DEMO", "FakeCompute", "Mapping", "SmallCloud", "changed", "make_templates", "refused", "silent", "until"]
