"""Tags, password, diagnostics, resets and external events behind the conductor's contract."""

from __future__ import annotations

import threading

import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.db.models import cell as tables
from nova.model.base import Scope
from nova.model.guest.orders import Outcome
from nova.model.server.actions import ActionQuery
from nova.model.server.migrations import MigrationQuery
from nova.model.server.server_parts import MOST_TAGS, ExternalEvent, StateReset, TagChange
from nova.model.server.servers import LockChange, ServerListQuery, ServerMemo, ServerQuery
from nova.model.server.states import PowerState
from tests.fakes.rows import new_uuid
from tests.fakes.small_cloud import DEMO, SmallCloud, until
from tests.unit.conductor.queries.test_statement_counts import statements

ADMIN = context.RequestContext(request_id="req-reset", user_id="root", project_id="admin", is_admin=True)


def set_state(cloud: SmallCloud, uuid: str, **values: object) -> None:
    cloud.write("cell", sa.update(tables.servers).where(tables.servers.c.uuid == uuid).values(**values))


# -- tags

def test_tags_are_added_replaced_and_removed(cloud: SmallCloud) -> None:
    uuid, = cloud.active(tags=("b",))
    change = cloud.control.change_tags
    assert change(TagChange(uuid=uuid, add=("a",))).tags == ("a", "b")
    assert not change(TagChange(uuid=uuid, add=("a",))).changed
    made = change(TagChange(uuid=uuid, add=("c", "a"), replace=True))
    assert made.tags == ("a", "c") and made.changed
    assert change(TagChange(uuid=uuid, remove=("c",))).tags == ("a",)
    with pytest.raises(errors.NotFound, match="no tag 'c'"):
        change(TagChange(uuid=uuid, remove=("c",)))
    assert change(TagChange(uuid=uuid, replace=True)).tags == ()
    assert cloud.control.get_server(ServerQuery(uuid=uuid)).tags == ()


def test_tags_differ_by_case_and_are_found_by_lists(cloud: SmallCloud) -> None:
    uuid, other = cloud.active(2)
    cloud.control.change_tags(TagChange(uuid=uuid, add=("Blue", "blue", "büro")))
    assert cloud.control.get_server(ServerQuery(uuid=uuid)).tags == ("Blue", "blue", "büro")
    found = cloud.control.list_servers(ServerListQuery(tags_all=("Blue", "büro"))).servers
    assert [server.uuid for server in found] == [uuid] and other != uuid


def test_tags_when_one_is_too_many_then_it_is_refused_and_one_that_is_there_is_not(cloud: SmallCloud) -> None:
    uuid, = cloud.active(tags=tuple(f"t{number}" for number in range(MOST_TAGS)))
    with pytest.raises(errors.Invalid, match="50"):
        cloud.control.change_tags(TagChange(uuid=uuid, add=("one more",)))
    assert not cloud.control.change_tags(TagChange(uuid=uuid, add=("t1",))).changed


def test_tags_when_many_are_added_at_once_then_the_limit_holds(cloud: SmallCloud) -> None:
    uuid, = cloud.active(tags=tuple(f"t{number}" for number in range(MOST_TAGS - 2)))
    refused: list[str] = []

    def add(tag: str) -> None:
        try:
            cloud.control.change_tags(TagChange(uuid=uuid, add=(tag,)))
        except errors.Invalid:
            refused.append(tag)
    threads = [threading.Thread(target=add, args=(f"new{number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 4 and len(cloud.control.get_server(ServerQuery(uuid=uuid)).tags) == MOST_TAGS


def test_tags_of_a_server_in_another_state_or_none_are_refused(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    set_state(cloud, uuid, vm_state="error")
    with pytest.raises(errors.WrongState, match="vm_state error"):
        cloud.control.change_tags(TagChange(uuid=uuid, add=("a",)))
    with pytest.raises(errors.NotFound):
        cloud.control.change_tags(TagChange(uuid=new_uuid(), add=("a",)))


# -- password

def test_password_is_read_and_forgotten_by_its_project(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    query = ServerQuery(uuid=uuid, scope=Scope(project_id="demo"))
    assert cloud.control.get_server_password(query).password == ""
    set_state(cloud, uuid, guest_password="ENCRYPTED")
    found = cloud.control.get_server_password(query)
    assert (found.password, found.project_id, found.user_id) == ("ENCRYPTED", "demo", "joe")
    for _ in range(2):
        cloud.control.clear_server_password(uuid)
        assert cloud.control.get_server_password(query).password == ""
    with pytest.raises(errors.NotFound):
        cloud.control.get_server_password(ServerQuery(uuid=uuid, scope=Scope(project_id="other")))


# -- diagnostics

def test_diagnostics_are_the_hosts_with_what_the_conductor_knows(cloud: SmallCloud) -> None:
    uuid, = cloud.active(config_drive=True)
    reported = cloud.control.get_diagnostics(uuid)
    assert reported.driver == "libvirt" and reported.memory_max_mb == 64 and reported.config_drive
    assert reported.uptime_s is not None and 0 <= reported.uptime_s < 60


def test_diagnostics_without_a_host_or_a_guest_are_a_conflict(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    cloud.computes["a"].guests.clear()
    with pytest.raises(errors.Conflict, match="does not have its guest"):
        cloud.control.get_diagnostics(uuid)
    set_state(cloud, uuid, host=None)
    with pytest.raises(errors.Conflict, match="no host"):
        cloud.control.get_diagnostics(uuid)
    with pytest.raises(errors.NotFound):
        cloud.control.get_diagnostics(new_uuid())


# -- os-resetState

def reset(cloud: SmallCloud, uuid: str, state: str) -> None:
    with context.entered(ADMIN):
        cloud.control.reset_state(StateReset(uuid=uuid, state=state))


@pytest.mark.parametrize("state", ["active", "error"])
def test_reset_sets_the_state_ends_the_task_and_is_recorded(cloud: SmallCloud, state: str) -> None:
    uuid, = cloud.active()
    set_state(cloud, uuid, vm_state="rescued", task_state="unrescuing")
    before = cloud.server(uuid).epoch
    reset(cloud, uuid, state)
    row = cloud.server(uuid)
    assert (row.vm_state, row.task_state) == (state, None) and row.epoch > before
    action = cloud.control.list_actions(ActionQuery(server_uuid=uuid))[0]
    assert (action.action, action.request_id, action.user_id) == ("resetState", "req-reset", "root")
    assert action.message is None
    with pytest.raises(errors.NotFound):
        reset(cloud, new_uuid(), state)


def test_reset_when_a_delete_destroyed_a_part_then_it_is_not_active_again(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    set_state(cloud, uuid, vm_state="error", memo=ServerMemo(destroying=True))
    with pytest.raises(errors.WrongState, match="delete it again"):
        reset(cloud, uuid, "active")
    reset(cloud, uuid, "error")
    assert cloud.server(uuid).vm_state == "error" and cloud.server(uuid).memo.destroying


def test_reset_while_an_operation_runs_then_that_stops_and_changes_nothing_more(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    inside, go_on = threading.Event(), threading.Event()

    def stop(kind: str, order: object) -> Outcome:
        inside.set()
        assert go_on.wait(10)
        return Outcome(server_uuid=uuid, power_state=PowerState.SHUTDOWN)
    cloud.computes["a"].answers["stop"] = stop
    cloud.order(uuid, "stop")
    assert inside.wait(10)
    reset(cloud, uuid, "error")
    go_on.set()
    until(lambda: not cloud.deps.runner.running, "the old operation stops")
    row = cloud.server(uuid)
    assert (row.vm_state, row.task_state) == ("error", None)
    assert [entry.outcome for entry in cloud.journal(uuid)][-2:] == ["overtaken", "success"]


def test_reset_of_a_create_then_its_delete_still_cleans_every_host_it_tried(cloud: SmallCloud) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def build(kind: str, order: object) -> Outcome:
        inside.set()
        assert go_on.wait(10)
        return Outcome(server_uuid=order.server_uuid, power_state=PowerState.RUNNING)  # type: ignore[attr-defined]
    cloud.computes["a"].answers["build"] = build
    uuid, = cloud.boot()
    assert inside.wait(10)
    reset(cloud, uuid, "error")
    go_on.set()
    until(lambda: not cloud.deps.runner.running, "the create stops")
    reset(cloud, uuid, "error")  # twice: nothing of the first is forgotten
    set_state(cloud, uuid, host=None)
    cloud.delete(uuid)
    assert [order.server_uuid for kind, order in cloud.computes["a"].orders if kind == "destroy"] == [uuid]
    until(lambda: not cloud.deps.runner.running, "the delete ends")
    assert cloud.claims() == set() and cloud.open_ledger() == set() and cloud.addresses() == {}


def test_reset_to_active_then_the_server_can_be_stopped(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    set_state(cloud, uuid, vm_state="error", task_state="powering-off")
    reset(cloud, uuid, "active")
    cloud.order(uuid, "stop")
    assert cloud.ended(uuid).vm_state == "stopped"


# -- lock: the rows of the journal

def test_lock_and_unlock_are_recorded_and_keep_the_reason(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    with context.entered(DEMO):
        cloud.control.lock_server(LockChange(uuid=uuid, by="owner", reason="mine"))
        found = cloud.control.get_server(ServerQuery(uuid=uuid))
        assert found.locked and found.locked_reason == "mine"
        cloud.control.lock_server(LockChange(uuid=uuid))
    found = cloud.control.get_server(ServerQuery(uuid=uuid))
    assert not found.locked and found.locked_reason is None
    assert [one.action for one in cloud.control.list_actions(ActionQuery(server_uuid=uuid))][:2] == ["unlock", "lock"]


def test_lock_when_another_came_between_then_it_is_left_alone(cloud: SmallCloud) -> None:
    """The API looked before it asked: an owner neither takes over nor undoes an administrator's lock."""
    uuid, = cloud.active()
    lock = cloud.control.lock_server
    lock(LockChange(uuid=uuid, by="admin", reason="theirs"))
    lock(LockChange(uuid=uuid, by="owner", unless=("owner", "admin")))
    with pytest.raises(errors.Conflict, match="by its admin"):
        lock(LockChange(uuid=uuid, unless=("admin",)))
    assert cloud.server(uuid).locked_by == "admin" and cloud.server(uuid).locked_reason == "theirs"
    lock(LockChange(uuid=uuid, unless=("owner",)))
    assert cloud.server(uuid).locked_by is None


# -- external events

def power(uuid: str, tag: str | None) -> ExternalEvent:
    return ExternalEvent(name="power-update", server_uuid=uuid, tag=tag)


def test_events_have_each_its_code_and_cost_one_statement(cloud: SmallCloud) -> None:
    here, nowhere, gone = cloud.active(3)
    set_state(cloud, nowhere, host=None)
    cloud.delete(gone)
    asked = {
        ExternalEvent(name="network-changed", server_uuid=here): 200,
        ExternalEvent(name="network-vif-plugged", server_uuid=here, tag="p", status="failed"): 200,
        ExternalEvent(name="network-changed", server_uuid=nowhere): 422,
        ExternalEvent(name="network-changed", server_uuid=gone): 404,
        ExternalEvent(name="network-changed", server_uuid=new_uuid()): 404,
        ExternalEvent(name="volume-extended", server_uuid=here): 400,
        ExternalEvent(name="volume-reimaged", server_uuid=here, tag="v"): 200,
        power(here, None): 400, power(here, "POWER_MAYBE"): 400,
    }
    with statements(cloud) as seen:
        codes = cloud.control.external_events(tuple(asked))
    assert codes == tuple(asked.values()) and len(seen) == 1, seen
    assert cloud.server(here).vm_state == "active" and not cloud.open(here)


def test_power_update_makes_it_so(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    with context.entered(ADMIN):
        assert cloud.control.external_events((power(uuid, "POWER_OFF"),)) == (200,)
        assert cloud.ended(uuid).vm_state == "stopped"
        # it comes twice, or late: nothing is there to do
        assert cloud.control.external_events((power(uuid, "POWER_OFF"),)) == (200,)
        assert cloud.ended(uuid).vm_state == "stopped"
        assert cloud.control.external_events((power(uuid, "POWER_ON"),)) == (200,)
    assert cloud.ended(uuid).vm_state == "active"
    assert [entry.action for entry in cloud.journal(uuid)] == ["create", "stop", "start"]


# -- migrations

def test_migrations_of_a_server_of_another_project_are_not_found(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    assert cloud.control.list_migrations(MigrationQuery()) == ()
    query = ServerQuery(uuid=uuid, scope=Scope(project_id="demo"))
    assert cloud.control.list_server_migrations(query).project_id == "demo"
    with pytest.raises(errors.NotFound, match="Migration 1"):
        cloud.control.get_server_migration(query, 1)
    with pytest.raises(errors.NotFound, match="Instance"):
        cloud.control.list_server_migrations(ServerQuery(uuid=uuid, scope=Scope(project_id="other")))


