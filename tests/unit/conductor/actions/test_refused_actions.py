"""What a server has decides what is begun on it: refused at once, in words, with nothing written; and the plan of a
drain and ``nova-manage server show`` say the same words before anybody asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.conductor.engine.begin import begin
from nova.conductor.engine.operation import Arguments
from nova.db.models.cell import servers
from nova.db.sql.engine import Connection
from nova.manage.drain_plan import COLD, LIVE, DrainRequest, Move, Stay, plan
from nova.manage.server_commands import INNER, story
from nova.model.image.images import Image
from nova.model.server.action_restrictions import RESTRICTED, restriction
from nova.model.server.server_orders import EvacuateServer, LiveMigrateServer, RebuildServer, RescueServer
from nova.model.server.servers import ServerOrder, ServerQuery
from nova.model.server.states import ACTIONS, TaskState, VmState
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.restricted_servers import ALIASES, CASES, Case
from tests.fakes.small_cloud import DEMO
from tests.unit.conductor.queries.test_statement_counts import statements

pytestmark = pytest.mark.one_in(2)  # one of two runs has each

CODE = "server.not_for_it"
Begin = Callable[[FailingCloud, str], object]

#: Every action that the table names, as its own call begins it.
CALLS: dict[str, Begin] = {
    "suspend": lambda cloud, uuid: cloud.control.order_server(ServerOrder(uuid=uuid, action="suspend")),
    "shelve": lambda cloud, uuid: cloud.control.order_server(ServerOrder(uuid=uuid, action="shelve")),
    "live-migration": lambda cloud, uuid: cloud.control.live_migrate_server(LiveMigrateServer(uuid=uuid)),
    "evacuate": lambda cloud, uuid: cloud.control.evacuate_server(EvacuateServer(uuid=uuid)),
    "rebuild": lambda cloud, uuid: cloud.control.rebuild_server(RebuildServer(uuid=uuid, image_id="base")),
    "rescue": lambda cloud, uuid: cloud.control.rescue_server(RescueServer(uuid=uuid, image_id="base"))}
REFUSED = [pytest.param(case, action, id=f"{case.name}-{action}") for case in CASES for action in sorted(RESTRICTED)
           if restriction(action, case.built_with)]


@pytest.fixture
def cloud(tmp_path: Path, templates: Path) -> Iterator[FailingCloud]:
    made = FailingCloud(tmp_path, templates)
    made.settings(pci_aliases=ALIASES)
    made.image_service.add("base")
    with context.entered(DEMO):
        yield made
    made.close()


def given(cloud: FailingCloud, uuid: str, case: Case, **states: str | None) -> None:
    """The server has, by its row, what the case has."""
    row, built = cloud.server(uuid), case.built_with
    image = msgspec.structs.replace(row.image or Image(id=""), properties=built.image)
    cloud.write("cell", sa.update(servers).where(servers.c.uuid == uuid).values(
        flavor=msgspec.structs.replace(row.flavor, extra_specs=built.extra_specs), image=image,
        interfaces=built.interfaces, **states))


def where_it_begins(action: str) -> dict[str, str | None]:
    """States that the action may begin in."""
    row = ACTIONS[action]
    vm_states = row.vm_states or {VmState.ACTIVE}
    tasks: Any = row.task_states or {None}
    chosen = None if None in tasks else sorted(tasks)[0]
    return {"vm_state": VmState.ACTIVE.value if VmState.ACTIVE in vm_states else sorted(vm_states)[0].value,
            "task_state": chosen.value if isinstance(chosen, TaskState) else None}


class Undone(Exception):
    """The transaction is rolled back."""


def begun(cloud: FailingCloud, action: str, uuid: str) -> errors.NovaError | None:
    """Why the action cannot begin; None: it could. Nothing is left of it."""
    def write(tx: Connection) -> None:
        begin(cloud.deps, tx, action, uuid, Arguments())
        raise Undone
    try:
        cloud.cell.transact(write)
    except Undone:
        return None
    except errors.NovaError as error:
        return error
    raise AssertionError("it was committed")


def left(cloud: FailingCloud, uuid: str) -> tuple[Any, ...]:
    """All that an operation writes (its journal is what os-instance-actions shows), and what hosts were ordered."""
    orders = {host: len(compute.calls) for host, compute in cloud.computes.items()}
    return cloud.server(uuid), cloud.journal(uuid), cloud.moves(uuid), cloud.claims(), orders


def shown(cloud: FailingCloud, uuid: str) -> Any:
    return cloud.control.get_server(ServerQuery(uuid=uuid, as_kept=True))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_begin_of_every_action_when_a_server_has_something_then_what_the_table_names_is_refused_and_no_more(
        cloud: FailingCloud, case: Case) -> None:
    [uuid] = cloud.active()
    for action in ACTIONS:
        given(cloud, uuid, case, **where_it_begins(action))
        error, why = begun(cloud, action, uuid), restriction(action, case.built_with)
        if why is None:
            assert error is None, action
        else:
            assert error is not None and error.code == CODE, action
            assert error.message == f"Cannot '{action}' instance {uuid}: it {why}."
        told = {one.action: one.why_not for one in story(shown(cloud, uuid), ALIASES).actions}
        if action not in INNER:
            assert told[action].startswith(f"it {why}") if why is not None else "it has" not in told[action], action


@pytest.mark.parametrize(("case", "action"), REFUSED)
def test_call_when_the_table_refuses_its_action_then_it_is_a_conflict_at_once_and_nothing_is_begun(
        cloud: FailingCloud, case: Case, action: str) -> None:
    [uuid] = cloud.active()
    given(cloud, uuid, case)
    if action == "evacuate":
        cloud.down(cloud.server(uuid).host)
    before = left(cloud, uuid)
    with pytest.raises(errors.Conflict) as caught:
        CALLS[action](cloud, uuid)
    why = restriction(action, case.built_with)
    assert (caught.value.code, caught.value.status) == (CODE, 409)
    assert caught.value.message == f"Cannot '{action}' instance {uuid}: it {why}."
    cloud.idle()
    assert left(cloud, uuid) == before


@pytest.mark.parametrize("vm_state", [VmState.ACTIVE, VmState.PAUSED, VmState.STOPPED])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_plan_of_a_drain_when_a_server_may_not_migrate_live_then_it_says_the_words_of_the_refusal(
        cloud: FailingCloud, case: Case, vm_state: VmState) -> None:
    [uuid] = cloud.active()
    given(cloud, uuid, case, vm_state=vm_state.value)
    server = shown(cloud, uuid)
    live, cold = (plan(server, DrainRequest(host="host1", cold=cold)) for cold in (False, True))
    error = begun(cloud, "live-migration", uuid)
    if vm_state == VmState.STOPPED:
        assert live == cold == Move(COLD)
        return
    assert (vm_state == VmState.ACTIVE) is (cold == Move(COLD))
    if error is None:
        assert live == Move(LIVE)
        return
    said = error.message.split(": ", 1)[1].rstrip(".")
    assert isinstance(live, Stay) and said in live.reason and "--cold" in live.reason
    assert cold == Move(COLD) or (isinstance(cold, Stay) and said in cold.reason)


def test_list_when_servers_have_devices_then_what_they_can_do_costs_no_statement_and_no_message(
        cloud: FailingCloud) -> None:
    uuids = cloud.active(3)
    for uuid, case in zip(uuids, (one for one in CASES if one.name in ("devices", "port-direct", "tpm-of-user")),
                          strict=True):
        given(cloud, uuid, case)
    found = [shown(cloud, uuid) for uuid in uuids]
    with statements(cloud) as seen:
        assert all(isinstance(plan(server, DrainRequest(host="host1")), Stay) for server in found)
    assert seen == []


def test_call_when_aliases_give_their_state_away_then_suspend_is_begun(cloud: FailingCloud) -> None:
    [uuid] = cloud.active()
    given(cloud, uuid, next(case for case in CASES if case.name == "devices-migratable"))
    CALLS["suspend"](cloud, uuid)
    assert cloud.settle(uuid).vm_state == "suspended"


def test_calls_of_this_test_are_all_that_the_table_refuses() -> None:
    assert set(CALLS) == RESTRICTED and {param.values[1] for param in REFUSED} == RESTRICTED
