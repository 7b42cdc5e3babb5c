"""Each step of each move fails, twice over, or its hosts fall silent: the server has one host, and nothing is left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nova import errors
from nova.conductor.engine.workflow import Step, Workflow
from nova.conductor.registry import CONFIRM_RESIZE, EVACUATE, LIVE_MIGRATE, MIGRATE, MOVES, RESIZE, REVERT_RESIZE
from nova.model.server.server_parts import StateReset
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.taken_steps import without_volumes
from tests.sampling import fifth
from tests.unit.conductor.actions.test_overtaken_moves import run_cleanups
from tests.unit.conductor.engine.test_workflow_failures import AWAY, CRASH, REFUSED, WRONG, failing

pytestmark = pytest.mark.one_in(5)  # a cloud for each case

ERRORS = (REFUSED, AWAY, WRONG, CRASH)
#: Where the guest is wherever a move stops: what was fetched, prepared or put aside elsewhere is gone by then.
BEFORE, AFTER = "host1", "host2"


@pytest.fixture
def cloud(tmp_path: Path, templates: Path) -> Iterator[FailingCloud]:
    made = FailingCloud(tmp_path, templates)
    yield made
    made.close()


def cases(*workflows: Workflow, but: tuple[str, ...] = ()) -> list[Any]:
    found = []
    for workflow in workflows:
        for step in without_volumes(workflow):
            if step.when and workflow is not RESIZE:
                continue
            methods = ["do"] + (["within"] if not step.pure and type(step).within is not Step.within else [])
            found += [pytest.param(workflow, step, method, error,
                                   id=f"{workflow.action.name}-{step.name}-{method}-{type(error).__name__}")
                      for method in methods for error in ERRORS if step.name not in but]
    return found


#: A live migration has no way back once the guest was sent; of an evacuation the source is not asked.
UNDONE = cases(RESIZE, MIGRATE, EVACUATE) + cases(LIVE_MIGRATE, but=("MigrateGuests", "ArriveAtDestination",
                                                                     "CleanSource", "EndMove"))


@pytest.mark.parametrize("workflow, step, method, error", fifth(UNDONE))
def test_move_when_a_step_always_fails_then_the_server_is_as_it_was(cloud, monkeypatch, workflow, step, method, error):
    uuid = cloud.ready(workflow.action.name)
    before = cloud.server(uuid)
    failing(monkeypatch, step, method, error)
    cloud.begin(uuid, workflow.action.name)
    row = cloud.settle(uuid)
    assert (row.vm_state, row.task_state, row.flavorid, row.memo) == (before.vm_state, None, "1", before.memo)
    assert cloud.journal(uuid)[-1].outcome == "error" and row.fault.message
    assert cloud.moves(uuid)[-1].status in ("error", "failed")
    cloud.whole(uuid, BEFORE)


@pytest.mark.parametrize("workflow", [RESIZE, LIVE_MIGRATE, EVACUATE], ids=lambda one: one.action.name)
@pytest.mark.parametrize("error", [REFUSED, AWAY, errors.ClaimConflict("taken")], ids=lambda error: error.kind)
def test_move_when_a_destination_fails_then_the_next_one_has_it(cloud, monkeypatch, workflow, error):
    steps = workflow.steps[workflow.steps.index(workflow.retry.back_to) + 1:]
    mine = [step for step in steps if step in without_volumes(workflow)]
    names = [step.name for step in mine if step.name not in ("MigrateGuests", "ArriveAtDestination", "CleanSource",
                                                              "EndMove")]
    for name in names:
        uuid = cloud.ready(workflow.action.name)
        with monkeypatch.context() as patched:
            failing(patched, next(step for step in steps if step.name == name), "do", error, times=1)
            cloud.begin(uuid, workflow.action.name)
            row = cloud.settle(uuid)
        assert (row.host, row.task_state) == ("host3", None), (name, row.fault)
        assert cloud.ends(uuid)["own"] == ["host3"], name
        assert cloud.moves(uuid)[-1].dest_compute == "host3"
        cloud.down("host1", forced_down=False)
        cloud.delete(uuid)
        cloud.settle(uuid)
        for debt in cloud.debts():
            cloud.computes[debt.host].guests.pop(uuid, None)
            cloud.hosts.debt_paid(debt.host, debt.id)
        assert cloud.held() == {}, name


@pytest.mark.parametrize("step, method", [(step, method) for step in without_volumes(RESIZE) if step.undoes
                                          for method in ("undo", "undo_within")],
                         ids=lambda one: one if isinstance(one, str) else one.name)
def test_resize_when_an_undo_fails_then_it_is_done_later(cloud, monkeypatch, step, method):
    uuid = cloud.ready("resize")
    failing(monkeypatch, without_volumes(RESIZE)[-1], "do", WRONG)
    with monkeypatch.context() as patched:
        failing(patched, step, method, CRASH, times=1)
        cloud.begin(uuid, "resize")
        cloud.idle()
    cloud.expire_leases()
    cloud.runner().sweep()
    row = cloud.settle(uuid)
    assert (row.vm_state, row.fault.message) == ("active", "wrong")
    cloud.whole(uuid, BEFORE)


@pytest.mark.parametrize("workflow, step, method, error", fifth(cases(CONFIRM_RESIZE)))
def test_confirm_when_a_step_fails_for_good_then_it_can_be_confirmed_again(cloud, monkeypatch, workflow, step, method,
                                                                           error):
    uuid = cloud.ready("confirmResize")
    with monkeypatch.context() as patched:
        failing(patched, step, method, error)
        cloud.begin(uuid, "confirmResize")
        row = cloud.settle(uuid)
    assert (row.vm_state, row.task_state, cloud.moves(uuid)[0].status) == ("resized", None, "finished")
    cloud.begin(uuid, "confirmResize")
    assert cloud.settle(uuid).vm_state == "active"
    cloud.whole(uuid, AFTER)


@pytest.mark.parametrize("workflow, step, method, error", fifth(cases(REVERT_RESIZE)))
def test_revert_when_a_step_fails_for_good_then_it_is_an_error_and_a_delete_leaves_nothing(cloud, monkeypatch, workflow,
                                                                                           step, method, error):
    uuid = cloud.ready("revertResize")
    with monkeypatch.context() as patched:
        failing(patched, step, method, error)
        cloud.begin(uuid, "revertResize")
        row = cloud.settle(uuid)
    as_before = step.name == "CheckSource"  # nothing was removed anywhere yet, and it may be asked for again
    wanted = ("resized", None, "finished") if as_before else ("error", None, "error")
    assert (row.vm_state, row.task_state, cloud.moves(uuid)[0].status) == wanted
    cloud.delete(uuid)
    cloud.settle(uuid)
    assert cloud.held() == {} and cloud.open_ledger() == set()


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("name", ["ArriveAtDestination", "CleanSource", "EndMove"])
def test_live_migration_when_it_fails_once_after_the_guest_was_sent_then_it_goes_on(cloud, monkeypatch, name,
                                                                                             error):
    uuid = cloud.ready("live-migration")
    step = next(step for step in LIVE_MIGRATE.steps if step.name == name)
    failing(monkeypatch, step, "do", error, times=1)
    cloud.begin(uuid, "live-migration")
    row = cloud.settle(uuid)
    assert (row.vm_state, row.task_state) == ("active", None)  # it was tried again
    cloud.whole(uuid, AFTER)


@pytest.mark.parametrize("name, method", [("ArriveAtDestination", "within"), ("ArriveAtDestination", "do"),
                                          ("CleanSource", "do"), ("EndMove", "do")])
def test_live_migration_when_it_fails_for_good_after_the_guest_was_sent_then_it_is_where_it_is(cloud, monkeypatch,
                                                                                              name, method):
    uuid = cloud.ready("live-migration")
    step = next(step for step in LIVE_MIGRATE.steps if step.name == name)
    with monkeypatch.context() as patched:
        failing(patched, step, method, CRASH)
        cloud.begin(uuid, "live-migration")
        row = cloud.settle(uuid)
    assert (row.vm_state, row.host) == ("error", AFTER) and list(cloud.guests()) == [(AFTER, uuid)]
    cloud.delete(uuid)
    cloud.settle(uuid)
    assert cloud.held() == {} and cloud.open_ledger() == set()


def test_workflows_when_they_are_all_looked_at_then_each_move_has_been_failed_above():
    assert set(MOVES) == {RESIZE, MIGRATE, CONFIRM_RESIZE, REVERT_RESIZE, LIVE_MIGRATE, EVACUATE}


# --- one host, both ends


@pytest.mark.parametrize("name", ["ClaimMove", "PrepareResize", "MigrateSource", "CopyDisks", "FinishResize"])
def test_resize_on_one_host_when_a_step_fails_then_the_guest_is_taken_back(cloud, monkeypatch, name):
    cloud.settings(allow_resize_to_same_host=True)
    uuid = cloud.ready("resize")
    failing(monkeypatch, next(step for step in RESIZE.steps if step.name == name), "do", WRONG)
    cloud.begin(uuid, "resize")
    assert cloud.settle(uuid).vm_state == "active"
    assert "destroy" not in [kind for kind, _order in cloud.computes[BEFORE].orders]
    cloud.whole(uuid, BEFORE)


def test_resize_on_one_host_when_the_state_was_reset_then_a_migration_takes_the_guest_back_first(cloud):
    cloud.settings(allow_resize_to_same_host=True)
    uuid = cloud.ready("resize")
    cloud.computes[BEFORE].before["fetch"] = lambda _orders: cloud.control.reset_state(
        StateReset(uuid=uuid, state="active"))
    cloud.begin(uuid, "resize")
    cloud.settle(uuid)
    cloud.computes[BEFORE].before.clear()
    assert cloud.held()["moving"] and cloud.guests() == {}
    cloud.begin(uuid, "live-migration")
    row = cloud.settle(uuid)
    assert row.host == AFTER, row.fault
    cloud.whole(uuid, AFTER)


def test_delete_when_the_server_is_resized_on_one_host_then_nothing_is_left(cloud):
    cloud.settings(allow_resize_to_same_host=True)
    uuid = cloud.ready("confirmResize")
    assert cloud.server(uuid).host == BEFORE
    cloud.delete(uuid)
    cloud.settle(uuid)
    assert cloud.held() == {} and cloud.open_ledger() == set()


# --- a host that comes back after an evacuation


def test_evacuated_host_when_it_is_back_then_only_its_debt_says_that_the_guest_is_gone(cloud):
    uuid = cloud.ready("evacuate")
    asked: list[Any] = []
    cloud.computes[AFTER].before["rebuild"] = lambda _orders: asked.extend(cloud.hosts.expected_guests(BEFORE, (uuid,)))
    cloud.begin(uuid, "evacuate")
    cloud.settle(uuid)
    assert [(one.gone, one.task_state) for one in asked] == [(False, "rebuild_spawning")]  # left to that operation
    assert cloud.hosts.expected_guests(BEFORE, (uuid,)) == ()
    assert [one.server_uuid for one in cloud.hosts.expected_guests(AFTER, (uuid,))] == [uuid]
    [debt] = cloud.debts()
    assert debt.epoch <= cloud.server(uuid).epoch


def test_evacuation_when_it_fails_then_the_old_host_owes_nothing(cloud, monkeypatch):
    uuid = cloud.ready("evacuate")
    failing(monkeypatch, without_volumes(EVACUATE)[-1], "do", WRONG)
    cloud.begin(uuid, "evacuate")
    row = cloud.settle(uuid)
    assert (row.vm_state, row.host) == ("active", BEFORE) and not cloud.debts()
    assert cloud.moves(uuid)[0].status == "failed"


def test_move_when_a_host_still_owes_then_it_is_no_destination(cloud):
    uuid = cloud.ready("evacuate")
    cloud.begin(uuid, "evacuate")
    cloud.settle(uuid)
    cloud.down(BEFORE, forced_down=False)
    cloud.begin(uuid, "live-migration", host=BEFORE)
    row = cloud.settle(uuid)
    assert row.host == "host3" and cloud.taken(uuid) == {BEFORE: 1, "host3": 1}
    run_cleanups(cloud)
    cloud.whole(uuid, "host3")
