"""Pages of servers: whatever the filters, the order and the limit, they concatenate to the whole list."""

from __future__ import annotations

import datetime
import tempfile
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from nova import errors
from nova.db.models import cell as tables
from nova.db.server import server_lists
from nova.db.sql.engine import Database
from nova.model.base import Page, Scope
from nova.model.server import states
from nova.model.server.servers import Condition, ServerListQuery
from nova.model.server.states import TaskState, VmState
from tests.fakes.databases import QuickDatabase
from tests.fakes.rows import BORN, add_servers, plugged, server_row
from tests.sampling import examples

SORTABLE = ("created_at", "name", "host", "vm_state", "task_state", "launched_at", "updated_at", "uuid", "id",
            "project_id", "description")
TIMES = st.one_of(st.none(), st.integers(0, 3).map(lambda day: BORN + datetime.timedelta(days=day, microseconds=day)))
WORDS = st.one_of(st.none(), st.sampled_from(["a", "B", "b", "ab", "", "ä"]))
ROWS = st.fixed_dictionaries({
    "name": st.sampled_from(["a", "B", "b", "ab", "web-1"]), "host": WORDS, "description": WORDS,
    "created_at": TIMES.map(lambda time: time or BORN), "launched_at": TIMES, "updated_at": TIMES,
    "vm_state": st.sampled_from(["active", "stopped", "error"]),
    "task_state": st.sampled_from([None, "rebooting", "powering-off"]),
    "project_id": st.sampled_from(["demo", "other"])})
SORTS = st.lists(st.tuples(st.sampled_from(SORTABLE), st.sampled_from(["asc", "desc"])), max_size=3,
                 unique_by=lambda pair: pair[0]).map(tuple)


@pytest.fixture(scope="module")
def shared() -> Iterator[Database]:
    """One database for all examples; each begins with an empty table."""
    with tempfile.TemporaryDirectory() as folder:
        database = QuickDatabase(f"{folder}/cell")
        tables.metadata.create_all(database.engine)
        yield database
        database.dispose()


def whole(database: Database, query: ServerListQuery) -> list[str]:
    with database.reading() as tx:
        return [row.uuid for row in server_lists.select(tx, query, 10_000)]


def paged(database: Database, query: ServerListQuery, limit: int) -> list[str]:
    """All pages, one after the other, each with the last one's end as its marker."""
    found: list[str] = []
    while True:
        page = msgspec.structs.replace(query, page=Page(limit=limit, marker=found[-1] if found else None))
        with database.reading() as tx:
            rows = server_lists.select(tx, page, limit)
        found += [row.uuid for row in rows]
        if len(rows) < limit:
            return found


def expected(rows: list[dict[str, Any]], sort: tuple[tuple[str, str], ...]) -> list[str]:
    """The order as Python has it: text by bytes, None before all, the newest first where nothing else says."""
    def key(row: dict[str, Any], name: str) -> tuple[Any, ...]:
        value = row[name]
        return (False,) if value is None else (True, value.encode() if isinstance(value, str) else value)
    ordered = list(rows)
    sort = sort or (("created_at", "desc"),)
    for name, direction in reversed((*sort, ("id", sort[-1][1]))):
        ordered.sort(key=lambda row, name=name: key(row, name), reverse=direction == "desc")
    return [row["uuid"] for row in ordered]


def test_page_when_a_sort_key_comes_again_and_again_then_it_counts_once(cell):
    made = [server_row(name=name, id=number) for number, name in enumerate("bab", 1)]
    add_servers(cell, *made)
    query = ServerListQuery(sort=(("name", "asc"), ("name", "desc")) * 500)
    assert whole(cell, query) == expected(made, (("name", "asc"),))
    assert paged(cell, query, 1) == whole(cell, query)  # a thousand keys by a thousand would take a minute


@settings(max_examples=examples(25, 60), deadline=None)
@given(rows=st.lists(ROWS, max_size=12), sort=SORTS, limit=st.integers(1, 5))
def test_pages_when_concatenated_then_they_are_the_sorted_list(shared, rows, sort, limit):
    shared.transact(lambda tx: tx.execute(sa.delete(tables.servers)))
    made = [server_row(**row, id=number) for number, row in enumerate(rows, 1)]
    add_servers(shared, *made)
    query = ServerListQuery(sort=sort)
    assert whole(shared, query) == expected(made, sort)
    assert paged(shared, query, limit) == whole(shared, query)
    mine = ServerListQuery(sort=sort, scope=Scope(project_id="demo"))
    assert paged(shared, mine, limit) == [uuid for uuid in expected(made, sort)
                                          if next(row for row in made if row["uuid"] == uuid)["project_id"] == "demo"]


def test_page_when_the_marker_is_unknown_or_anothers_then_it_is_invalid(cell):
    [foreign] = add_servers(cell, server_row(project_id="other"))
    for marker in ("no such", foreign):
        with pytest.raises(errors.api.PageMarkerNotFound), cell.reading() as tx:
            server_lists.select(tx, ServerListQuery(scope=Scope(project_id="demo"), page=Page(marker=marker)), 10)


EVERY = [(vm_state, task) for vm_state in states.STATUS for task in (None, *TaskState)]


def test_status_when_it_is_asked_for_then_just_the_servers_that_show_it_come(cell):
    shown: dict[str, set[str]] = {}
    for vm_state, task in EVERY:
        [uuid] = add_servers(cell, server_row(vm_state=vm_state.value, task_state=task.value if task else None))
        shown.setdefault(states.status(vm_state, task), set()).add(uuid)
    for name, uuids in shown.items():
        assert set(whole(cell, ServerListQuery(statuses=(name.lower(),)))) == uuids, name
    assert whole(cell, ServerListQuery(statuses=("none such",))) == []
    both = ServerListQuery(statuses=("active", "error"))
    assert set(whole(cell, both)) == shown["ACTIVE"] | shown["ERROR"]


@pytest.mark.parametrize("condition, names", [
    (Condition(column="name", op="eq", value="web-1"), {"web-1"}),
    (Condition(column="name", op="eq", value="WEB-1"), set()),
    (Condition(column="name", op="regex", value="^web"), {"web-1", "web-2"}),
    (Condition(column="name", op="regex", value="1$"), {"web-1"}),
    (Condition(column="name", op="in", values=("db", "web-2")), {"db", "web-2"}),
    (Condition(column="name", op="not_in", values=("db",)), {"web-1", "web-2"}),
    (Condition(column="host", op="is_null"), {"db"}),
    (Condition(column="launch_index", op="ge", value="1"), {"web-2"}),
    (Condition(column="launch_index", op="eq", value="many"), set()),
    (Condition(column="config_drive", op="eq", value="True"), {"db"}),
    (Condition(column="of no table", op="eq", value="x"), {"web-1", "web-2", "db"})])
def test_condition_when_it_is_given_then_it_chooses(cell, condition, names):
    add_servers(cell, server_row(name="web-1", host="h1"), server_row(name="web-2", host="h2", launch_index=1),
                server_row(name="db", config_drive=True))
    with cell.reading() as tx:
        assert {row.name for row in server_lists.select(tx, ServerListQuery(conditions=(condition,)), 10)} == names


def test_filters_when_they_are_of_other_tables_then_they_choose(cell):
    one, two, three = add_servers(cell, *(server_row(interfaces=plugged(address))
                                          for address in ("10.0.0.1", "10.0.0.12", "fd00::1")))

    def fill(tx: Any) -> None:
        for uuid, key in ((one, "a"), (one, "b"), (two, "a")):
            tx.execute(sa.insert(tables.server_metadata).values(server_uuid=uuid, key=key, value="1"))
            tx.execute(sa.insert(tables.server_tags).values(server_uuid=uuid, tag=key))
    cell.transact(fill)
    cases: list[tuple[dict[str, Any], set[str]]] = [
        ({"metadata": {"a": "1"}}, {one, two}), ({"metadata": {"a": "1", "b": "1"}}, {one}),
        ({"metadata": {"a": "2"}}, set()), ({"ip_regex": "0.1"}, {one, two}), ({"ip_regex": "0.1$"}, {one}),
        ({"ip_regex": "^192|254|fa:"}, set()),
        ({"ip6_regex": "^fd"}, {three}), ({"tags_all": ("a", "b")}, {one}), ({"tags_any": ("a", "b")}, {one, two}),
        ({"not_tags_all": ("a", "b")}, {two, three}), ({"not_tags_any": ("a", "b")}, {three})]
    for fields, uuids in cases:
        assert set(whole(cell, ServerListQuery(**fields))) == uuids, fields


def test_filters_when_servers_are_deleted_locked_or_changed_then_they_choose(cell):
    hour = datetime.timedelta(hours=1)
    live, gone, locked = add_servers(cell, server_row(updated_at=BORN + hour), server_row(deleted=7),
                                     server_row(locked_by="owner", updated_at=BORN + 3 * hour))
    cases: list[tuple[dict[str, Any], set[str]]] = [
        ({}, {live, locked}), ({"deleted": "deleted"}, {gone}), ({"deleted": "any"}, {live, gone, locked}),
        ({"locked": True}, {locked}), ({"locked": False}, {live}),
        ({"changes_since": BORN + 2 * hour}, {locked}), ({"changes_before": BORN + 2 * hour}, {live})]
    for fields, uuids in cases:
        assert set(whole(cell, ServerListQuery(**fields))) == uuids, fields


def test_states_when_they_are_the_tables_then_all_are_known_to_the_list():
    assert set(states.STATUS) >= {VmState.ACTIVE, VmState.BUILDING, VmState.ERROR, VmState.STOPPED}


def test_restorable_servers_are_in_the_lists_that_name_them(cell: Database) -> None:
    live, soft, gone = add_servers(cell, server_row(), server_row(vm_state="soft-delete"),
                                   server_row(vm_state="deleted", deleted=3))

    def found(**fields: Any) -> set[str]:
        return set(whole(cell, ServerListQuery(**fields)))

    assert found() == {live}
    assert found(soft_deleted=True) == {live, soft}
    assert found(statuses=("SOFT_DELETED",)) == found(conditions=(Condition(column="vm_state", value="soft-delete"),)) \
        == {soft}
    assert found(deleted="deleted") == {gone}
    assert found(deleted="deleted", soft_deleted=True) == {soft, gone}
    assert found(deleted="any") == {live, soft, gone}


def test_change_of_a_server_that_never_changed_is_its_making(cell: Database) -> None:
    day = datetime.timedelta(days=1)
    old, new, changed = add_servers(cell, server_row(), server_row(created_at=BORN + 2 * day),
                                    server_row(updated_at=BORN + 2 * day))
    assert set(whole(cell, ServerListQuery(changes_since=BORN + day))) == {new, changed}
    assert whole(cell, ServerListQuery(changes_before=BORN + day)) == [old]
