"""begin, advance, finish and takeovers: each changes what its epoch owns, or nothing at all."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from nova import errors
from nova.db.models import cell as tables
from nova.db.operation import runners
from nova.db.server import operation_arguments, servers, states
from nova.db.server.states import StateChange
from nova.db.sql.engine import Database
from nova.model.server.servers import ServerMemo
from nova.model.server.states import ACTIONS, TaskState, VmState, refusal
from tests.fakes.rows import BORN, add_servers, new_uuid, server_row

LEASE_S = 20


def add(cell: Database, **fields: Any) -> str:
    return add_servers(cell, server_row(launched_at=BORN, **fields))[0]


def begin(cell: Database, uuid: str, action: str, runner_id: int = 1) -> tuple[states.Entry, tuple[states.Entry, ...]]:
    begin = states.Begin(ACTIONS[action], uuid, {}, "req-1", "joe", "demo", runner_id, "")
    begun = cell.transact(lambda tx: states.begin(tx, begin))
    return begun.entry, begun.overtaken


def server(cell: Database, uuid: str) -> Any:
    with cell.reading() as tx:
        return tx.execute(sa.select(tables.servers).where(tables.servers.c.uuid == uuid)).one()


def operation(cell: Database, entry: states.Entry) -> Any:
    with cell.reading() as tx:
        return tx.execute(sa.select(tables.operations).where(tables.operations.c.id == entry.id)).one()


def new_runner(cell: Database, alive: bool = True) -> int:
    key = cell.transact(lambda tx: runners.new_runner(tx, "runner", LEASE_S))
    if not alive:
        cell.transact(lambda tx: tx.execute(sa.update(tables.runners).where(tables.runners.c.id == key)
                                            .values(lease_until=BORN)))
    return key


@pytest.mark.parametrize("name", [name for name in ACTIONS if name != "create"])
def test_begin_when_allowed_then_its_row_is_the_databases(cell: Database, name: str) -> None:
    wanted = [states.Begin(ACTIONS[name], add(cell, vm_state=vm_state.value, task_state=task), {}, "req-1", "joe",
                           "demo", 1, "")
              for vm_state in VmState if vm_state is not VmState.UNKNOWN for task in (None, "deleting", "migrating")]
    found = [one for first in (wanted[:1], wanted[1:])
             for one in cell.transact(lambda tx, first=first: states.begin_all(tx, first))]  # type: ignore[misc]
    begun = {one.server.uuid: one.server for one in found if isinstance(one, states.Begun)}
    assert begun
    with cell.reading() as tx:
        rows = servers.rows_of(tx, list(begun))
    assert {uuid: msgspec.structs.replace(row, updated_at=None) for uuid, row in begun.items()} == {
        uuid: msgspec.structs.replace(row, updated_at=None) for uuid, row in rows.items()}


@pytest.mark.parametrize("name", ACTIONS)
def test_begin_when_the_server_is_being_deleted_then_only_another_delete_or_a_reset_overtakes(cell, name):
    uuid = add(cell, vm_state="active", task_state="deleting")
    if name in ("delete", "reset_state"):
        assert begin(cell, uuid, name)[0].epoch > 1
    else:
        with pytest.raises(errors.WrongState):
            begin(cell, uuid, name)


@pytest.mark.parametrize("name", ACTIONS)
@pytest.mark.parametrize("vm_state", ["active", "error", "soft-delete"])
def test_begin_when_a_delete_destroyed_a_part_then_only_another_delete_goes_on(cell, name, vm_state):
    uuid = add(cell, vm_state=vm_state, memo=ServerMemo(destroying=True))
    before = server(cell, uuid)
    if name == "delete":
        assert begin(cell, uuid, name)[0].epoch > before.epoch
    else:
        with pytest.raises(errors.WrongState, match="delete it again"):
            begin(cell, uuid, name)
        assert server(cell, uuid) == before


def test_begin_when_a_delete_failed_then_the_next_one_knows_its_hosts(cell):
    uuid = add(cell, vm_state="active")
    first, _ = begin(cell, uuid, "delete")
    first = msgspec.structs.replace(first, arguments={"hosts": ["host3"]}, data={"tried": ["host4"]})
    cell.transact(lambda tx: tx.execute(sa.update(tables.operations).where(tables.operations.c.id == first.id).values(
        arguments=first.arguments)))
    cell.transact(lambda tx: states.finish(tx, [StateChange([first], {"vm_state": "error"})], "error"))
    entry, overtaken = begin(cell, uuid, "delete")
    kept = cell.transact(lambda tx: operation_arguments.remember(tx, entry, overtaken))
    assert kept.arguments["hosts"] == ["host4", "host3"]


@pytest.mark.parametrize("name", ACTIONS)
def test_begin_when_the_table_refuses_then_nothing_changes_and_else_the_epoch_rises(cell, name):
    action = ACTIONS[name]
    cases = [(vm_state, task) for vm_state in VmState for task in (None, TaskState.SPAWNING, TaskState.REBOOTING)]
    uuids = add_servers(cell, *[server_row(launched_at=BORN, vm_state=vm_state.value,
                                           task_state=task.value if task else None) for vm_state, task in cases])
    with cell.reading() as tx:
        rows = {row.uuid: row for row in tx.execute(sa.select(tables.servers))}
    for uuid, (vm_state, task) in zip(uuids, cases, strict=True):
        before = rows[uuid]
        if refusal(action, vm_state, task, launched=True):
            with pytest.raises(errors.WrongState):
                begin(cell, uuid, name)
            assert server(cell, uuid) == before
        else:
            entry, overtaken = begin(cell, uuid, name)
            after = server(cell, uuid)
            assert (after.epoch, entry.epoch, overtaken) == (before.epoch + 1, before.epoch + 1, ())
            assert after.task_state == action.task and after.vm_state == vm_state.value


def test_begin_when_there_is_no_such_live_server_then_it_is_not_found(cell):
    for uuid in (new_uuid(), add(cell, deleted=7)):
        with pytest.raises(errors.server.NotFound):
            begin(cell, uuid, "delete")


def test_begin_when_delete_overtakes_then_what_was_open_is_closed_and_its_hosts_are_kept(cell):
    uuid = add(cell)
    first, _ = begin(cell, uuid, "stop")
    first = states.Entry(**{**{name: getattr(first, name) for name in states.Entry.__struct_fields__},
                            "data": {"tried": ["h1", "h2"]}})
    cell.transact(lambda tx: states.advance(tx, StateChange([first], {})))
    second, overtaken = begin(cell, uuid, "delete")
    assert [one.id for one in overtaken] == [first.id]
    assert operation(cell, first).outcome == "overtaken"
    remembered = cell.transact(lambda tx: operation_arguments.remember(tx, second, overtaken))
    assert remembered.arguments["hosts"] == ["h1", "h2"] == operation(cell, second).arguments["hosts"]


def test_advance_and_finish_when_the_epoch_is_old_then_they_are_overtaken_and_write_nothing(cell):
    uuid = add(cell)
    old, _ = begin(cell, uuid, "stop")
    begin(cell, uuid, "delete")
    before, journal = server(cell, uuid), operation(cell, old)
    for write in (lambda tx: states.advance(tx, StateChange([old], {"vm_state": "stopped"})),
                  lambda tx: states.finish(tx, [StateChange([old], {"vm_state": "stopped"})], "success")):
        with pytest.raises(errors.Overtaken):
            cell.transact(write)
        assert (server(cell, uuid), operation(cell, old)) == (before, journal)


def test_advance_when_one_of_many_is_lost_then_none_is_written(cell):
    entries = [begin(cell, add(cell), "stop")[0] for _ in range(3)]
    begin(cell, entries[1].server_uuid, "delete")
    with pytest.raises(errors.Overtaken):
        cell.transact(lambda tx: states.advance(tx, StateChange(entries, {"progress": 50})))
    assert {server(cell, entry.server_uuid).progress for entry in entries} == {0}
    with cell.reading() as tx:
        assert states.still_mine(tx, entries) == {entries[0].server_uuid, entries[2].server_uuid}


def test_advance_when_servers_differ_then_each_gets_its_own(cell):
    entries = [begin(cell, add(cell), "stop")[0] for _ in range(3)]
    progress = states.PerServer({entry.server_uuid: number for number, entry in enumerate(entries)})
    cell.transact(lambda tx: states.advance(tx, StateChange(entries, {"progress": progress})))
    assert [server(cell, entry.server_uuid).progress for entry in entries] == [0, 1, 2]


def test_finish_when_it_is_done_then_the_task_is_over_and_the_journal_row_closed(cell):
    uuid = add(cell)
    entry, _ = begin(cell, uuid, "stop")
    change = StateChange([entry], {"vm_state": "stopped"})
    cell.transact(lambda tx: states.finish(tx, [change], "error", {entry.id: "why"}))
    row, journal = server(cell, uuid), operation(cell, entry)
    assert (row.vm_state, row.task_state) == ("stopped", None)
    assert (journal.outcome, journal.fault) == ("error", "why") and journal.finished_at is not None


def test_renew_when_the_lease_has_ended_then_it_is_not_renewed(cell):
    dead, alive = new_runner(cell, alive=False), new_runner(cell)
    assert cell.transact(lambda tx: runners.renew(tx, alive, LEASE_S))
    assert not cell.transact(lambda tx: runners.renew(tx, dead, LEASE_S))
    cell.transact(lambda tx: runners.end_runner(tx, alive))
    assert not cell.transact(lambda tx: runners.renew(tx, alive, LEASE_S))


def test_orphans_when_runners_are_dead_alive_or_ours_then_just_the_dead_ones_are_found(cell):
    mine, other, dead = new_runner(cell), new_runner(cell), new_runner(cell, alive=False)
    found = {runner: begin(cell, add(cell), "stop", runner)[0] for runner in (mine, other, dead)}
    ended, _ = begin(cell, add(cell), "stop", dead)
    cell.transact(lambda tx: states.finish(tx, [StateChange([ended], {})], "success"))
    with cell.reading() as tx:
        assert [entry.id for entry in runners.orphans(tx, mine, set())] == [found[dead].id]
    cell.transact(lambda tx: tx.execute(sa.update(tables.operations).values(updated_at=BORN)))
    with cell.reading() as tx:  # of ours those that nobody has run for a while
        assert {entry.id for entry in runners.orphans(tx, mine, set())} == {found[dead].id, found[mine].id}
        assert [entry.id for entry in runners.orphans(tx, mine, {found[mine].id})] == [found[dead].id]


def test_take_over_when_two_try_then_one_has_it_and_the_dead_runner_writes_nothing_more(cell):
    first, second, dead = new_runner(cell), new_runner(cell), new_runner(cell, alive=False)
    uuid = add(cell)
    entry, _ = begin(cell, uuid, "stop", dead)
    taken = cell.transact(lambda tx: states.take_over(tx, entry, first))
    assert taken is not None and (taken.epoch, taken.runner_id) == (entry.epoch + 1, first)
    assert cell.transact(lambda tx: states.take_over(tx, entry, second)) is None
    with pytest.raises(errors.Overtaken):
        cell.transact(lambda tx: states.advance(tx, StateChange([entry], {"vm_state": "stopped"})))
    cell.transact(lambda tx: states.finish(tx, [StateChange([taken], {"vm_state": "stopped"})], "success"))
    assert server(cell, uuid).vm_state == "stopped"
