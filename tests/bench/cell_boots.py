"""Boots over many cells, compared with one cell: processor time and statements for each server, for requests of one and
of many servers. And the memory of a scheduler that knows the hosts of all cells.

Everything but the hosts is the real code of one conductor worker and one scheduler, with native threads: the scheduler
chooses among all hosts, servers move to the cells of their hosts, claim there and are built by hosts that answer at
once. The RPC between them is a call.
"""

from __future__ import annotations

import statistics
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple, Protocol

import msgspec
import sqlalchemy as sa

from nova import context
from nova.conductor.actions.create import CreateAdmission
from nova.conductor.cells.live_cells import LiveCells
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.journal import Journal
from nova.conductor.engine.runner import Runner
from nova.conductor.registry import ALL
from nova.db import flavors
from nova.db.host import reports
from nova.db.models import api, cell
from nova.db.sql.engine import Connection
from nova.model.base import utcnow
from nova.model.guest.orders import BuildOrder, Outcome
from nova.model.host.hosts import HostState, HostStates, Inventory, Node
from nova.model.server.servers import NewServer
from nova.model.server.states import PowerState
from nova.scheduler.service import SchedulerService, SchedulerSettings
from tests.fakes.images import FakeImages
from tests.fakes.rows import BORN
from tests.fakes.scheduling import filter_options
from tests.fakes.small_cloud import DEMO, TINY, until

HOSTS = 500  # of a cell
ALONE, AT_ONCE = 40, 100  # requests of one server; servers of one request


class World(Protocol):
    """The databases (:class:`tests.bench.cells.World`)."""

    api: Any
    cells: list[Any]
    deps: list[Deps]
    statements: int  # in the cells


class QuickHosts:
    """Compute hosts that have built a guest when they are asked."""

    def build_guests(self, host: str, orders: Sequence[BuildOrder]) -> tuple[Outcome, ...]:
        return tuple(Outcome(server_uuid=order.server_uuid, power_state=PowerState.RUNNING) for order in orders)


class DeafFeed:
    """Schedulers that are not told of claims: theirs are the only ones."""

    def after_claims(self, usages: Any, claimed: Any) -> None:
        pass

    def after_release(self, providers: Any) -> None:
        pass


class NoNetworks:
    """Network hosts that serve no network."""

    def send(self, uuids: Any, hosts: Any = None) -> None:
        pass

    def try_send(self, uuids: Any, hosts: Any, everywhere: bool = False) -> dict[Any, Any]:
        return {}


class Cost(NamedTuple):
    """Medians of a server: wall and processor time in ms, and statements in the api database and in cells."""

    wall_ms: float
    cpu_ms: float
    api_statements: float
    cell_statements: float


class Boots:
    """A conductor worker and a scheduler for the first cells of a world."""

    def __init__(self, world: World, hosts: Sequence[Sequence[HostState]]) -> None:
        """``hosts``: of each of these cells."""
        self._world, self._cells, self.api_statements = world, world.deps[:len(hosts)], 0
        sa.event.listen(world.api.engine, "after_cursor_execute", self._count)
        self.memory_mib = self._start_scheduler([state for each in hosts for state in each])
        live = LiveCells(self._cells[0])
        for deps in self._cells:
            live.add(deps)
            self._serve(deps)

    def _count(self, *_args: object) -> None:
        self.api_statements += 1

    def _start_scheduler(self, states: Sequence[HostState]) -> float:
        """Start a scheduler with these hosts, and return its memory for them in MiB."""
        sent = msgspec.msgpack.encode(HostStates(now=utcnow(), complete=True, states=tuple(states)))
        conductor: Any = SimpleNamespace(
            get_host_states=lambda known, everything: msgspec.msgpack.decode(sent, type=HostStates))
        tracemalloc.start()
        self.scheduler = SchedulerService(conductor, SchedulerSettings(
            SimpleNamespace(host_state_sweep_interval=60), filter_options(), 90.0))  # type: ignore[arg-type]
        self.scheduler.sweep()
        self.scheduler._hosts.snapshot()
        used, _peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return used / 2**20

    def _serve(self, deps: Deps) -> None:
        deps.scheduler, deps.compute, deps.images = self.scheduler, QuickHosts(), FakeImages()  # type: ignore[assignment]
        deps.feed, deps.network_updates = DeafFeed(), NoNetworks()  # type: ignore[assignment]
        deps.journal = Journal(deps.cell, "bench", lease_s=3600)
        deps.journal.open()
        deps.runner = Runner(deps, ALL)

    def cost(self, requests: int, servers: int) -> Cost:
        """Boot so many requests of so many servers, one after the other."""
        found = [self._one(servers) for _request in range(requests)][1:]
        return Cost(*(statistics.median(column) / servers for column in zip(*found, strict=True)))

    def _one(self, servers: int) -> tuple[float, float, int, int]:
        admission = CreateAdmission(self._cells[0])
        self.api_statements = self._world.statements = 0
        begun, processor = time.perf_counter(), time.process_time()
        with context.entered(DEMO):
            admission.create_servers(NewServer(name="vm", flavor_id=TINY.flavorid, image_id="", networks=(),
                                               min_count=servers, max_count=servers))
        until(lambda: not any(deps.runner.running for deps in self._cells), "they are built", 120)
        return (1000 * (time.perf_counter() - begun), 1000 * (time.process_time() - processor), self.api_statements,
                self._world.statements)


def _hosts(deps: Deps) -> Iterator[HostState]:
    """Create hosts of a cell with much room, and yield their states."""
    names = [f"{deps.cell_uuid[-4:]}-{deps.cell_uuid[:4]}-{number}" for number in range(HOSTS)]
    nodes = [Node(name=name, uuid=name.rjust(36, "0"), hypervisor_type="QEMU", vcpus=10_000, memory_mb=10_000_000,
                  local_gb=100_000) for name in names]

    def report(tx: Connection) -> None:
        for node in nodes:
            reports.write_providers(tx, Inventory(host=node.name, host_id=node.uuid, version=1, nodes=(node,)))
    deps.api.transact(report)
    deps.cell.transact(lambda tx: tx.execute(sa.insert(cell.services), [{
        "host": name, "binary": "nova-compute", "uuid": name.rjust(36, "1"), "created_at": BORN,
        "last_seen_at": utcnow()} for name in names]))
    with deps.api.reading() as tx:
        keys = {row.host: row.id for row in tx.execute(sa.select(api.providers.c.host, api.providers.c.id).where(
            api.providers.c.host.in_(names)))}
    yield from (HostState(
        host=name, node=name, provider_id=keys[name], generation=1, service_version=1, aggregates_version=1,
        cell=deps.cell_uuid, vcpus_capacity=10_000, memory_mb_capacity=10_000_000, disk_gb_capacity=100_000,
        last_seen_at=utcnow(), hypervisor_type="QEMU", supported=(("x86_64", "kvm", "hvm"),)) for name in names)


def compare(world: World) -> Iterator[str]:
    """Yield the lines of the report."""
    world.api.transact(lambda tx: flavors.insert(tx, TINY))
    yield (f"{'boots':36} {'ms':>8} {'CPU ms':>8} {'boots/s':>8} {'api':>6} {'cells':>6}   (a server, one worker)")
    hosts = [list(_hosts(deps)) for deps in world.deps]
    for cells in (1, len(world.cells)):
        boots = Boots(world, hosts[:cells])
        for name, requests, servers in (("requests of one server", ALONE, 1), (f"{AT_ONCE} servers in a request", 6,
                                                                               AT_ONCE)):
            cost = boots.cost(requests, servers)
            yield (f"{name + f', {cells} cells':36} {cost.wall_ms:8.1f} {cost.cpu_ms:8.1f} {1000 / cost.cpu_ms:8.0f} "
                   f"{cost.api_statements:6.1f} {cost.cell_statements:6.1f}")
        yield f"a scheduler that knows {cells * HOSTS} hosts: {boots.memory_mib:.0f} MiB for them"
