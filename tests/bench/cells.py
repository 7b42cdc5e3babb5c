"""Lists of servers over many cells, compared with the list of one cell: times, statements, threads. And the work of a
super conductor for cells in which nothing happens.

    python -m tests.bench.cells [--cells N] [--servers N] [--turns N]

Each cell is a database of its own on one MariaDB server, with as many servers, of a few hundred hosts. The conductor's
own code lists them, as it does for the API, with native threads; there is no broker and no other daemon. One cell and
all of them take turns in one run, and the result is the ratio of their medians.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
import sys
import tempfile
import threading
import time
import uuid as uuids
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from nova import concurrency
from nova.conductor.cells.carrying import COMPARE_S, Carrying
from nova.conductor.cells.live_cells import LiveCells
from nova.conductor.cells.server_lists import MergedServerLists
from nova.conductor.engine.deps import ConductorSettings, Deps
from nova.conductor.nova_network.back_end import NovaNetwork
from nova.conductor.queries.servers import Servers
from nova.db.models import api, cell
from nova.db.quota import ledger
from nova.db.sql.engine import Connection, Database
from nova.db.sql.types import utc_now
from nova.model.base import Page, Scope
from nova.model.host.cells import CELL
from nova.model.host.hosts import Node
from nova.model.server.servers import ServerListQuery, ServerPage
from tests.bench import cell_boots
from tests.fakes.rows import BORN, server_row
from tests.functional.backends import Backends

CELLS, SERVERS, TURNS, HOSTS = 20, 5000, 15, 500
HEARTBEAT_S = 30  # [DEFAULT]report_interval
ROWS_AT_ONCE = 1000
LONE = "lone"  # the project of fifty servers in the first cell


class Case(NamedTuple):
    """A list. ``middle``: it begins behind a server in the middle of the whole list."""

    name: str
    query: ServerListQuery
    middle: bool = False


CASES = (
    Case("details of 1,000", ServerListQuery(page=Page(limit=1000))),
    Case("details of 1,000, from the middle", ServerListQuery(page=Page(limit=1000)), middle=True),
    Case("details of 50", ServerListQuery(page=Page(limit=50))),
    Case("names of 1,000", ServerListQuery(page=Page(limit=1000), detail=False)),
    Case("a project's 50 servers a cell", ServerListQuery(scope=Scope(project_id="p7"), page=Page(limit=1000))),
    Case("50 servers of a project in one cell", ServerListQuery(scope=Scope(project_id=LONE), page=Page(limit=1000))),
    Case("details of 1,000 by name", ServerListQuery(page=Page(limit=1000), sort=(("name", "asc"),))),
)


class World:
    """The databases, and the conductor's view of them."""

    def __init__(self, backends: Backends, cells: int, count: int) -> None:
        server = backends.database("mariadb")
        self.api = Database(server.create("bench_api"), 4, schema="api")
        api.metadata.create_all(self.api.engine)
        self.cells = [Database(server.create(f"bench_cell{number}"), 16) for number in range(cells)]
        self.deps = [self._deps(database, number) for number, database in enumerate(self.cells)]
        self.statements = 0
        for number, database in enumerate(self.cells):
            cell.metadata.create_all(database.engine)
            self._fill(database, number, cells, count)
            sa.event.listen(database.engine, "after_cursor_execute", self._count)
            print(f"  cell {number + 1} of {cells} has {count} servers", file=sys.stderr)
        self.live = LiveCells(self.deps[0])
        for deps in self.deps[1:]:
            self.live.add(deps)
        self.merged, self.one = MergedServerLists(self.live), Servers(self.deps[0])

    def _deps(self, database: Database, number: int) -> Deps:
        nobody: Any = None
        made = Deps(api=self.api, cell=database, settings=ConductorSettings(), host="super", scheduler=nobody,
                    compute=nobody, network=nobody, images=nobody, certs=nobody)
        made.networking = NovaNetwork(made)  # type: ignore[assignment]
        made.cell_uuid = CELL if not number else str(uuids.UUID(int=2**64 + number))
        return made

    def _count(self, *_args: object) -> None:
        self.statements += 1

    def _fill(self, database: Database, number: int, cells: int, count: int) -> None:
        """Servers of a hundred projects, created in turns in all cells."""
        for begin in range(0, count, ROWS_AT_ONCE):
            rows = [server_row(name=f"server-{at * cells + number:07}",
                               project_id=f"p{at % 100}" if at >= 50 or number else LONE,
                               host=f"host{number}-{at % HOSTS}", node="node",
                               created_at=BORN + datetime.timedelta(seconds=at * cells + number))
                    for at in range(begin, min(begin + ROWS_AT_ONCE, count))]
            database.transact(lambda tx, rows=rows: tx.execute(sa.insert(cell.servers), rows))
            self.api.transact(lambda tx, rows=rows: ledger.open_rows(tx, [
                {"server_uuid": row["uuid"], "project_id": row["project_id"], "user_id": "joe", "vcpus": 1,
                 "memory_mb": 512, "cell": self.deps[number].cell_uuid} for row in rows]))

    def middle(self, lists: Callable[[ServerListQuery], ServerPage], query: ServerListQuery, pages: int) -> str:
        """The last server of so many pages of 1,000."""
        marker = None
        for _page in range(pages):
            page = lists(msgspec.structs.replace(query, detail=False, page=Page(limit=1000, marker=marker)))
            marker = page.summaries[-1].uuid
        return str(marker)

    def close(self) -> None:
        for database in (self.api, *self.cells):
            database.dispose()


class Measured(NamedTuple):
    seconds: float
    processor_s: float
    statements: int


def measured(world: World, lists: Callable[[ServerListQuery], ServerPage], query: ServerListQuery) -> Measured:
    world.statements = 0
    begun, processor = time.perf_counter(), time.process_time()
    lists(query)
    return Measured(time.perf_counter() - begun, time.process_time() - processor, world.statements)


def compare(world: World, case: Case, turns: int, count: int) -> str:
    """A line of the table."""
    queries = []
    for lists, pages in ((world.one.list_servers, count // 2000), (world.merged.list_servers,
                                                                   count * len(world.cells) // 2000)):
        marker = world.middle(lists, case.query, pages) if case.middle else None
        queries.append((lists, msgspec.structs.replace(
            case.query, page=Page(limit=case.query.page.limit, marker=marker))))
    for lists, query in queries:
        lists(query)
    found: tuple[list[Measured], list[Measured]] = [], []
    for _turn in range(turns):
        for (lists, query), times in zip(queries, found, strict=True):
            times.append(measured(world, lists, query))
    one, all_ = (statistics.median(each.seconds for each in times) for times in found)
    cpu, cpus = (statistics.median(each.processor_s for each in times) for times in found)
    most = max(each.statements for each in found[1])
    return (f"{case.name:36} {one * 1000:8.1f} {all_ * 1000:8.1f} {all_ / one:7.2f} {cpu * 1000:8.1f} "
            f"{cpus * 1000:8.1f} {most:10} {most / len(world.cells):9.1f}")


# -- the reports of hosts

class QuietFeed:
    """Schedulers that listen."""

    def alive(self, heartbeats: Any, now: Any) -> bool:
        return True

    def host_changed(self, host: str) -> None:
        pass


def add_hosts(world: World, deps: Deps, count: int) -> None:
    """Hosts that reported, and whose reports were carried."""
    names = [f"{deps.cell_uuid[:8]}-{number}" for number in range(count)]
    nodes = [Node(name=name, uuid=str(uuids.uuid4()), hypervisor_type="fake") for name in names]

    def write(tx: Connection) -> None:
        tx.execute(sa.insert(cell.services), [{
            "host": name, "binary": "nova-compute", "uuid": str(uuids.uuid4()), "created_at": BORN,
            "last_seen_at": BORN} for name in names])
        tx.execute(sa.insert(cell.nodes), [{
            "uuid": node.uuid, "host": node.name, "host_id": node.uuid, "name": node.name, "facts": node, "version": 1,
            "created_at": BORN} for node in nodes])
    deps.cell.transact(write)
    world.api.transact(lambda tx: tx.execute(sa.insert(api.providers), [{
        "uuid": node.uuid, "name": node.name, "host": node.name, "host_id": node.uuid, "inventory_version": 1}
        for node in nodes]))


def beat(deps: Deps, turn: int) -> None:
    """The heartbeats of a second."""
    deps.cell.transact(lambda tx: tx.execute(sa.update(cell.services).where(
        cell.services.c.id % HEARTBEAT_S == turn % HEARTBEAT_S).values(last_seen_at=utc_now())))


def carried(world: World, turns: int) -> str:
    """The cost of the turns for all cells, of each of them and of a minute."""
    clock = [0.0]
    every = [(deps, Carrying(deps, clock=lambda: clock[0])) for deps in world.deps[1:]]
    for deps, carrying in every:
        deps.feed = QuietFeed()  # type: ignore[assignment]
        add_hosts(world, deps, HOSTS)
        carrying.carry()
    costs: dict[str, list[float]] = {"a second": [], "a comparison of all hosts": []}
    statements = 0
    for turn in range(turns):
        for name, later in (("a second", 1.0), ("a comparison of all hosts", COMPARE_S)):
            clock[0] += later
            for deps, _carrying in every:
                beat(deps, turn)
            world.statements, begun = 0, time.process_time()
            for _deps, carrying in every:
                carrying.carry()
            costs[name].append((time.process_time() - begun) / len(every))
            statements = world.statements if name == "a second" else statements
    second, complete = (statistics.median(times) for times in costs.values())
    minute = (59 * second + complete) * len(every)
    return (f"reports of {len(every)} cells of {HOSTS} hosts: {second * 1000:.1f} ms of processor time for a cell and "
            f"second, with {statements / len(every):.0f} statements; {complete * 1000:.1f} ms for a comparison of all "
            f"hosts, once in a minute; in all {minute / 60:.1%} of a processor")


HEADER = (f"{'list':36} {'one ms':>8} {'all ms':>8} {'ratio':>7} {'one CPU':>8} {'all CPU':>8} {'statements':>10} "
          f"{'per cell':>9}")


@contextmanager
def worlds(cells: int, count: int) -> Iterator[World]:
    with tempfile.TemporaryDirectory(prefix="nova-bench-cells-") as folder:
        backends = Backends(Path(folder))
        try:
            world = World(backends, cells, count)
            yield world
            world.close()
        finally:
            backends.close()


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bin/test bench-cells", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=CELLS)
    parser.add_argument("--servers", type=int, default=SERVERS, help="servers of each cell (default: %(default)s)")
    parser.add_argument("--turns", type=int, default=TURNS)
    given = parser.parse_args(argv)
    concurrency.patch(prefer="threads")
    with worlds(given.cells, given.servers) as world:
        print(f"{given.cells} cells of {given.servers} servers each, on one MariaDB; medians of {given.turns} turns")
        print(HEADER)
        for case in CASES:
            print(compare(world, case, given.turns, given.servers), flush=True)
        print(f"threads: {threading.active_count()}")
        print(carried(world, given.turns))
        for line in cell_boots.compare(world):
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
