"""MariaDB finds each page of servers by an index: the orders most asked for are neither sorted nor read past."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from nova import errors
from nova.db.models import cell as tables
from nova.db.operation import timeouts
from nova.db.server import server_lists
from nova.db.sql.engine import Database
from nova.db.sql.statements import insert_all
from nova.model.base import Page, Scope
from nova.model.server.servers import Condition, ServerListQuery
from nova.model.server.states import VmState
from tests.fakes.rows import BORN, server_row
from tests.functional.backends import Absent

SERVERS, EACH = 6000, 500
SMALL = Scope(project_id="p3")
CHANGED = BORN + datetime.timedelta(seconds=SERVERS - 20)


def row(number: int) -> dict[str, Any]:
    """Every tenth is gone; projects of 300; rare images, flavors and users."""
    born = BORN + datetime.timedelta(seconds=number)
    return server_row(
        created_at=born, updated_at=born, name=f"server-{number * 7919 % SERVERS}", project_id=f"p{number % 20}",
        user_id=f"u{number % 600}", image_id=f"image{number % 600}", flavorid=str(number % 600), user_data="x" * 1000,
        deleted=number + 1 if number % 10 == 9 else 0, task_state="rebooting" if number % 1000 == 5 else None)


@pytest.fixture(scope="module")
def cell(backends: Any) -> Iterator[Database]:
    try:
        database = Database(backends.database("mariadb").create("list_indexes"))
    except Absent as absent:
        pytest.skip(f"needs the Debian package {absent}")
    tables.metadata.create_all(database.engine)
    for start in range(0, SERVERS, EACH):
        rows = [row(number) for number in range(start, start + EACH)]
        database.transact(lambda tx, rows=rows: insert_all(tx, tables.servers, rows))
    with database.reading() as tx:
        tx.exec_driver_sql("ANALYZE TABLE servers")
    yield database
    database.dispose()


def plan(database: Database, query: ServerListQuery) -> tuple[str, str]:
    """(index, remarks) with which the page's servers are found."""
    asked: list[tuple[str, Any]] = []

    def keep(connection: Any, cursor: Any, statement: str, parameters: Any, *more: Any) -> None:
        asked.append((statement, parameters))

    sa.event.listen(database.engine, "before_cursor_execute", keep)
    try:
        with database.reading() as tx:
            server_lists.select(tx, query, 50)
    finally:
        sa.event.remove(database.engine, "before_cursor_execute", keep)
    statement, parameters = asked[-1]
    with database.reading() as tx:
        inner = [found for found in tx.exec_driver_sql(f"EXPLAIN {statement}", parameters).mappings()
                 if found["select_type"] == "DERIVED" and found["table"] == "servers"]
    return inner[0]["key"], inner[0]["Extra"]


def marker(database: Database, scope: Scope) -> Page:
    with database.reading() as tx:
        rows = server_lists.names(tx, ServerListQuery(scope=scope), 3000)
    return Page(marker=rows[len(rows) // 2].uuid)


@pytest.mark.parametrize(("scope", "index"), [(Scope(), "ix_servers_newest"), (SMALL, "ix_servers_project_newest")])
def test_page_of_the_default_order_is_found_in_the_index_alone(cell: Database, scope: Scope, index: str) -> None:
    for page in (Page(), marker(cell, scope)):
        key, remarks = plan(cell, ServerListQuery(scope=scope, page=page))
        assert key == index
        assert "Using index" in remarks and "filesort" not in remarks, remarks


@pytest.mark.parametrize(("scope", "index"), [(Scope(), "ix_servers_name"), (SMALL, "ix_servers_project_name")])
def test_page_by_name_is_not_sorted(cell: Database, scope: Scope, index: str) -> None:
    for direction in ("asc", "desc"):
        key, remarks = plan(cell, ServerListQuery(scope=scope, sort=(("name", direction),)))
        assert key == index and "filesort" not in remarks, (key, remarks)


@pytest.mark.parametrize(("query", "index"), [
    (ServerListQuery(changes_since=CHANGED, deleted="any"), "ix_servers_updated"),
    (ServerListQuery(conditions=(Condition(column="user_id", value="u7"),)), "ix_servers_user"),
    (ServerListQuery(conditions=(Condition(column="image_id", value="image7"),)), "ix_servers_image"),
    (ServerListQuery(conditions=(Condition(column="flavorid", value="7"),)), "ix_servers_flavor"),
    (ServerListQuery(conditions=(Condition(column="task_state", value="rebooting"),)), "ix_servers_tasks")])
def test_filter_of_few_servers_reads_these_alone(cell: Database, query: ServerListQuery, index: str) -> None:
    assert plan(cell, query)[0] == index


RESCUED = timeouts.IdleServersQuery(VmState.RESCUED, ("rescue",), "unrescue")


@pytest.mark.parametrize(("look", "index"), [
    (lambda tx: timeouts.idle_servers(tx, RESCUED, 50), "ix_servers_vm_state"),
    (lambda tx: timeouts.idle_servers(tx, RESCUED._replace(after=(CHANGED, 7)), 50), "ix_servers_vm_state"),
    (lambda tx: timeouts.building(tx, 600, 50), "ix_servers_vm_state"),
    (lambda tx: timeouts.ownerless(tx, 50), "ix_servers_tasks")],
    ids=["resting", "next page", "building", "ownerless"])
def test_look_of_a_periodic_task_reads_next_to_nothing_when_there_is_nothing_to_do(cell: Database, look: Any,
                                                                                    index: str) -> None:
    asked: list[tuple[str, Any]] = []

    def keep(connection: Any, cursor: Any, statement: str, parameters: Any, *more: Any) -> None:
        asked.append((statement, parameters))
    sa.event.listen(cell.engine, "before_cursor_execute", keep)
    try:
        with cell.reading() as tx:
            look(tx)
    finally:
        sa.event.remove(cell.engine, "before_cursor_execute", keep)
    with cell.reading() as tx:
        found = [row for row in tx.exec_driver_sql(f"EXPLAIN {asked[0][0]}", asked[0][1]).mappings()
                 if row["table"] == "servers"]
    assert found[0]["key"] == index and int(found[0]["rows"]) < 100, found


@pytest.mark.parametrize("text", ["\N{SNOWMAN}", "\N{GRINNING FACE}", "x" * 5000])
def test_uuid_that_is_none_matches_nothing(cell: Database, text: str) -> None:
    with cell.reading() as tx:
        query = ServerListQuery(conditions=(Condition(column="uuid", value=text),))
        assert server_lists.select(tx, query, 10) == []
        with pytest.raises(errors.api.PageMarkerNotFound):
            server_lists.select(tx, ServerListQuery(page=Page(marker=text)), 10)
