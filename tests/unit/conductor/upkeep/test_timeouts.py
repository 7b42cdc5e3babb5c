"""What conductors order by themselves: only what is due, once, and never for a server that changed meanwhile."""

from __future__ import annotations

import dataclasses
import datetime
import logging
import threading
from collections.abc import Sequence
from typing import Any

import pytest
import sqlalchemy as sa

from nova import errors
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op, Result
from nova.conductor.engine.workflow import Step, Workflow
from nova.conductor.registry import DELETE_SERVER
from nova.conductor.upkeep import timeouts
from nova.db.models.cell import migrations, operations, servers
from nova.db.server import migrations as moves
from nova.model.base import utcnow
from nova.model.server.migrations import NewMigration
from nova.model.server.servers import ServerMemo
from nova.model.server.states import ACTIONS, VmState
from tests.fakes.rows import add_servers, server_row
from tests.fakes.small_cloud import SmallCloud, node_id, until
from tests.unit.conductor.queries.test_statement_counts import statements

RULES = {rule.action: rule for rule in timeouts.RULES}
#: action -> the state that it leaves, the action that led there, and its state after it
CASES = {"confirmResize": ("resized", "resize", "active"), "unrescue": ("rescued", "rescue", "active"),
         "shelveOffload": ("shelved", "shelve", "shelved_offloaded"), "delete": ("soft-delete", "soft_delete", None)}


class Note(Step):
    """A stand-in for an action's own steps."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[str] = []
        self.error: errors.NovaError | None = None

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        self.done += [op.uuid for op in ops]
        return [self.error or {} for _ in ops]


@pytest.fixture
def note() -> Note:
    return Note()


def ready(cloud: SmallCloud, note: Note, *worlds: Deps, **settings: int) -> None:
    """Stand-ins for what the rules order, and the options switched on."""
    for deps in worlds or (cloud.deps,):
        for action in CASES:
            ending = {"vm_state": CASES[action][2] or "deleted"}
            deps.runner.workflows[action] = Workflow(action, note, ending=lambda ops, ending=ending: ending)
        deps.settings = dataclasses.replace(deps.settings, **settings)


def ago(seconds: float) -> datetime.datetime:
    return utcnow() - datetime.timedelta(seconds=seconds)


def rests(cloud: SmallCloud, action: str, seconds: float, **columns: Any) -> str:
    """A server that came into the state which ``action`` leaves, so long ago. Its row changed just now."""
    vm_state, came, _after = CASES[action]
    if action == "confirmResize":
        columns = {"memo": ServerMemo(vm_state="active", move=node_id("move")), **columns}
    row = server_row(vm_state=vm_state, launched_at=ago(9999), updated_at=ago(1), host="a", epoch=3, **columns)
    uuid, = add_servers(cloud.cell, row)
    record(cloud, uuid, came, seconds, "success")
    if action == "confirmResize":
        flavor = cloud.server(uuid).flavor
        cloud.cell.transact(lambda tx: moves.insert(tx, NewMigration(
            uuid=node_id("move"), server_uuid=uuid, type="resize", status="finished", source_compute="b",
            old_flavor=flavor, new_flavor=flavor)))
    return uuid


def record(cloud: SmallCloud, uuid: str, action: str, seconds: float, outcome: str | None) -> None:
    """An operation that ended (``outcome`` None: is open) so long ago."""
    cloud.write("cell", sa.insert(operations).values(
        server_uuid=uuid, action=action, epoch=3, runner_id=cloud.deps.runner.journal.runner_id, arguments={}, data={},
        history=(), request_id="req-x", started_at=ago(seconds), updated_at=ago(seconds), outcome=outcome,
        finished_at=ago(seconds) if outcome else None))


def look(action: str) -> timeouts.TimeoutSweep:
    return timeouts.TimeoutSweep(RULES[action])


@pytest.mark.parametrize("action", CASES)
def test_look_when_the_time_is_over_then_the_action_is_ordered_and_told(cloud, note, action, caplog) -> None:
    ready(cloud, note, **{RULES[action].option: 100})
    due, young = rests(cloud, action, 101), rests(cloud, action, 50)
    with caplog.at_level(logging.INFO):
        assert look(action)(cloud.deps) == 1
    assert cloud.ended(due).vm_state == (CASES[action][2] or "deleted") and note.done == [due]
    assert cloud.server(young).epoch == 3 and RULES[action].option in caplog.text
    done = cloud.journal(due)[-1]
    assert done.action == action and done.outcome == "success" and done.user_id is None
    assert done.request_id.startswith("req-")


@pytest.mark.parametrize("action", ["delete", "shelveOffload"])
def test_look_when_the_memo_says_since_when_then_that_counts(cloud, note, action) -> None:
    ready(cloud, note, **{RULES[action].option: 100})
    memo = ServerMemo(soft_deleted_at=ago(10), shelved_at=ago(10))
    assert rests(cloud, action, 500, memo=memo) and look(action)(cloud.deps) == 0
    old = rests(cloud, action, 1, memo=ServerMemo(soft_deleted_at=ago(200), shelved_at=ago(200)))
    assert look(action)(cloud.deps) == 1 and cloud.ended(old).epoch == 4


def test_look_when_the_journal_tells_of_no_beginning_then_the_last_change_counts(cloud, note) -> None:
    ready(cloud, note, rescue_timeout=100)
    add_servers(cloud.cell, server_row(vm_state="rescued", launched_at=ago(999), updated_at=ago(50)))
    old, = add_servers(cloud.cell, server_row(vm_state="rescued", launched_at=ago(999), updated_at=ago(150)))
    assert look("unrescue")(cloud.deps) == 1 and note.done in ([], [old]) and cloud.ended(old).vm_state == "active"


@pytest.mark.parametrize("settings", [{}, {"shelved_offload_time": -1}])
def test_look_when_it_is_switched_off_then_nothing_is_asked(cloud, note, settings) -> None:
    ready(cloud, note, **settings)
    rests(cloud, "shelveOffload", 9999)
    with statements(cloud) as seen:
        assert [look(action)(cloud.deps) for action in CASES] == [0, 0, 0, 0]
    assert seen == []


@pytest.mark.parametrize("busy", [{"task_state": "deleting"}, {"deleted": 7}, {"vm_state": "active"}])
def test_look_when_the_server_is_in_another_state_then_it_is_left_alone(cloud, note, busy) -> None:
    ready(cloud, note, rescue_timeout=100)
    uuid = rests(cloud, "unrescue", 200)
    cloud.write("cell", sa.update(servers).where(servers.c.uuid == uuid).values(**busy))
    assert look("unrescue")(cloud.deps) == 0


@pytest.mark.parametrize("change", [{"epoch": 4}, {"deleted": 7}])
def test_order_when_something_began_since_the_look_then_it_is_not_given(cloud, note, monkeypatch, change) -> None:
    """A restored server must not be deleted, whatever was read before."""
    ready(cloud, note, reclaim_instance_interval=100)
    uuid = rests(cloud, "delete", 200)
    real = timeouts.timeouts.idle_servers

    def meanwhile(*args: Any) -> Any:
        found = real(*args)
        cloud.write("cell", sa.update(servers).where(servers.c.uuid == uuid).values(**change))
        return found
    monkeypatch.setattr(timeouts.timeouts, "idle_servers", meanwhile)
    assert look("delete")(cloud.deps) == 0 and not note.done and not cloud.open(uuid)


def test_look_when_several_conductors_look_at_once_then_each_server_is_ordered_once(cloud, note) -> None:
    worlds = [cloud.deps, cloud.conductor("c2"), cloud.conductor("c3")]
    ready(cloud, note, *worlds, rescue_timeout=100)
    due = [rests(cloud, "unrescue", 200) for _ in range(12)]
    barrier, counts = threading.Barrier(3), []

    def run(deps: Deps) -> None:
        barrier.wait(5)
        counts.append(look("unrescue")(deps))
    threads = [threading.Thread(target=run, args=(deps,)) for deps in worlds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(counts) == 3 and sum(counts) == 12
    until(lambda: len(note.done) == 12, "all are done")
    assert sorted(note.done) == sorted(due)
    for uuid in due:
        assert cloud.ended(uuid).vm_state == "active" and len(cloud.journal(uuid)) == 2


def test_look_when_there_are_many_then_each_turn_takes_a_page_and_none_waits_for_ever(cloud, note, monkeypatch) -> None:
    monkeypatch.setattr(timeouts, "BATCH", 3)
    ready(cloud, note, rescue_timeout=100)
    for _ in range(7):  # they are younger, and stand before it
        rests(cloud, "unrescue", 10)
    due = rests(cloud, "unrescue", 500)
    cloud.write("cell", sa.update(servers).where(servers.c.uuid == due).values(updated_at=utcnow()))
    turns = look("unrescue")
    assert [turns(cloud.deps) for _ in range(4)] == [0, 0, 1, 0]
    cloud.ended(due)  # (what was ordered asks for itself)
    with statements(cloud) as seen:
        turns(cloud.deps)
    assert len(seen) == 1


def test_look_when_it_failed_then_the_server_is_left_in_peace_for_a_while(cloud, note) -> None:
    ready(cloud, note, resize_confirm_window=100)
    note.error = errors.Conflict("the host is away")
    uuid = rests(cloud, "confirmResize", 200)
    assert look("confirmResize")(cloud.deps) == 1
    assert cloud.ended(uuid).vm_state == "resized" and cloud.journal(uuid)[-1].outcome == "error"
    assert look("confirmResize")(cloud.deps) == 0
    cloud.write("cell", sa.update(operations).where(operations.c.action == "confirmResize").values(
        started_at=ago(timeouts.AGAIN_S + 1)), sa.update(operations).where(operations.c.action == "resize").values(
            finished_at=ago(2 * timeouts.AGAIN_S)))
    assert look("confirmResize")(cloud.deps) == 1 and cloud.ended(uuid)


def test_look_when_one_cannot_be_ordered_then_the_others_are_and_it_is_told_once(cloud, note, caplog) -> None:
    ready(cloud, note, resize_confirm_window=100)
    lost = rests(cloud, "confirmResize", 300, memo=ServerMemo())  # nothing says where it was before
    turns = look("confirmResize")
    assert [turns(cloud.deps) for _ in range(3)] == [0, 0, 0] and cloud.server(lost).vm_state == "resized"
    assert caplog.text.count("cannot order '") == 1 and not cloud.open(lost)
    cloud.write("cell", sa.delete(migrations))
    good = rests(cloud, "confirmResize", 200)
    assert turns(cloud.deps) == 1 and cloud.ended(good).vm_state == "active"


def test_look_when_an_earlier_round_was_tried_then_the_new_one_does_not_wait_for_it(cloud, note) -> None:
    ready(cloud, note, resize_confirm_window=20)
    uuid = rests(cloud, "confirmResize", 30)
    record(cloud, uuid, "confirmResize", 90, "success")
    assert look("confirmResize")(cloud.deps) == 1 and cloud.ended(uuid).vm_state == "active"


def test_order_when_its_conductor_dies_right_after_it_then_another_goes_on(cloud, note, monkeypatch) -> None:
    other = cloud.conductor("c2")
    ready(cloud, note, cloud.deps, other, rescue_timeout=100)
    uuid = rests(cloud, "unrescue", 200)
    monkeypatch.setattr(cloud.deps.runner, "start", lambda entries: None)
    assert look("unrescue")(cloud.deps) == 1 and len(cloud.open(uuid)) == 1
    cloud.die(cloud.deps)
    other.runner.sweep()
    assert cloud.ended(uuid).vm_state == "active" and note.done == [uuid]
    cloud.deps.runner.journal.open()


def test_all_looks_when_nothing_is_there_then_each_is_one_statement(cloud, note) -> None:
    ready(cloud, note, **{rule.option: 100 for rule in timeouts.RULES}, instance_build_timeout=100)
    cloud.active(3)
    for _seconds, job, name in timeouts.jobs(cloud.deps.settings):
        with statements(cloud) as seen:
            assert job(cloud.deps) == 0
        assert len(seen) == 1, name


INDEXED = {"resting": "ix_servers_vm_state", "building": "ix_servers_vm_state", "ownerless": "ix_servers_tasks",
           "abandoned": "ix_migrations_status"}


@pytest.mark.parametrize("name", INDEXED)
def test_statement_finds_its_rows_by_an_index(cloud, name) -> None:
    calls = {"resting": lambda tx: timeouts.timeouts.idle_servers(tx, timeouts.timeouts.IdleServersQuery(
                 VmState.RESCUED, ("rescue",), "unrescue"), 5),
             "building": lambda tx: timeouts.timeouts.building(tx, 5, 5),
             "ownerless": lambda tx: timeouts.timeouts.ownerless(tx, 5),
             "abandoned": lambda tx: timeouts.timeouts.abandoned(tx, 5)}
    asked: list[tuple[str, Any]] = []
    with cloud.cell.reading() as tx:
        def note_down(*args: Any) -> None:
            asked.append((args[2], args[3]))
        sa.event.listen(cloud.cell.engine, "before_cursor_execute", note_down)
        calls[name](tx)
        sa.event.remove(cloud.cell.engine, "before_cursor_execute", note_down)
        plan = " ".join(str(row) for row in tx.exec_driver_sql(f"EXPLAIN QUERY PLAN {asked[0][0]}", asked[0][1]))
    assert INDEXED[name] in plan and "SCAN" not in plan, plan


def test_jobs_are_those_that_are_switched_on_and_look_often_enough() -> None:
    from nova.conductor.engine.deps import ConductorSettings

    names = {name: seconds for seconds, _job, name in timeouts.jobs(ConductorSettings())}
    assert set(names) == {"tasks without an operation", "moves without an operation"}
    names = {name: seconds for seconds, _job, name in timeouts.jobs(ConductorSettings(
        resize_confirm_window=3, rescue_timeout=900, shelved_offload_time=5, shelved_poll_interval=0,
        instance_build_timeout=7))}
    assert (names["resize_confirm_window"], names["rescue_timeout"], names["shelved_offload_time"],
            names["instance_build_timeout"]) == (3, timeouts.TURN_S, timeouts.TURN_S, 7)
    off = ConductorSettings(shelved_offload_time=5, shelved_poll_interval=-1)
    assert "shelved_offload_time" not in {name for _seconds, _job, name in timeouts.jobs(off)}


# -- builds that take too long

def test_build_when_it_takes_too_long_then_it_is_given_up_and_its_late_end_changes_nothing(cloud, note) -> None:
    ready(cloud, note, instance_build_timeout=100)
    go, reached = threading.Event(), threading.Event()

    def wait(orders: Any) -> None:
        reached.set()
        go.wait(20)
    cloud.computes["a"].before["build"] = wait
    uuid, = cloud.boot()
    assert reached.wait(10) and timeouts.fail_stuck_builds(cloud.deps) == 0
    cloud.write("cell", sa.update(servers).values(created_at=ago(101)))
    assert timeouts.fail_stuck_builds(cloud.deps) == 1
    row = cloud.server(uuid)
    assert (row.vm_state, row.task_state) == ("error", None) and "instance_build_timeout" in row.fault.message
    go.set()
    until(lambda: not cloud.deps.runner.running, "the build has noticed")
    assert cloud.server(uuid).vm_state == "error" and timeouts.fail_stuck_builds(cloud.deps) == 0
    cloud.deps.runner.workflows["delete"] = DELETE_SERVER
    cloud.delete(uuid)
    assert not cloud.claims() and not cloud.computes["a"].guests


# -- what nobody works on

@pytest.mark.parametrize("vm_state, after", [("active", "active"), ("building", "error")])
def test_task_when_no_operation_is_open_then_it_is_cleared_with_a_warning(cloud, caplog, vm_state, after) -> None:
    uuid, = add_servers(cloud.cell, server_row(vm_state=vm_state, task_state="rebooting", updated_at=ago(90)))
    assert timeouts.clear_stale_tasks(cloud.deps) == 1
    row = cloud.server(uuid)
    assert (row.vm_state, row.task_state, row.epoch) == (after, None, 2)
    assert any(record.levelname == "WARNING" and "rebooting" in record.getMessage()
               and getattr(record, "server", "") == uuid for record in caplog.records)
    assert cloud.journal(uuid)[-1].action == "reset_state" and not cloud.open(uuid)
    assert timeouts.clear_stale_tasks(cloud.deps) == 0


def test_task_when_a_delete_destroyed_a_part_then_it_is_an_error_and_those_behind_it_are_cleared_too(cloud) -> None:
    half, other = add_servers(
        cloud.cell, server_row(vm_state="active", task_state="deleting", updated_at=ago(91),
                               memo=ServerMemo(destroying=True)),
        server_row(vm_state="active", task_state="rebooting", updated_at=ago(90)))
    assert timeouts.clear_stale_tasks(cloud.deps) == 2
    assert (cloud.server(half).vm_state, cloud.server(half).task_state) == ("error", None)
    assert (cloud.server(other).vm_state, cloud.server(other).task_state) == ("active", None)


def test_build_when_its_delete_is_under_way_then_it_is_not_given_up(cloud) -> None:
    cloud.deps.settings = dataclasses.replace(cloud.deps.settings, instance_build_timeout=100)
    uuid, = add_servers(cloud.cell, server_row(vm_state="building", task_state="deleting", created_at=ago(200)))
    assert timeouts.fail_stuck_builds(cloud.deps) == 0 and cloud.server(uuid).task_state == "deleting"


@pytest.mark.parametrize("case", ["open operation", "young", "deleted"])
def test_task_when_somebody_may_work_on_it_then_it_stays(cloud, case) -> None:
    uuid, = add_servers(cloud.cell, server_row(task_state="rebooting", updated_at=ago(5 if case == "young" else 90),
                                               deleted=9 if case == "deleted" else 0))
    if case == "open operation":
        record(cloud, uuid, "soft_reboot", 90, None)
    assert timeouts.clear_stale_tasks(cloud.deps) == 0 and cloud.server(uuid).task_state == "rebooting"
    cloud.write("cell", sa.delete(operations))


def test_task_when_an_operation_begins_meanwhile_then_it_stays(cloud, monkeypatch) -> None:
    uuid, = add_servers(cloud.cell, server_row(task_state="rebooting", updated_at=ago(90)))
    real = timeouts.timeouts.ownerless

    def meanwhile(*args: Any) -> Any:
        found = real(*args)
        record(cloud, uuid, "soft_reboot", 1, None)
        return found
    monkeypatch.setattr(timeouts.timeouts, "ownerless", meanwhile)
    assert timeouts.clear_stale_tasks(cloud.deps) == 0 and cloud.server(uuid).task_state == "rebooting"
    cloud.write("cell", sa.delete(operations))


def moved(cloud: SmallCloud, status: str, seconds: float = 90, server: str | None = None, number: int = 1) -> str:
    """A move of a server (a live one, for None); the server's uuid."""
    uuid = server or add_servers(cloud.cell, server_row())[0]
    cloud.cell.transact(lambda tx: moves.insert(tx, NewMigration(
        uuid=node_id(f"move{number}"), server_uuid=uuid, type="migration", status=status)))
    cloud.write("cell", sa.update(migrations).values(created_at=ago(seconds)))
    return uuid


def status_of(cloud: SmallCloud) -> str:
    return cloud.rows("cell", sa.select(migrations.c.status))[0].status


@pytest.mark.parametrize("status", ["migrating", "queued", "confirming", "post-migrating"])
def test_move_when_no_operation_is_open_then_it_is_an_error(cloud, status, caplog) -> None:
    uuid = moved(cloud, status)
    assert timeouts.close_abandoned_moves(cloud.deps) == 1 and status_of(cloud) == "error"
    assert any(getattr(record, "server", "") == uuid for record in caplog.records)
    assert timeouts.close_abandoned_moves(cloud.deps) == 0


@pytest.mark.parametrize("case", ["open", "young", "over", "waits"])
def test_move_when_somebody_may_work_on_it_or_it_is_over_then_it_stays(cloud, case) -> None:
    status = {"over": "confirmed", "waits": "finished"}.get(case, "migrating")
    uuid = moved(cloud, status, 5 if case == "young" else 90)
    if case == "open":
        record(cloud, uuid, "migrate", 90, None)
    assert timeouts.close_abandoned_moves(cloud.deps) == 0 and status_of(cloud) == status
    cloud.write("cell", sa.delete(operations))


def test_move_when_its_server_is_gone_before_it_was_confirmed_then_it_is(cloud) -> None:
    moved(cloud, "finished", server=node_id("gone"))
    assert timeouts.close_abandoned_moves(cloud.deps) == 1 and status_of(cloud) == "confirmed"


def test_rules_are_rows_of_the_table_of_states() -> None:
    for rule in timeouts.RULES:
        action = ACTIONS[rule.action]
        assert action.vm_states is None or rule.vm_state in action.vm_states
        assert all(ACTIONS[name].result == rule.vm_state for name in rule.came)
