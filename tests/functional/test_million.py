"""A million servers are made and deleted on MariaDB, and its tables stay as large as for the first few thousand.

The rows are those that servers leave when they were deleted; beside them, servers live, and something is done to them
again and again. Each round writes some, and has the conductor's purge take its turn. What is compared is rows, sizes
of files and rows that statements read: none of it depends on how busy the machine is. Times are printed (``-s``).
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import sqlalchemy as sa

from nova.conductor.engine.deps import ConductorSettings
from nova.conductor.upkeep import purge
from nova.db.models import api, cell
from nova.db.quota import ledger
from nova.db.server import actions, server_lists, servers
from nova.db.sql.engine import Connection, Database
from nova.model.base import Scope, utcnow
from nova.model.server.actions import ActionQuery
from nova.model.server.servers import ServerListQuery
from tests import sampling
from tests.fakes import old_rows
from tests.fakes.old_rows import OLD, operation
from tests.fakes.rows import add_servers, server_row
from tests.functional.backends import Absent
from tests.functional.stores import rows_read

SERVERS = sampling.examples(3_000, 1_000_000)
ROUND = sampling.examples(500, 5_000)
LOOKS = 10  # at which all is measured, at most
LIVING, BUSY, KEPT = 500, 100, 5  # servers that live; those that something is done to each round; actions they keep
PROJECT = Scope(project_id="p3")
SLACK_B = 16 << 20  # files grow by whole extents of each index, however little is in them
DAY_S = 86400


class Look(NamedTuple):
    """What is measured after a turn of the purge: by table, by table, by statement; and seconds by statement."""

    servers: int
    rows: dict[str, int]
    file_b: dict[str, int]
    reads: dict[str, int]
    seconds: dict[str, float]


class Mill:
    """Writes rows of so many deleted servers in a few statements: copies of shapes, in a schema of their own."""

    def __init__(self, create: Callable[[str], str]) -> None:
        self.cell, self.api = Database(create("million_cell"), 1), Database(create("million_api"), 1)
        shapes = {"cell": Database(create("million_cell_shapes"), 1), "api": Database(create("million_api_shapes"), 1)}
        cell.metadata.create_all(self.cell.engine)
        api.metadata.create_all(self.api.engine)
        #: Target and statement, which keep the order of the shapes: servers first.
        self._copies: list[tuple[Database, str]] = []
        for name, models, target, rows in zip(shapes, (cell, api), (self.cell, self.api),
                                              old_rows.deleted_servers(ROUND), strict=True):
            models.metadata.create_all(shapes[name].engine)
            old_rows.write(shapes[name], rows)
            shapes[name].dispose()
            self._copies += [(target, _copy(table, f"million_{name}_shapes")) for table in rows]
        for database, rows in zip((self.cell, self.api), old_rows.deleted_servers(ROUND, utcnow()), strict=True):
            old_rows.write(database, rows)  # too young to go
        self.living = add_servers(self.cell, *(server_row(project_id=f"p{one % 20}") for one in range(LIVING)))
        self.round = 0

    def grind(self) -> None:
        """One round: servers that were deleted, each with a uuid of its own; and something done to some that live."""
        self.round += 1
        for database, text in self._copies:
            database.transact(lambda tx, text=text: tx.exec_driver_sql(text, {"round": f"{self.round:08x}"}))
        busy = [self.living[(self.round * BUSY + one) % LIVING] for one in range(BUSY)]
        at = OLD + datetime.timedelta(seconds=self.round)
        old_rows.write(self.cell, {
            cell.operations: [operation(uuid, finished_at=at) for uuid in busy],
            cell.migrations: [old_rows.move(uuid, created_at=at, updated_at=at) for uuid in busy]})

    def close(self) -> None:
        self.cell.dispose()
        self.api.dispose()


#: What tells rows of one round from those of another, in the columns that are unique.
_UNIQUE = ("uuid", "server_uuid", "token_hash", "external_id")


def _copy(table: sa.Table, shapes: str) -> str:
    names = [column.name for column in table.columns if column.name != "id"]
    values = [f"CONCAT(%(round)s, SUBSTR({name}, 9))" if name in _UNIQUE else f"`{name}`" for name in names]
    return (f"INSERT INTO {table.name} ({', '.join(f'`{name}`' for name in names)}) "
            f"SELECT {', '.join(values)} FROM {shapes}.{table.name}")


class Read(NamedTuple):
    schema: str
    ask: Callable[[Connection, str], object]  # the second is a server that lives


#: What is read, by name. The turn of the purge that finds nothing is measured beside them.
READS = {
    "list": Read("cell", lambda tx, _: server_lists.select(tx, ServerListQuery(), 50)),
    "list of a project": Read("cell", lambda tx, _: server_lists.select(tx, ServerListQuery(scope=PROJECT), 50)),
    "list with the deleted": Read("cell", lambda tx, _: server_lists.select(tx, ServerListQuery(deleted="any"), 50)),
    "show": Read("cell", lambda tx, uuid: servers.detail_row(tx, uuid, Scope(), False)),
    "actions": Read("cell", lambda tx, uuid: actions.select(tx, ActionQuery(server_uuid=uuid), 50)),
    "usage": Read("api", lambda tx, _: ledger.usage(tx, "p3", None))}
_FILES = "SELECT name, file_size FROM information_schema.innodb_sys_tablespaces WHERE name LIKE 'million_{}/%%'"


def read_by(database: Database, work: Callable[[], object]) -> tuple[int, float]:
    """Rows and entries of indexes that the database's one connection reads for it; and seconds."""
    def reads() -> int:
        with database.reading() as tx:
            return rows_read(tx)
    before, began = reads(), time.monotonic()
    work()
    seconds = time.monotonic() - began
    after = reads()
    question = reads() - after
    return after - before - question, seconds


def files(mill: Mill) -> dict[str, int]:
    found = {}
    for name, database in (("cell", mill.cell), ("api", mill.api)):
        with database.reading() as tx:
            found |= {row[0]: int(row[1]) for row in tx.exec_driver_sql(_FILES.format(name))}
    return found


def look(mill: Mill, turn: Callable[[], int]) -> Look:
    databases = {"cell": mill.cell, "api": mill.api}
    measured = {f"purge of nothing ({name})": read_by(database, turn) for name, database in databases.items()}
    for name, read in READS.items():
        database = databases[read.schema]

        def ask(database: Database = database, read: Read = read) -> None:
            with database.reading() as tx:
                read.ask(tx, mill.living[7])
        measured[name] = read_by(database, ask)
    rows = old_rows.counts(mill.cell, list(cell.metadata.tables.values())) | \
        old_rows.counts(mill.api, list(api.metadata.tables.values()))
    return Look(mill.round * ROUND, rows, files(mill), {name: one[0] for name, one in measured.items()},
                {name: one[1] for name, one in measured.items()})


@pytest.fixture(scope="module")
def mill(backends: Any) -> Iterator[Mill]:
    try:
        made = Mill(backends.database("mariadb").create)
    except Absent as absent:
        pytest.skip(f"needs the Debian package {absent}")
    yield made
    made.close()


@pytest.fixture(scope="module")
def looks(mill: Mill) -> list[Look]:
    """Before, early and late."""
    settings = ConductorSettings(deleted_retention_s=DAY_S, instance_actions_retention_s=DAY_S,
                                 instance_actions_kept=KEPT)
    deps: Any = SimpleNamespace(cell=mill.cell, api=mill.api, settings=settings)

    def turn() -> int:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(purge, "LEASE_S", -1)  # the next turn need not wait for a minute
            return purge.run(deps)
    found: list[Look] = []
    rounds = SERVERS // ROUND
    made_s = removed_s = 0.0
    for number in range(1, rounds + 1):
        began = time.monotonic()
        mill.grind()
        written = time.monotonic()
        turn()
        made_s, removed_s = made_s + written - began, removed_s + time.monotonic() - written
        if number % max(1, rounds // LOOKS) == 0:
            found.append(look(mill, turn))
            show(found[-1], made_s, removed_s)
    return found


def show(found: Look, made_s: float, removed_s: float) -> None:
    print(f"\n{found.servers} servers: written in {made_s:.0f} s, removed in {removed_s:.0f} s; "
          f"{sum(found.rows.values())} rows, {sum(found.file_b.values()) >> 20} MiB of tables and indexes; "
          + ", ".join(f"{name} {found.reads[name]} reads {seconds * 1000:.1f} ms"
                      for name, seconds in found.seconds.items()))


def test_rows_when_a_million_servers_came_and_went_then_there_are_as_many_as_early_on(looks: list[Look]) -> None:
    early, late = looks[1], looks[-1]
    assert late.servers == SERVERS
    assert late.rows["servers"] == early.rows["servers"] == LIVING + ROUND
    assert late.rows["operations"] <= LIVING * KEPT + ROUND * len(old_rows.LIFE)
    assert late.rows["migrations"] <= LIVING * KEPT + ROUND
    for name, count in late.rows.items():
        if name not in ("operations", "migrations"):
            assert count == early.rows[name], name


def test_files_when_a_million_servers_came_and_went_then_they_are_as_large_as_early_on(looks: list[Look]) -> None:
    early, late = looks[1], looks[-1]
    for name, size in late.file_b.items():
        assert size <= 1.5 * early.file_b[name] + SLACK_B, name


def test_statements_when_a_million_servers_came_and_went_then_they_read_as_much_as_early_on(looks: list[Look]) -> None:
    early = looks[1]
    for late in looks[2:]:  # each: a plan may change with the statistics, and change back
        for name, count in late.reads.items():
            # A plan may be to read a small table whole: what is there, and nothing of what has gone.
            assert count <= max(2 * early.reads[name] + 50, LIVING + ROUND), (late.servers, name)
