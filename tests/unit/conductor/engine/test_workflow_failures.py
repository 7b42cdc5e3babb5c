"""Each step of each workflow fails in turn, in every way it can: the server says so, and nothing is left over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nova import errors
from nova.conductor.engine.workflow import Step, Workflow
from nova.conductor.registry import (
    ALL,
    CREATE_SERVER,
    DELETE_SERVER,
    HARD_REBOOT,
    MOVES,
    OF_DEVICES,
    ON_ONE_HOST,
    SOFT_REBOOT,
    START_SERVER,
    STOP_SERVER,
)
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.taken_steps import without_volumes

pytestmark = pytest.mark.one_in(5)  # a cloud for each case

REFUSED, AWAY, CRASH = errors.HostRefused("no"), errors.Unavailable("away"), RuntimeError("nobody foresaw it")
WRONG = errors.Invalid("wrong")


@pytest.fixture
def cloud(tmp_path: Path, templates: Path) -> Iterator[FailingCloud]:
    made = FailingCloud(tmp_path, templates)
    yield made
    made.close()


def failing(monkeypatch: pytest.MonkeyPatch, step: Step, method: str, error: Exception, times: int = 10**6) -> None:
    """``step.method`` does its work and then fails, ``times`` times: what it did has to be undone as well."""
    real: Callable[..., Any] = getattr(step, method)
    left = [times]

    def fail(*args: Any) -> Any:
        result = real(*args)
        left[0] -= 1
        if left[0] >= 0:
            raise error
        return result
    monkeypatch.setattr(step, method, fail)


def cases(workflow: Workflow) -> list[Any]:
    """(step, method, error) of every step that can fail: in its work, and in its part of the journal's transaction."""
    found = []
    for step in [step for step in without_volumes(workflow) if not step.ignores_errors]:
        methods = ["do"] + (["within"] if type(step).within is not Step.within else [])
        found += [pytest.param(step, method, error, id=f"{step.name}-{method}-{type(error).__name__}")
                  for method in methods for error in (REFUSED, AWAY, WRONG, CRASH)]
    return found


@pytest.mark.parametrize("step, method, error", cases(CREATE_SERVER))
def test_create_when_a_step_always_fails_then_it_is_an_error_that_holds_nothing(cloud, monkeypatch, step, method,
                                                                                error):
    failing(monkeypatch, step, method, error)
    [uuid] = cloud.boot()
    row = cloud.settle(uuid)
    assert (row.vm_state, row.task_state, row.host) == ("error", None, None)
    assert row.fault.message and row.fault.code >= 500
    assert cloud.held() == {}
    assert len(cloud.open_ledger()) == 1  # it is there, and its owner deletes it
    monkeypatch.undo()
    cloud.order(uuid, "delete")
    assert cloud.settle(uuid).deleted and cloud.held() == {} and cloud.open_ledger() == set()


@pytest.mark.parametrize("step", without_volumes(CREATE_SERVER)[2:], ids=lambda step: step.name)
@pytest.mark.parametrize("error", [REFUSED, AWAY, errors.ClaimConflict("taken")], ids=lambda error: error.kind)
def test_create_when_a_host_fails_once_then_the_next_one_has_it_and_the_first_nothing(cloud, monkeypatch, step, error):
    failing(monkeypatch, step, "do", error, times=1)
    [uuid] = cloud.boot()
    row = cloud.settle(uuid)
    assert (row.vm_state, row.host) == ("active", "host2")
    held = cloud.held()
    assert held["guests"] == [("host2", uuid)] and len(held["allocations"]) == len(held["addresses"]) == 1
    assert [event.step for event in cloud.journal(uuid)[0].history].count("SelectNextHost") == 2


@pytest.mark.parametrize("method", ["undo", "undo_within"])
@pytest.mark.parametrize("step", [step for step in without_volumes(CREATE_SERVER) if step.undoes],
                         ids=lambda step: step.name)
def test_create_when_an_undo_fails_then_it_is_done_later_and_nothing_is_left(cloud, monkeypatch, step, method):
    failing(monkeypatch, without_volumes(CREATE_SERVER)[-1], "do", WRONG)
    failing(monkeypatch, step, method, CRASH, times=1)
    [uuid] = cloud.boot()
    cloud.idle()
    assert cloud.server(uuid).vm_state == "building"
    cloud.expire_leases()
    cloud.runner().sweep()
    row = cloud.settle(uuid)
    assert row.vm_state == "error" and row.fault.message == "wrong" and cloud.held() == {}


@pytest.mark.parametrize("step, method, error", cases(DELETE_SERVER))
def test_delete_when_a_step_fails_for_good_then_a_second_delete_leaves_nothing(cloud, monkeypatch, step, method, error):
    [uuid] = cloud.active()
    with monkeypatch.context() as patched:
        failing(patched, step, method, error)
        cloud.order(uuid, "delete")
        row = cloud.settle(uuid)
    assert (row.vm_state, row.task_state, row.deleted) == ("error", None, 0) and row.fault.message
    cloud.order(uuid, "delete")
    assert cloud.settle(uuid).deleted and cloud.held() == {} and cloud.open_ledger() == set()


@pytest.mark.parametrize("step", DELETE_SERVER.steps, ids=lambda step: step.name)
@pytest.mark.parametrize("error", [REFUSED, AWAY], ids=lambda error: error.kind)
def test_delete_when_a_step_fails_once_then_it_is_tried_again_by_itself(cloud, monkeypatch, step, error):
    [uuid] = cloud.active()
    failing(monkeypatch, step, "do", error, times=1)
    cloud.order(uuid, "delete")
    assert cloud.settle(uuid).deleted and cloud.held() == {} and cloud.open_ledger() == set()


@pytest.mark.parametrize("workflow, before, after", [
    (START_SERVER, "stopped", "stopped"), (STOP_SERVER, "active", "active"), (SOFT_REBOOT, "active", "active"),
    (HARD_REBOOT, "active", "error")], ids=lambda value: value.action.name if isinstance(value, Workflow) else value)
@pytest.mark.parametrize("error", [REFUSED, AWAY, WRONG, CRASH], ids=lambda error: type(error).__name__)
def test_power_when_the_step_fails_then_the_state_is_the_tables(cloud, monkeypatch, workflow, before, after, error):
    [uuid] = cloud.active()
    if before == "stopped":
        cloud.order(uuid, "stop")
        assert cloud.settle(uuid).vm_state == "stopped"
    failing(monkeypatch, workflow.steps[-1], "do", error)
    cloud.order(uuid, workflow.action.name)
    row = cloud.settle(uuid)
    assert (row.vm_state, row.task_state) == (after, None)
    assert cloud.journal(uuid)[-1].outcome == "error"
    assert cloud.held()["guests"] == [("host1", uuid)]


def test_workflows_when_they_are_all_looked_at_then_each_has_been_failed_above():
    # in test_one_host_failures, test_move_failures, test_interfaces and test_volumes
    tried = {CREATE_SERVER, DELETE_SERVER, *ON_ONE_HOST, *MOVES, *OF_DEVICES}
    assert set(ALL) == tried  # a new workflow needs its failures tried too


# --- hosts that can't be reached


def test_delete_when_the_host_is_away_then_it_ends_and_the_host_owes_it(cloud):
    [uuid] = cloud.active()

    def away(call: str, host: str) -> None:
        raise errors.Unavailable("away")
    cloud.on_order(away)
    cloud.order(uuid, "delete")
    assert cloud.settle(uuid).deleted and cloud.open_ledger() == set()
    held = cloud.held()
    assert held["debts"] == [("host1", uuid)] and len(held["allocations"]) == 1  # its claim stays until it is paid
    assert set(held) == {"guests", "allocations", "debts"}


def test_create_when_a_host_goes_away_in_the_build_then_it_owes_it_and_another_builds(cloud):
    def away(call: str, host: str) -> None:
        if host == "host1":
            raise errors.Unavailable("away")
    cloud.on_order(away)
    [uuid] = cloud.boot()
    row = cloud.settle(uuid)
    assert (row.vm_state, row.host) == ("active", "host2")
    assert cloud.held()["debts"] == [("host1", uuid)]


# --- many in one request


def test_create_when_some_of_a_batch_fail_then_each_goes_its_own_way(cloud):
    seen: list[str] = []

    def refuse_first(call: str, host: str) -> None:
        seen.append(host)
        if call == "build" and host == "host1" and seen.count("host1") == 1:
            raise errors.HostRefused("full")
    cloud.on_order(refuse_first)
    uuids = cloud.boot(4)
    rows = [cloud.settle(uuid) for uuid in uuids]
    assert {row.vm_state for row in rows} == {"active"} and {row.host for row in rows} == {"host2"}
    assert len(cloud.held()["addresses"]) == 4
    for uuid in uuids:
        cloud.order(uuid, "delete")
    assert all(cloud.settle(uuid).deleted for uuid in uuids) and cloud.held() == {}
