"""New servers move from the entry cell to the cell of their host, whatever fails or dies meanwhile."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.conductor.actions.create import CreateAdmission
from nova.conductor.cells.live_cells import LiveCells
from nova.conductor.service import cells_service
from nova.db.models import api as api_tables
from nova.db.models import cell as cell_tables
from nova.db.server import servers
from nova.db.sql.engine import DatabaseUnavailable
from nova.model.guest.orders import Outcome
from nova.model.host.cells import CELL
from nova.model.server.servers import LockChange, NewServer, ServerOrder, ServerUpdate
from tests import sampling
from tests.fakes.small_cloud import DEMO, SmallCloud, until
from tests.fakes.two_cells import OTHER, TwoCells

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")


@pytest.fixture
def two(tmp_path: Path, templates: Path) -> Iterator[TwoCells]:
    made = TwoCells(tmp_path, templates)
    yield made
    made.close()


def boot(two: TwoCells, count: int = 1, **fields: Any) -> list[str]:
    return two.entry.boot(count, **fields)


def shown(cell: SmallCloud) -> dict[str, str]:
    """Return the live servers of a cell: UUID -> vm_state."""
    table = cell_tables.servers
    return {row.uuid: row.vm_state for row in cell.rows("cell", sa.select(table).where(table.c.deleted == 0))}


def ledger(two: TwoCells) -> dict[str, str]:
    table = api_tables.ledger
    return {row.server_uuid: row.cell for row in two.entry.rows("api", sa.select(table))}


def arrived(two: TwoCells, uuid: str) -> Any:
    """Wait until the server is in the other cell alone, without an operation, and return its row."""
    until(lambda: uuid in shown(two.other) and not two.other.open(uuid) and uuid not in shown(two.entry),
          "the server is in its cell")
    return two.other.server(uuid)


def refuse(_host: str, order: Any) -> Outcome:
    raise errors.HostRefused("no room")


def test_place_when_the_host_is_in_the_entry_cell_then_the_server_stays(two: TwoCells) -> None:
    two.choose("a", "c")
    uuid, = boot(two)
    assert two.entry.ended(uuid).vm_state == "active"
    assert ledger(two) == {uuid: CELL} and not shown(two.other)


def test_place_when_the_host_is_in_another_cell_then_all_rows_move(two: TwoCells) -> None:
    two.choose("c")
    uuid, = boot(two, metadata={"colour": "blue"}, tags=("one", "two"))
    row = arrived(two, uuid)
    assert (row.vm_state, row.host) == ("active", "c")
    assert ledger(two) == {uuid: OTHER}
    with two.other.cell.reading() as tx:
        assert servers.children(tx, [uuid]) == ({uuid: {"colour": "blue"}}, {uuid: ["one", "two"]})
    for table in (cell_tables.server_metadata, cell_tables.server_tags, cell_tables.operations):
        assert not two.entry.rows("cell", sa.select(table)), table.name
    assert uuid in two.other.computes["c"].guests
    assert two.entry.claims() == {("c", uuid)}


def test_place_when_a_request_has_many_servers_then_all_move_together(two: TwoCells) -> None:
    two.choose("d")
    uuids = boot(two, 5)
    assert [arrived(two, uuid).vm_state for uuid in uuids] == ["active"] * 5
    assert ledger(two) == dict.fromkeys(uuids, OTHER)


def test_place_when_a_host_refuses_then_the_next_one_is_tried_in_whichever_cell_it_is(two: TwoCells) -> None:
    for cell, host in ((two.other, "c"), (two.entry, "a")):
        cell.computes[host].answers["build"] = refuse
    two.choose("c", "a", "d")
    uuid, = boot(two)
    assert arrived(two, uuid).host == "d"
    assert ledger(two) == {uuid: OTHER} and two.entry.claims() == {("d", uuid)}
    assert [row.action for row in two.other.journal(uuid)] == ["create"]
    assert not two.entry.rows("cell", sa.select(cell_tables.operations))


def test_place_when_the_cell_of_a_host_is_away_then_the_next_host_is_tried(two: TwoCells) -> None:
    two.cells.remove(OTHER)
    two.cells.add_away(OTHER)
    two.cells.forget_hosts()
    two.choose("c", "a")
    uuid, = boot(two)
    assert two.entry.ended(uuid).host == "a"


def test_place_when_a_host_was_deleted_after_its_selection_then_the_next_host_is_tried(two: TwoCells) -> None:
    two.choices["gone"] = msgspec.structs.replace(two.choices["a"], host="gone", node="gone")
    two.choose("gone", "d")
    uuid, = boot(two)
    assert arrived(two, uuid).host == "d"


def test_place_when_all_hosts_refuse_then_the_server_is_in_error_in_the_last_ones_cell(two: TwoCells) -> None:
    for cell, host in ((two.other, "c"), (two.entry, "a")):
        cell.computes[host].answers["build"] = refuse
    two.choose("c", "a")
    uuid, = boot(two)
    until(lambda: shown(two.entry) == {uuid: "error"} and not shown(two.other), "the server is in ERROR")
    assert ledger(two) == {uuid: CELL} and not two.entry.claims()
    two.entry.delete(uuid)
    assert not two.entry.open_ledger()


def test_place_when_a_host_keeps_a_part_of_the_server_then_only_hosts_of_its_cell_are_tried(two: TwoCells) -> None:
    """Orders to that host, and the release of its resources, belong to the cell of the pending cleanup."""
    def gone(*_: object) -> Any:
        raise errors.Unavailable

    two.other.computes["c"].answers.update(build=gone, destroy=gone)
    two.choose("c", "a", "d")
    uuid, = boot(two)
    assert arrived(two, uuid).host == "d"
    assert two.entry.claims() == {("c", uuid), ("d", uuid)}
    two.other.computes["c"].answers.clear()
    with context.entered(DEMO):
        two.other.control.order_server(ServerOrder(uuid=uuid, action="delete"))
    until(lambda: two.other.server(uuid).deleted, "the server is gone")


def test_password_when_the_server_is_placed_elsewhere_then_its_host_gets_it(two: TwoCells) -> None:
    two.choose("c")
    uuid, = boot(two, admin_password="correct horse")
    arrived(two, uuid)
    assert two.other.computes["c"].guests[uuid].admin_password == "correct horse"


class Interrupted:
    """The api database of a conductor, with an ``event`` before the first change of a server's cell, or after it."""

    def __init__(self, api: Any, event: Callable[[], object], after: bool = False) -> None:
        self._api, self._event, self._after, self.over = api, event, after, threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    def transact(self, work: Callable[[Any], Any]) -> Any:
        if "move_to_cell" in work.__code__.co_names and not self.over.is_set():
            self.over.set()
            if self._after:
                self._api.transact(work)
            self._event()
        return self._api.transact(work)


def test_changes_when_they_arrive_during_the_move_then_the_server_has_them_in_its_new_cell(two: TwoCells) -> None:
    control = cells_service(two.cells, two.entry.daemons)
    changes: list[threading.Thread] = []

    def change() -> None:
        uuid, = shown(two.other)
        for call, argument in ((control.update_server, ServerUpdate(uuid=uuid, fields=("name",), name="renamed")),
                               (control.lock_server, LockChange(uuid=uuid, by="owner"))):
            changes.append(threading.Thread(target=in_demo, args=(call, argument)))
            changes[-1].start()
        time.sleep(0.3)  # both have read the ledger

    two.entry.deps.api = Interrupted(two.entry.deps.api, change)  # type: ignore[assignment]
    two.choose("c")
    uuid, = boot(two)
    row = arrived(two, uuid)
    for thread in changes:
        thread.join()
    changed = two.other.server(uuid)
    assert (changed.name, changed.locked_by, row.vm_state) == ("renamed", "owner", "active")


def test_change_when_the_conductor_that_moved_the_server_died_then_it_is_not_lost_with_the_old_row(
        two: TwoCells) -> None:
    """The change waited for the old row, which the dead conductor had not removed yet."""
    two.choose("c")
    uuid, = boot(two)
    row = dict(arrived(two, uuid)._mapping)
    two.entry.write("cell", sa.insert(cell_tables.servers).values(**{**row, "id": 1000}))
    table, there = api_tables.ledger, two.entry.deps.cell

    def record(cell: str) -> None:
        two.entry.write("api", sa.update(table).where(table.c.server_uuid == uuid).values(cell=cell))

    class Freed:
        """The entry cell's database, whose row is free once the ledger names the other cell."""

        def __getattr__(self, name: str) -> Any:
            return getattr(there, name)

        def transact(self, work: Callable[[Any], Any]) -> Any:
            record(OTHER)
            return there.transact(work)

    record(CELL)
    two.entry.deps.cell = Freed()  # type: ignore[assignment]
    control = cells_service(two.cells, two.entry.daemons)
    in_demo(control.update_server, ServerUpdate(uuid=uuid, fields=("name",), name="renamed"))
    assert two.other.server(uuid).name == "renamed"


def test_place_when_a_delete_begins_during_the_move_then_it_deletes_the_server_in_its_new_cell(two: TwoCells) -> None:
    control = cells_service(two.cells, two.entry.daemons)
    deletes: list[threading.Thread] = []

    def delete() -> None:
        uuid, = shown(two.other)
        deletes.append(threading.Thread(target=in_demo, args=(control.order_server,
                                                              ServerOrder(uuid=uuid, action="delete"))))
        deletes[-1].start()

    two.entry.deps.api = Interrupted(two.entry.deps.api, delete)  # type: ignore[assignment]
    two.choose("c")
    uuid, = boot(two)
    until(lambda: any(row.uuid == uuid and row.deleted for row in two.other.rows(
        "cell", sa.select(cell_tables.servers))), "the server is deleted")
    deletes[0].join()
    until(lambda: not two.other.deps.runner.running, "its operations have ended")
    assert not shown(two.entry) and not shown(two.other)
    assert not two.entry.claims() and not two.other.computes["c"].guests and not two.entry.open_ledger()


def test_place_when_a_sweep_finds_the_copy_before_the_ledger_names_its_cell_then_the_server_is_not_lost(
        two: TwoCells) -> None:
    """The conductor that moves it is stopped between its copy and the ledger, for longer than an operation may rest."""
    def sweep() -> None:
        table = cell_tables.operations
        two.other.write("cell", sa.update(table).values(updated_at=sa.text("'2000-01-01 00:00:00'")))
        assert two.other.deps.runner.sweep() == 1
        until(lambda: not two.other.deps.runner.running, "the copy is gone")
        assert not shown(two.other)

    two.entry.deps.api = Interrupted(two.entry.deps.api, sweep)  # type: ignore[assignment]
    two.choose("c")
    uuid, = boot(two)
    until(lambda: not two.entry.deps.runner.running, "the move is given up")
    assert shown(two.entry) == {uuid: "building"} and ledger(two) == {uuid: CELL}

    def over() -> bool:
        two.entry.write("cell", sa.update(cell_tables.operations).values(
            updated_at=sa.text("'2000-01-01 00:00:00'")))
        two.entry.deps.runner.sweep()
        return uuid in shown(two.other) and not two.other.open(uuid)
    until(over, "the server is in its cell")
    assert shown(two.other) == {uuid: "active"} and not shown(two.entry) and ledger(two) == {uuid: OTHER}


def test_delete_when_it_begins_in_the_old_cell_after_a_lost_removal_then_the_move_is_withdrawn(two: TwoCells) -> None:
    """It read the ledger before the move: the newer operation decides, and nothing is left of the copy."""
    def lose() -> None:
        two.other.deps.runner.workflows.pop("create")  # takes nothing over yet
        raise DatabaseUnavailable

    workflow = two.other.deps.runner.workflows["create"]
    two.entry.deps.api = Interrupted(two.entry.deps.api, lose, after=True)  # type: ignore[assignment]
    two.choose("c")
    uuid, = boot(two)
    until(lambda: ledger(two) == {uuid: OTHER} and not two.entry.deps.runner.running, "the removal is lost")
    two.entry.order(uuid, "delete")
    until(lambda: two.entry.server(uuid).deleted, "the server is deleted")
    two.other.deps.runner.workflows["create"] = workflow

    def withdrawn() -> bool:
        two.other.deps.runner.sweep()
        return not shown(two.other) and not two.other.deps.runner.running
    until(withdrawn, "the move is withdrawn")
    assert not shown(two.entry) and not two.other.rows(
        "cell", sa.select(cell_tables.operations))
    assert not two.entry.claims() and not two.other.computes["c"].guests and not two.entry.open_ledger()


def in_demo(call: Callable[[Any], object], argument: object) -> None:
    with context.entered(DEMO):
        call(argument)


class Killed(BaseException):
    """As a SIGKILL: nothing handles it."""


class Mortal:
    """The databases of a conductor that dies at its n-th transaction, before or right after it."""

    def __init__(self, left: int, when: str) -> None:
        self.left, self.when, self.dead = left, when, threading.Event()

    def of(self, database: Any) -> Any:
        mortal = self

        class Database:
            def __getattr__(self, name: str) -> Any:
                return getattr(database, name)

            def transact(self, work: Callable[[Any], Any]) -> Any:
                if mortal.dead.is_set():
                    raise Killed
                if mortal.left:
                    mortal.left -= 1
                    return database.transact(work)
                try:
                    if mortal.when == "after":
                        database.transact(work)
                finally:
                    mortal.dead.set()
                raise Killed
        return Database()

    def give(self, cells: LiveCells) -> None:
        for deps in cells.all():
            deps.api, deps.cell = self.of(deps.api), self.of(deps.cell)
            deps.journal.cell = deps.cell


def deaths(transactions: int) -> list[tuple[int, str, bool]]:
    """Return one in four of: a transaction, the end before or after it, and which cell the next conductor sweeps
    first."""
    return sampling.one_in(4, [*itertools.product(range(transactions), ("before", "after"), (True, False))])


@pytest.mark.parametrize("transaction, when, entry_first", deaths(24))
def test_place_when_the_conductor_dies_on_the_way_to_a_second_cell_then_the_server_is_in_one_cell(
        two: TwoCells, transaction: int, when: str, entry_first: bool) -> None:
    """The first host refuses it, and the second one is in the entry cell."""
    two.other.computes["c"].answers["build"] = refuse
    two.choose("c", "a")
    dying = two.conductor("dying")
    mortal = Mortal(transaction, when)
    mortal.give(dying)
    try:
        with context.entered(DEMO):
            uuid, = CreateAdmission(dying.entry).create_servers(
                NewServer(name="vm", flavor_id="1", min_count=1, max_count=1)).uuids
    except Killed:
        two.kill(dying)
        assert transaction < 2, "the create itself has two transactions"
        return

    def built() -> bool:
        return shown(two.entry).get(uuid) == "active" and not two.entry.open(uuid) and not shown(two.other)
    until(lambda: mortal.dead.is_set() or built(), "it dies, or is done")
    two.kill(dying)
    living = two.conductor("living")

    def over() -> bool:
        for deps in sorted(living.all(), key=lambda deps: deps is living.entry, reverse=entry_first):
            deps.runner.sweep()
        return built()
    until(over, "the server is in its cell")
    assert ledger(two) == {uuid: CELL} and two.entry.claims() == {("a", uuid)}
    assert len(two.entry.journal(uuid)) == 1
    assert not two.other.rows("cell", sa.select(cell_tables.operations))


@pytest.mark.parametrize("transaction, when, entry_first", deaths(12))
def test_place_when_the_conductor_dies_at_any_transaction_then_the_server_is_in_one_cell(
        two: TwoCells, transaction: int, when: str, entry_first: bool) -> None:
    two.choose("c", "d")
    dying = two.conductor("dying")
    mortal = Mortal(transaction, when)
    mortal.give(dying)
    order = NewServer(name="vm", flavor_id="1", min_count=1, max_count=1)
    try:
        with context.entered(DEMO):
            uuid, = CreateAdmission(dying.entry).create_servers(order).uuids
    except Killed:
        two.kill(dying)
        assert transaction < 2, "the create itself has two transactions"
        return
    until(lambda: mortal.dead.is_set() or uuid in shown(two.other) and not two.other.open(uuid), "it dies, or is done")
    two.kill(dying)
    living = two.conductor("living")

    def over() -> bool:
        for deps in sorted(living.all(), key=lambda deps: deps is living.entry, reverse=entry_first):
            deps.runner.sweep()
        return uuid in shown(two.other) and not two.other.open(uuid) and uuid not in shown(two.entry)
    until(over, "the server is in its cell")
    assert shown(two.other) == {uuid: "active"} and ledger(two) == {uuid: OTHER}
    assert not two.entry.rows("cell", sa.select(cell_tables.operations))
    assert len(two.other.journal(uuid)) == 1
    with context.entered(DEMO):
        two.other.control.order_server(ServerOrder(uuid=uuid, action="delete"))
    until(lambda: two.other.server(uuid).deleted, "the server is gone")
    assert not two.entry.claims() and not two.other.computes["c"].guests
