"""The purge on each database: what goes, two of them side by side, and what a turn without work reads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import sqlalchemy as sa

from nova.conductor.engine.deps import ConductorSettings
from nova.conductor.upkeep import purge
from nova.db.models import api, cell
from nova.db.operation import action_retention
from nova.db.operation.action_retention import Retention
from nova.db.quota import ledger, lock_rows
from nova.db.server import servers
from nova.db.sql.engine import Connection, Database
from nova.db.sql.statements import insert_all
from nova.model.base import utcnow
from tests.fakes import old_rows
from tests.fakes.old_rows import OLD, move, operation
from tests.fakes.rows import add_servers, new_uuid, server_row
from tests.functional.backends import KINDS, Absent

SERVERS, MANY, KEPT, DAY_S = 500, 3000, 3, 86400
SETTINGS = ConductorSettings(deleted_retention_s=DAY_S, instance_actions_retention_s=DAY_S, instance_actions_kept=KEPT)
PLACES = ("cell", "api")


@pytest.fixture(scope="module", params=list(KINDS))
def deps(backends: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    try:
        server = backends.database(request.param)
    except Absent as absent:
        pytest.skip(f"needs the Debian package {absent}")
    made = SimpleNamespace(cell=Database(server.create("purge_cell")), api=Database(server.create("purge_api")),
                           settings=SETTINGS)
    for name, models in zip(PLACES, (cell, api), strict=True):
        models.metadata.create_all(getattr(made, name).engine)
    yield made
    made.cell.dispose()
    made.api.dispose()


@pytest.fixture(autouse=True)
def no_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every turn is anybody's: two purges may be at it side by side."""
    monkeypatch.setattr(purge, "LEASE_S", -10)


def bury(deps: Any, count: int, *at: Any) -> None:
    for name, rows in zip(PLACES, old_rows.deleted_servers(count, *at), strict=True):
        old_rows.write(getattr(deps, name), rows)


def left(deps: Any) -> dict[str, int]:
    of_cell, of_api = old_rows.deleted_servers(1)
    found = old_rows.counts(deps.cell, list(of_cell)) | old_rows.counts(deps.api, list(of_api))
    return {name: count for name, count in found.items() if count}


def test_archive_when_two_are_at_it_side_by_side_then_each_server_is_archived_once(deps: Any) -> None:
    rows = [server_row(deleted=number + 2, deleted_at=OLD) for number in range(SERVERS)]
    add_servers(deps.cell, server_row(), *rows, server_row(deleted=1, deleted_at=utcnow()))
    start, archived = threading.Barrier(2), []

    def archive() -> None:
        start.wait()
        while count := deps.cell.transact(lambda tx: servers.archive(tx, DAY_S, 30)):
            archived.append(count)
    threads = [threading.Thread(target=archive) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sum(archived) == SERVERS, "those deleted before that day"
    while deps.cell.transact(lambda tx: servers.purge(tx, DAY_S, 100, archived=True)):
        pass
    assert left(deps) == {"servers": 2}
    deps.cell.transact(lambda tx: tx.execute(sa.delete(cell.servers)))


def test_purge_when_two_are_at_it_side_by_side_then_each_row_goes_once(deps: Any, monkeypatch) -> None:
    monkeypatch.setattr(purge, "BATCH", 50)
    bury(deps, SERVERS)
    lives, = add_servers(deps.cell, server_row())
    old_rows.write(deps.cell, {cell.operations: [operation(lives) for _ in range(SERVERS)],
                               cell.migrations: [move(lives) for _ in range(20)]})
    start, removed, failed = threading.Barrier(2), [], []

    def work() -> None:
        start.wait()
        try:
            for _turn in range(20):  # one that met the other at each of its rows ends early
                removed.append(purge.run(deps))
        except BaseException as error:
            failed.append(error)
    both = [threading.Thread(target=work) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert failed == []
    # who finds no more servers trims the actions of those that the other is removing: at most one of each
    least = SERVERS * 2 + SERVERS - KEPT + 20 - KEPT
    assert least <= sum(removed) <= least + SERVERS
    assert left(deps) == {"servers": 1, "operations": KEPT, "migrations": KEPT}
    deps.cell.transact(lambda tx: [tx.execute(sa.delete(table)) for table in (cell.servers, cell.operations,
                                                                              cell.migrations)])


def test_trim_when_it_is_repeated_from_its_mark_then_all_are_looked_at_and_the_newest_stay(deps: Any) -> None:
    uuids = add_servers(deps.cell, *(server_row() for _ in range(3)))
    old_rows.write(deps.cell, {cell.operations: [
        operation(uuid, finished_at=OLD.replace(day=day), runner_id=day % 2)
        for day in range(1, 9) for uuid in uuids for _same_moment in range(2)]})
    rule, mark, removed = Retention(DAY_S, KEPT), "", 0
    for _ in range(48 // 5 + 1):
        done = deps.cell.transact(lambda tx, mark=mark: action_retention.trim(tx, mark, rule, 5))
        mark, removed = done.mark, removed + done.removed
    assert not done.more and removed == 48 - 3 * KEPT
    with deps.cell.reading() as tx:
        days = [row.finished_at.day for row in tx.execute(sa.select(cell.operations))]
    assert sorted(days) == [7] * 3 + [8] * 6
    deps.cell.transact(lambda tx: [tx.execute(sa.delete(table)) for table in (cell.servers, cell.operations)])


def test_locks_when_their_rows_go_all_the_time_then_one_at_a_time_has_a_lock(deps: Any) -> None:
    """Each adds one to a number by a read and a write: without the lock some would be lost."""
    threads, turns, failed, over = 3, 40, [], threading.Event()
    deps.api.transact(lambda tx: insert_all(tx, api.stamps, [{"name": "number", "version": 0}]))

    def add(tx: Connection) -> None:
        ledger.lock_owner(tx, "demo")
        number = tx.execute(sa.select(api.stamps.c.version)).scalar_one()
        tx.execute(sa.update(api.stamps).values(version=number + 1))

    def count() -> None:
        try:
            for _turn in range(turns):
                deps.api.transact(add)
        except BaseException as error:
            failed.append(error)

    def forget() -> None:
        while not over.is_set():
            deps.api.transact(lambda tx: lock_rows.forget(tx, api.quota_locks, "", 10))
    forgetter, counters = threading.Thread(target=forget), [threading.Thread(target=count) for _ in range(threads)]
    for one in (forgetter, *counters):
        one.start()
    for one in counters:
        one.join()
    over.set()
    forgetter.join()
    with deps.api.reading() as tx:
        assert (failed, tx.execute(sa.select(api.stamps.c.version)).scalar_one()) == ([], threads * turns)


#: Table -> the index by which a turn finds what is old. Of the others there are few rows, whatever the load is.
FOUND_BY = {"servers": "ix_servers_deleted_at", "ledger": "ix_ledger_closed_at", "strangers": "ix_strangers_ended_at",
            "usage_audits": "ix_usage_audits_period", "services": "ix_services_deleted",
            "operations": "ix_operations_open"}


def crowd(deps: Any) -> None:
    """Much of all that is looked through, and none of it old."""
    now = utcnow()
    bury(deps, MANY // 10, now)
    uuids = add_servers(deps.cell, *(server_row() for _ in range(MANY)))
    old_rows.write(deps.cell, {
        cell.operations: [operation(uuid, finished_at=now) for uuid in uuids],
        cell.services: [{"uuid": uuid, "host": uuid, "binary": "nova-compute", "created_at": OLD} for uuid in uuids],
        cell.strangers: [{"kind": "guest", "host": uuid, "name": uuid, "server_uuid": uuid, "what": "running",
                          "first_seen_at": OLD} for uuid in uuids],
        cell.usage_audits: [{"host": uuid, "period_beginning": now, "period_ending": now, "state": "DONE"}
                            for uuid in uuids]})
    old_rows.write(deps.api, {api.ledger: [
        {"server_uuid": uuid, "project_id": "demo", "user_id": "joe", "vcpus": 1, "memory_mb": 1, "created_at": OLD}
        for uuid in uuids]})


def analyze(deps: Any) -> None:
    for name, models in zip(PLACES, (cell, api), strict=True):
        with getattr(deps, name).reading() as tx:
            for table in models.metadata.tables:
                tx.exec_driver_sql(f"ANALYZE TABLE {table}").all()


class Plan(NamedTuple):
    """How rows are found. ``choice``: every index that MariaDB might have taken instead."""

    index: str
    choice: str
    rows: int
    remarks: str


def plans(deps: Any) -> dict[str, Plan]:
    """By table, how a turn without work looks for what is old."""
    asked: list[tuple[str, Any]] = []
    found: dict[str, Plan] = {}

    def keep(connection: Any, cursor: Any, statement: str, parameters: Any, *more: Any) -> None:
        asked.append((statement, parameters))
    for database in (deps.cell, deps.api):
        asked.clear()
        sa.event.listen(database.engine, "before_cursor_execute", keep)
        assert purge.run(deps) == 0
        sa.event.remove(database.engine, "before_cursor_execute", keep)
        with database.reading() as tx:
            for statement, parameters in asked:
                if statement.startswith("SELECT") and "audit_walks" not in statement:
                    row = tx.exec_driver_sql(f"EXPLAIN {statement}", parameters).mappings().all()[0]
                    found[row["table"]] = Plan(row["key"], row["possible_keys"], int(row["rows"]), row["Extra"])
    return found


def test_turn_when_there_is_nothing_to_do_then_each_look_is_by_its_index_and_reads_next_to_nothing(deps: Any) -> None:
    if deps.cell.dialect != "mysql":
        pytest.skip("the plans of MariaDB")
    old_rows.write(deps.cell, {cell.operations: [operation(new_uuid())]})
    purge.run(deps)  # its walk has a row, and a mark
    crowd(deps)
    analyze(deps)
    found = plans(deps)
    for name, index in FOUND_BY.items():
        plan = found[name]
        assert plan.index == index, (name, plan)
        assert plan.rows < 100 and "filesort" not in plan.remarks, (name, plan)
    # no choice: between eight MariaDB takes another one now and then, while it forgets what went before
    assert found["servers"].choice == FOUND_BY["servers"]
