"""Pages over several cells are those of one list, whatever the order, the limit and the equal values."""

from __future__ import annotations

import datetime
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from nova import errors
from nova.conductor.cells import server_lists as merging
from nova.conductor.cells.fan_out import CellAnswer, FanOut
from nova.conductor.cells.gates import AT_ONCE
from nova.conductor.cells.server_lists import MergedServerLists, PagePart, first, marker_in
from nova.conductor.queries.servers import Servers
from nova.db.models import api as api_tables
from nova.db.models import cell as tables
from nova.db.server import server_lists
from nova.db.server.server_lists import ListedServer, Marker
from nova.db.sql.engine import Database, DatabaseUnavailable
from nova.model.base import Page, Scope
from nova.model.server.servers import ServerListQuery
from tests.fakes.databases import QuickDatabase
from tests.fakes.rows import BORN, add_ledger, add_servers, server_row
from tests.fakes.small_cloud import DEMO, until
from tests.fakes.two_cells import OTHER, TwoCells
from tests.sampling import examples

CELLS = ("a", "b", "c")
SORTABLE = ("created_at", "name", "host", "launched_at", "updated_at", "uuid", "description", "config_drive")
TIMES = st.one_of(st.none(), st.integers(0, 2).map(lambda day: BORN + datetime.timedelta(days=day, microseconds=day)))
WORDS = st.one_of(st.none(), st.sampled_from(["a", "B", "b", "", "ä", "a b"]))
ROWS = st.fixed_dictionaries({
    "name": st.sampled_from(["a", "B", "b"]), "host": WORDS, "description": WORDS, "config_drive": st.booleans(),
    "created_at": TIMES.map(lambda time: time or BORN), "launched_at": TIMES, "updated_at": TIMES})
SORTS = st.lists(st.tuples(st.sampled_from(SORTABLE), st.sampled_from(["asc", "desc"])), max_size=3,
                 unique_by=lambda pair: pair[0]).map(tuple)


@pytest.fixture(scope="module")
def databases() -> Iterator[dict[str, Database]]:
    """One database for each cell, and ``all`` for the whole list."""
    with tempfile.TemporaryDirectory() as folder:
        made = {name: QuickDatabase(f"{folder}/{name}") for name in (*CELLS, "all")}
        for database in made.values():
            tables.metadata.create_all(database.engine)
        yield dict(made)
        for database in made.values():
            database.dispose()


def fill(databases: dict[str, Database], rows: list[tuple[str, dict[str, Any]]]) -> None:
    """Put each row into its cell, and into ``all`` in the cells' order: of equal ones, keys order them likewise."""
    for database in databases.values():
        database.transact(lambda tx: tx.execute(sa.delete(tables.servers)))
    for cell, row in sorted(((cell, server_row(**row)) for cell, row in rows), key=lambda pair: pair[0]):
        for name in (cell, "all"):
            add_servers(databases[name], row)


def one_page(databases: dict[str, Database], query: ServerListQuery, limit: int) -> list[str]:
    marked = None
    for cell in CELLS if query.page.marker else ():
        try:
            with databases[cell].reading() as tx:
                marked = cell, server_lists.marker_of(tx, query)
        except errors.api.PageMarkerNotFound:
            continue
    parts = []
    for cell in CELLS:
        marker = marker_in(cell, *marked) if marked else None
        with databases[cell].reading() as tx:
            nobody: Any = None
            parts.append(CellAnswer(nobody, PagePart(server_lists.names(tx, query, limit, marker))))
    return [one.server.uuid for one in first(limit, query, parts)]


@settings(max_examples=examples(40, 400), deadline=None)
@given(rows=st.lists(st.tuples(st.sampled_from(CELLS), ROWS), max_size=9), sort=SORTS, limit=st.integers(1, 4))
def test_pages_when_servers_are_in_many_cells_then_they_are_those_of_one_list(
        databases: dict[str, Database], rows: list[tuple[str, dict[str, Any]]], sort: tuple[tuple[str, str], ...],
        limit: int) -> None:
    fill(databases, rows)
    query = ServerListQuery(sort=sort, detail=False)
    found: list[str] = []
    while page := one_page(databases, msgspec.structs.replace(
            query, page=Page(marker=found[-1] if found else None)), limit):
        found += page
    with databases["all"].reading() as tx:
        whole = list(tx.execute(sa.select(tables.servers.c.uuid)).scalars())
    assert sorted(found) == sorted(whole)  # each once
    downs = server_lists.descending(query)
    with databases["all"].reading() as tx:
        values = {one.uuid: one.values for one in server_lists.names(tx, query, len(whole) + 1)}
    for before, after in zip(found, found[1:], strict=False):
        assert in_order(values[before], values[after], downs), (before, after)


def in_order(one: tuple[Any, ...], other: tuple[Any, ...], downs: tuple[bool, ...]) -> bool:
    for left, right, down in zip(one, other, downs, strict=True):
        if left != right:
            less = left is None or right is not None and left < right
            return less != down
    return True


class ManyCells:
    """The live cells of a conductor, with these databases; ``asked``: how often each cell was asked for names."""

    several = True

    def __init__(self, databases: dict[str, Database], api: Database) -> None:
        self._cells = [SimpleNamespace(cell=databases[name], cell_uuid=name, api=api) for name in CELLS]
        self.entry, self.fan_out, self.asked = self._cells[0], FanOut(self), Counter[str]()  # type: ignore[arg-type]

    def all(self) -> list[Any]:
        return list(self._cells)

    def named(self, uuid: str) -> Any:
        return next(one for one in self._cells if one.cell_uuid == uuid)

    def servers(self, deps: Any) -> Any:
        def names(query: ServerListQuery, limit: int, marker: Marker | None) -> list[ListedServer]:
            self.asked[deps.cell_uuid] += 1
            with deps.cell.reading() as tx:
                return server_lists.names(tx, query, limit, marker)
        return SimpleNamespace(names=names, limit=lambda query: query.page.limit)


@pytest.mark.parametrize(("placed", "asked"), [
    (lambda number: "b", {"a": 1, "b": 2, "c": 1}), (lambda number: CELLS[number % 3], {"a": 1, "b": 1, "c": 1})])
def test_page_when_a_cell_has_more_than_its_share_then_it_is_asked_once_more(
        databases: dict[str, Database], tmp_path: Path, monkeypatch: Any, placed: Any, asked: dict[str, int]) -> None:
    monkeypatch.setattr(merging, "share_of", lambda limit, cells: 20)
    api = QuickDatabase(f"{tmp_path}/api")
    api_tables.metadata.create_all(api.engine)
    fill(databases, [(placed(number), {"name": f"{number:02}"}) for number in range(45)])
    cells: Any = ManyCells(databases, api)
    with databases["all"].reading() as tx:
        whole = [one.uuid for one in server_lists.names(tx, ServerListQuery(sort=(("name", "asc"),)), 100)]
    for cell in CELLS:
        with databases[cell].reading() as tx:
            for uuid in tx.scalars(sa.select(tables.servers.c.uuid)):
                add_ledger(api, server_uuid=uuid, cell=cell)
    found: list[str] = []
    while len(found) < 45:
        query = ServerListQuery(sort=(("name", "asc"),), detail=False,
                                page=Page(limit=30, marker=found[-1] if found else None))
        page = MergedServerLists(cells, cells.servers).list_servers(query).summaries
        assert cells.asked == asked if not found else page
        found += [one.uuid for one in page]
    assert found == whole
    api.dispose()


# -- with conductors

@pytest.fixture
def two(tmp_path: Path, templates: Path) -> Iterator[TwoCells]:
    made = TwoCells(tmp_path, templates)
    yield made
    made.close()


def spread(two: TwoCells) -> list[str]:
    """Boot four servers, in turns in both cells; return them with the newest first."""
    found = []
    for host in ("a", "c", "b", "d"):
        two.choose(host)
        uuid, = two.entry.boot()
        cell = two.entry if host in "ab" else two.other
        until(lambda uuid=uuid, cell=cell: any(row.vm_state == "active" for row in cell.rows("cell", sa.select(
            tables.servers).where(tables.servers.c.uuid == uuid))), "it is active")
        found.insert(0, uuid)
    return found


class Gone:
    """A cell's database that does not answer."""

    def reading(self) -> Any:
        raise DatabaseUnavailable("gone")

    def answers(self) -> bool:
        return False


def listed(two: TwoCells, **query: Any) -> list[str]:
    page = MergedServerLists(two.cells).list_servers(ServerListQuery(**query))
    return [one.uuid for one in (*page.servers, *page.summaries)]


def test_list_when_servers_are_in_two_cells_then_pages_cover_both(two: TwoCells) -> None:
    uuids = spread(two)
    assert listed(two) == uuids == listed(two, detail=False)
    for limit in (1, 2, 3):
        found: list[str] = []
        while page := listed(two, page=Page(limit=limit, marker=found[-1] if found else None)):
            found += page
        assert found == uuids
    with pytest.raises(errors.api.PageMarkerNotFound):
        listed(two, page=Page(marker="00000000-0000-0000-0000-00000000beef"))


def test_list_when_a_cell_is_away_then_the_query_decides(two: TwoCells) -> None:
    uuids = spread(two)
    away = errors.Unavailable
    there = two.other.deps.cell
    two.other.deps.cell = Gone()  # type: ignore[assignment]
    try:
        assert listed(two, silent_cells="skip") == [uuids[1], uuids[3]]
        page = MergedServerLists(two.cells).list_servers(ServerListQuery(silent_cells="show"))
        assert {one.uuid: one.unknown for one in page.servers} == {
            uuids[1]: False, uuids[3]: False, uuids[0]: True, uuids[2]: True}
        with pytest.raises(away):
            listed(two)
        with pytest.raises(away):
            listed(two, silent_cells="skip", page=Page(marker=uuids[0]))
        assert listed(two, silent_cells="skip", page=Page(marker=uuids[1])) == [uuids[3]]
    finally:
        two.other.deps.cell = there


def test_list_of_a_project_when_a_cell_has_none_of_its_servers_then_that_cell_is_not_asked(two: TwoCells) -> None:
    here = Scope(project_id=DEMO.project_id)
    uuids = []
    for host in ("a", "b"):
        two.choose(host)
        uuids = [*two.entry.active(), *uuids]
    there = two.other.deps.cell
    two.other.deps.cell = Gone()  # type: ignore[assignment]
    try:
        assert listed(two, scope=here) == uuids == listed(two, scope=here, detail=False)
        assert listed(two, scope=here, page=Page(limit=1, marker=uuids[0])) == uuids[1:]
        assert listed(two, scope=Scope(project_id="without servers")) == []
        for every in ({"scope": here, "deleted": "deleted"}, {"scope": here, "deleted": "all"}, {}):
            with pytest.raises(errors.Unavailable):
                listed(two, **every)
    finally:
        two.other.deps.cell = there


def test_list_when_a_cell_hangs_then_others_keep_their_speed_and_threads_stay_bounded(two: TwoCells) -> None:
    uuids = spread(two)
    go = threading.Event()

    class Hanging:
        def reading(self) -> Any:
            go.wait(20)
            return there.reading()

        def answers(self) -> bool:
            return go.wait(20)
    there = two.other.deps.cell
    two.other.deps.cell = Hanging()  # type: ignore[assignment]
    before = threading.active_count()
    try:
        two.cells.fan_out = FanOut(two.cells, answers_s=1.0)
        lists = MergedServerLists(two.cells)
        for _ in range(AT_ONCE + 20):  # the last ones find no free thread for it, and do not wait
            page = lists.list_servers(ServerListQuery(silent_cells="skip"))
            assert [one.uuid for one in page.servers] == [uuids[1], uuids[3]]
        assert threading.active_count() - before <= 2 * AT_ONCE
    finally:
        go.set()
        two.other.deps.cell = there


@pytest.mark.parametrize("detail", (True, False))
def test_list_when_a_server_moves_between_the_cells_answers_then_it_is_listed(two: TwoCells, detail: bool) -> None:
    """The cell that it enters was read before, and the one that it leaves is read after the move."""
    uuids, read, moved = spread(two), threading.Event(), []

    class InTurn(Servers):
        def names(self, query: ServerListQuery, limit: int, marker: Marker | None = None) -> list[ListedServer]:
            if self.deps is two.entry.deps and not moved:
                assert read.wait(10)
                two.choose("c")
                moved.extend(two.entry.boot())
                until(lambda: moved[0] in {row.uuid for row in two.other.rows("cell", sa.select(tables.servers))}
                      and not two.entry.open(moved[0]), "it is in the other cell")
            page = super().names(query, limit, marker)
            if self.deps is two.other.deps:
                read.set()
            return page

    two.cells.fan_out = FanOut(two.cells, answers_s=20.0)
    page = MergedServerLists(two.cells, InTurn).list_servers(ServerListQuery(detail=detail))
    assert [one.uuid for one in (*page.servers, *page.summaries)] == [*moved, *uuids] and len(moved) == 1


def test_list_when_a_server_is_in_both_cells_for_an_instant_then_it_is_listed_once(two: TwoCells) -> None:
    uuids = spread(two)
    row = dict(two.other.server(uuids[0])._mapping)
    two.entry.write("cell", sa.insert(tables.servers).values(**{**row, "id": 1000}))
    assert listed(two) == uuids
    assert listed(two, page=Page(limit=2)) == uuids[:2]
    assert two.entry.deps.cell_uuid != OTHER
