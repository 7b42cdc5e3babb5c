"""Writes of several operations at once have the effect of one after the other, on each database for real."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from nova import errors
from nova.db.models import cell as tables
from nova.db.server import new_servers, row_locks, servers, states
from nova.db.server.states import PerServer, StateChange
from nova.db.sql.engine import Database, DatabaseBusy
from nova.db.sql.types import utc_now
from nova.model.server.actions import ActionEvent
from nova.model.server.servers import ServerMemo
from nova.model.server.states import ACTIONS
from tests.fakes.rows import BORN, add_servers, new_uuid, server_row

SIZES = (1, 2, 3, 50, 300)


def added(cell: Database, count: int, **fields: Any) -> list[str]:
    return add_servers(cell, *(server_row(launched_at=BORN, **fields) for _ in range(count)))


def wanted(uuid: str, action: str = "stop") -> states.Begin:
    return states.Begin(ACTIONS[action], uuid, {"of": uuid}, f"req-{uuid}", "joe", "demo", 1, "")


def begun(cell: Database, uuids: Sequence[str], action: str = "stop") -> list[states.Entry]:
    found = cell.transact(lambda tx: states.begin_all(tx, [wanted(uuid, action) for uuid in uuids]))
    return [one.entry for one in found if isinstance(one, states.Begun)]


def rows(cell: Database, uuids: Sequence[str]) -> Mapping[str, Any]:
    with cell.reading() as tx:
        return servers.rows_of(tx, uuids, with_deleted=True)


def journal(cell: Database, entries: Sequence[states.Entry]) -> list[Any]:
    table = tables.operations
    with cell.reading() as tx:
        found = {row.id: row for row in tx.execute(sa.select(table).where(table.c.id.in_([one.id for one in entries])))}
    return [found[one.id] for one in entries]


def advanced(entry: states.Entry, number: int) -> states.Entry:
    event = ActionEvent(event=f"event {number}", started_at=BORN, step="StopGuests")
    return msgspec.structs.replace(entry, step=f"step {number % 3}", data={"number": number, "text": "d'é\\" * number},
                                   history=(event,) * (number % 2))


@pytest.mark.parametrize("size", SIZES)
def test_begin_when_several_begin_then_each_has_its_own_epoch_and_journal(cell: Database, size: int) -> None:
    uuids = [added(cell, 1, epoch=number)[0] for number in range(1, size + 1)]
    entries = begun(cell, uuids)
    assert [(one.server_uuid, one.epoch) for one in entries] == [(uuid, n + 2) for n, uuid in enumerate(uuids)]
    assert [(row.server_uuid, row.epoch, row.arguments, row.request_id) for row in journal(cell, entries)] == [
        (one.server_uuid, one.epoch, {"of": one.server_uuid}, f"req-{one.server_uuid}") for one in entries]
    assert {(row.epoch, row.task_state) for row in rows(cell, uuids).values()} == {
        (n + 2, "powering-off") for n in range(size)}


@pytest.mark.parametrize("size", SIZES)
def test_begin_when_some_are_refused_then_the_others_begin_and_these_are_unchanged(cell: Database, size: int) -> None:
    good, busy, gone = added(cell, size), added(cell, size, task_state="deleting"), new_uuid()
    mixed = [uuid for pair in zip(good, busy, strict=True) for uuid in pair] + [gone]
    found = cell.transact(lambda tx: states.begin_all(tx, [wanted(uuid) for uuid in mixed]))
    assert [type(one) for one in found] == [states.Begun, errors.server.WrongState] * size + [errors.server.NotFound]
    assert {row.epoch for row in rows(cell, busy).values()} == {1}
    with cell.reading() as tx:
        assert tx.execute(sa.select(sa.func.count()).select_from(tables.operations).where(
            tables.operations.c.server_uuid.in_(busy))).scalar_one() == 0


def test_begin_when_several_actions_overtake_others_then_each_knows_its_own(cell: Database) -> None:
    uuids = added(cell, 3)
    old = begun(cell, uuids[:2], "hard_reboot")
    with_task = [wanted(uuids[0], "delete"), wanted(uuids[1], "reset_state"), wanted(uuids[2], "stop")]
    found = cell.transact(lambda tx: states.begin_all(tx, with_task))
    assert [[entry.id for entry in one.overtaken] for one in found] == [[old[0].id], [old[1].id], []]
    assert [row.outcome for row in journal(cell, old)] == ["overtaken"] * 2
    assert [rows(cell, [uuid])[uuid].task_state for uuid in uuids] == ["deleting", None, "powering-off"]
    assert [rows(cell, [uuid])[uuid].console_epoch for uuid in uuids][0] == 3  # a delete ends its consoles


@pytest.mark.parametrize("size", SIZES)
def test_advance_when_the_changes_differ_then_each_server_has_its_own(cell: Database, size: int) -> None:
    uuids = added(cell, size, node="before")
    entries = [advanced(one, number) for number, one in enumerate(begun(cell, uuids))]
    changes = [StateChange([entry], {"task_state": f"task {number % 2}", "host": f"host {number}",
                                **({"memo": ServerMemo(client_token=f"m{number}"), "launched_at": utc_now()}
                                   if number % 3 == 0 else {})}) for number, entry in enumerate(entries)]
    cell.transact(lambda tx: states.advance(tx, *changes))
    found = rows(cell, uuids)
    for number, uuid in enumerate(uuids):
        row = found[uuid]
        assert (row.task_state, row.host, row.node) == (f"task {number % 2}", f"host {number}", "before")
        assert row.memo == (ServerMemo(client_token=f"m{number}") if number % 3 == 0 else None)
        assert (row.launched_at == BORN) is (number % 3 != 0)
    assert [(row.step, row.data, row.history) for row in journal(cell, entries)] == [
        (one.step, one.data, one.history) for one in entries]


@pytest.mark.parametrize("size", SIZES)
def test_advance_when_a_change_has_values_for_some_servers_then_the_others_keep_theirs(cell: Database, size: int
                                                                                     ) -> None:
    uuids = added(cell, size, node="before", power_state=1)
    entries = begun(cell, uuids)
    few = PerServer(dict.fromkeys(uuids[::2], "after"))
    cell.transact(lambda tx: states.advance(tx, StateChange(entries, {"node": few, "power_state": 4})))
    assert [rows(cell, [uuid])[uuid].node for uuid in uuids] == [
        "after" if number % 2 == 0 else "before" for number in range(size)]
    assert {row.power_state for row in rows(cell, uuids).values()} == {4}


@pytest.mark.parametrize("size", [2, 50])
def test_advance_when_one_is_overtaken_then_nothing_is_written(cell: Database, size: int) -> None:
    uuids = added(cell, size)
    entries = [advanced(one, number) for number, one in enumerate(begun(cell, uuids))]
    begun(cell, uuids[-1:], "delete")
    with pytest.raises(errors.Overtaken):
        cell.transact(lambda tx: states.advance(tx, *(StateChange([one], {"host": "new"}) for one in entries)))
    assert {row.host for row in rows(cell, uuids).values()} == {None}
    assert {row.step for row in journal(cell, entries)} == {""}


@pytest.mark.parametrize("size", SIZES)
def test_finish_when_several_end_then_each_server_has_its_state_and_its_fault(cell: Database, size: int) -> None:
    uuids = added(cell, size)
    entries = begun(cell, uuids)
    faults = {entry.id: f"why {number}" for number, entry in enumerate(entries)}
    cell.transact(lambda tx: states.finish(tx, [
        StateChange([one], {"vm_state": "stopped" if number % 2 else "error", "deleted": tables.servers.c.id})
        for number, one in enumerate(entries)], "error", faults))
    found = rows(cell, uuids)
    assert [found[uuid].vm_state for uuid in uuids] == ["stopped" if n % 2 else "error" for n in range(size)]
    assert all(row.deleted == row.id and row.task_state is None for row in found.values())
    assert [(row.outcome, row.fault) for row in journal(cell, entries)] == [
        ("error", f"why {number}") for number in range(size)]
    assert all(row.finished_at is not None for row in journal(cell, entries))


@pytest.mark.parametrize("size", SIZES)
def test_insert_when_several_requests_are_written_then_each_has_its_own_parts(cell: Database, size: int) -> None:
    requests = []
    for number in range(size):
        uuids = [new_uuid() for _ in range(1 + number % 2)]
        entries = [{"server_uuid": uuid, "action": "create", "epoch": 1, "runner_id": 1, "arguments": {"n": number},
                    "data": {}, "history": (), "step": "", "direction": "do", "attempt": 1,
                    "request_id": f"req-{number}", "user_id": "joe", "project_id": "demo"} for uuid in uuids]
        requests.append(new_servers.NewServerRows([server_row(uuid=uuid) for uuid in uuids], entries,
                                              {"of": str(number)}, (f"tag{number}",) * (number % 3 == 0)))
    made = cell.transact(lambda tx: new_servers.insert(tx, requests))
    for number, (new, entries) in enumerate(zip(requests, made, strict=True)):
        assert [(one.server_uuid, one.arguments, one.request_id) for one in entries] == [
            (uuid, {"n": number}, f"req-{number}") for uuid in new.uuids]
        assert [row.server_uuid for row in journal(cell, entries)] == new.uuids
        with cell.reading() as tx:
            metadata, tags = servers.children(tx, new.uuids)
        assert metadata == dict.fromkeys(new.uuids, {"of": str(number)})
        assert set(tags) == (set(new.uuids) if number % 3 == 0 else set())


def test_lock_when_another_transaction_holds_a_row_then_the_others_do_not_wait(cell: Database) -> None:
    if cell.dialect == "sqlite":
        pytest.skip("a writer locks the whole database")
    uuids, held, go = added(cell, 3), threading.Event(), threading.Event()

    def hold(tx: sa.Connection) -> None:
        servers.lock_row(tx, uuids[1])
        held.set()
        assert go.wait(10)
    holder = threading.Thread(target=cell.transact, args=(hold,))
    holder.start()
    assert held.wait(10)
    started = time.monotonic()
    with pytest.raises(DatabaseBusy):
        cell.transact(lambda tx: row_locks.lock_together(tx, uuids))
    waited = time.monotonic() - started
    go.set()
    holder.join(10)
    assert waited < 5, "it waited for the row"
    cell.transact(lambda tx: row_locks.lock_together(tx, [*uuids, uuids[0]]))


def test_lock_when_a_row_is_missing_then_each_request_looks_for_its_own(cell: Database) -> None:
    uuids = [*added(cell, 1), new_uuid()]
    with pytest.raises(DatabaseBusy):
        cell.transact(lambda tx: row_locks.lock_together(tx, uuids))
