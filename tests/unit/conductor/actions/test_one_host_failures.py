"""Each step of each action on one host works, fails, and is done twice; the runner dies at each journal write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nova import context, errors
from nova.conductor.engine.workflow import Step
from nova.conductor.registry import ON_ONE_HOST
from nova.model.server.states import ACTIONS
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.one_host_actions import CASES, PASSWORD, Case, ready
from tests.fakes.small_cloud import DEMO
from tests.fakes.taken_steps import without_volumes
from tests.sampling import fifth, turn
from tests.unit.conductor.engine.test_workflow_failures import AWAY, CRASH, REFUSED, failing
from tests.unit.conductor.engine.test_workflow_kills import MOST_WRITES, MortalJournal, killed, taken_over

pytestmark = [pytest.mark.one_in(5),  # a cloud for each case
              pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")]
BY_NAME = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
IMAGES_AT_FIRST = 3


@pytest.fixture
def cloud(tmp_path: Path, templates: Path) -> Iterator[FailingCloud]:
    made = FailingCloud(tmp_path, templates)
    yield made
    made.close()


def applied(case: Case) -> list[Step]:
    """The steps that a case's operation takes."""
    skipped = {"create-backup-of-none": {"kept"}, "shelve": {"offload"},
               "shelve-of-suspended": {"offload"}, "unshelve-on-host": {"offloaded"},
               "unshelve-offloaded": {"on_host"}}.get(case.name, set())
    return [step for step in without_volumes(case.workflow) if step.when not in skipped]


def steps_of_cases(*methods: str, ignores_errors: bool = True) -> list[Any]:
    return [pytest.param(case, step, method, id=f"{case.name}-{step.name}-{method}") for case in CASES
            for step in applied(case) for method in methods if not (step.ignores_errors and ignores_errors is False)
            if method == "do" or getattr(type(step), method) is not getattr(Step, method)]


def check_whole(cloud: FailingCloud, uuid: str, vm_state: str) -> None:
    """It is where its state says, and holds what that takes, once."""
    row, held = cloud.server(uuid), cloud.held()
    assert (row.vm_state, row.task_state) == (vm_state, None)
    on_host = vm_state != "shelved_offloaded"
    assert (row.host is not None) == on_host
    assert held.get("guests", []) == ([(row.host, uuid)] if on_host else [])
    assert held.get("allocations", []) == ([(row.host, uuid)] if on_host else [])
    assert len(held["addresses"]) == len(held["interfaces"]) == len(held["told"]) == 1
    assert set(held) <= {"guests", "allocations", "addresses", "interfaces", "told"}
    assert cloud.open_ledger() == {uuid}


def check_gone(cloud: FailingCloud, uuid: str, stay: int = 0) -> None:
    """After a delete nothing is left of it, but images that were made for their owner."""
    with context.entered(DEMO):
        cloud.order(uuid, "force_delete")
    assert cloud.settle(uuid).deleted and cloud.held() == {} and cloud.open_ledger() == set()
    assert len(cloud.image_service.images) == IMAGES_AT_FIRST + stay


def stays(case: Case, row: Any) -> int:
    return case.leaves if case.action in ("createImage", "createBackup") else 0


def test_cases_when_compared_with_the_workflows_then_each_has_one():
    assert {case.action for case in CASES} == {workflow.action.name for workflow in ON_ONE_HOST}
    told = {case.action: case.after for case in CASES if case.name not in ("shelve-and-offload",
                                                                           "rebuild-other-of-stopped")}
    assert {action: after for action, after in told.items() if (result := ACTIONS[action].result) is not None
            and after != result.value} == {}


@BY_NAME
def test_action_when_all_goes_well_then_the_server_is_what_the_table_says(cloud, case):
    uuid = ready(cloud, case)
    case.start(cloud, uuid)
    cloud.settle(uuid)
    check_whole(cloud, uuid, case.after)
    last = cloud.journal(uuid)[-1]
    assert (last.action, last.outcome, last.fault) == (case.action, "success", None)
    assert [event.event for event in last.history if event.event].count(case.workflow.action.event) == (
        0 if case.name == "create-backup-of-none" else 1)
    images = cloud.image_service.of_server(uuid)
    assert [image.status for image in images] == ["active"] * case.leaves
    assert {image.owner for image in images} <= {"demo"}
    check_gone(cloud, uuid, stays(case, None))


@pytest.mark.parametrize("error", [REFUSED, AWAY, CRASH], ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("case, step, method", fifth(steps_of_cases("do", "within", ignores_errors=False)))
def test_action_when_a_step_always_fails_then_the_state_is_the_tables_and_nothing_is_left(
        cloud, monkeypatch, case, step, method, error):
    uuid = ready(cloud, case)
    before = cloud.server(uuid)
    with monkeypatch.context() as patched:
        failing(patched, step, method, error)
        case.start(cloud, uuid)
        row = cloud.settle(uuid)
    last = cloud.journal(uuid)[-1]
    assert (last.outcome, row.task_state) == ("error", None) and last.fault
    gone = step.name in ("OffloadGuests", "ReleaseHost")  # from there on there is no way back
    assert gone or row.memo == before.memo
    offloaded = cloud.guests() == {}
    assert not offloaded or (row.host is None and row.memo.shelved_image_id in cloud.image_service.images)
    still = step.name in ("HoldImage", "StopForShelve") and case.name == "shelve-of-suspended"
    expected = "shelved_offloaded" if gone else "suspended" if still else case.failed
    assert row.vm_state == expected  # what was stopped cannot be resumed
    assert {key[1] for key in cloud.guests()} <= {uuid} and len(cloud.guests()) <= 1
    assert cloud.held().get("snapshots", []) == []
    whole = [image for image in cloud.image_service.of_server(uuid) if image.status == "active"]
    assert len(whole) == len(cloud.image_service.of_server(uuid))
    assert offloaded == (row.vm_state == "shelved_offloaded")
    assert not offloaded or set(cloud.held()) == {"addresses", "interfaces", "told"}
    check_gone(cloud, uuid, len(whole) if stays(case, row) else 0)


@pytest.mark.parametrize("case, step, method", fifth(steps_of_cases("do")))
def test_action_when_a_step_is_done_twice_then_the_end_is_the_same(cloud, monkeypatch, case, step, method):
    uuid = ready(cloud, case)
    real = step.do
    monkeypatch.setattr(step, "do", lambda *args: (real(*args), real(*args))[1])
    case.start(cloud, uuid)
    cloud.settle(uuid)
    check_whole(cloud, uuid, case.after)
    assert len(cloud.image_service.of_server(uuid)) == case.leaves
    check_gone(cloud, uuid, stays(case, None))


@pytest.mark.one_in(5)  # a cloud for each write or call
@pytest.mark.parametrize("case, when", [
    pytest.param(case, when, id=f"{case.name}-{when}") for number, case in enumerate(CASES)
    for when in turn(["before", "after"], number, 1)])
def test_action_when_the_runner_dies_at_any_write_then_another_ends_it(tmp_path, templates, case, when):
    for number in range(1, MOST_WRITES):
        (folder := tmp_path / str(number)).mkdir()
        cloud = FailingCloud(folder, templates)
        uuid = ready(cloud, case)
        runner = cloud.runner(MortalJournal, die_at=number, when=when)
        case.start(cloud, uuid)
        died = killed(cloud, runner)
        taken_over(cloud, uuid)
        lost = case.action == "changePassword" and cloud.journal(uuid)[-1].outcome == "error"
        check_whole(cloud, uuid, case.failed if lost else case.after)
        assert died or not lost
        assert [image.status for image in cloud.image_service.of_server(uuid)] == ["active"] * case.leaves
        check_gone(cloud, uuid, stays(case, None))
        cloud.cell.dispose()
        cloud.api.dispose()
        if not died:
            break
    assert 1 < number < MOST_WRITES - 1


@pytest.mark.parametrize("case", [case for case in CASES if case.password], ids=lambda case: case.name)
def test_action_with_a_password_when_it_is_journaled_then_the_password_is_not(cloud, case, caplog):
    uuid = ready(cloud, case)
    caplog.set_level(0)
    case.start(cloud, uuid)
    cloud.settle(uuid)
    assert PASSWORD not in repr(cloud.journal(uuid)) and PASSWORD not in repr(cloud.server(uuid))
    assert PASSWORD not in caplog.text
    assert any(PASSWORD in repr(order) for compute in cloud.computes.values() for _kind, order in compute.orders)


@pytest.mark.parametrize("case", [case for case in CASES if case.workflow.action.needs_host],
                         ids=lambda case: case.name)
def test_action_when_its_host_is_away_then_it_fails_and_a_delete_ends_all(cloud, monkeypatch, case):
    uuid = ready(cloud, case)

    def away(call: str, host: str) -> None:
        raise errors.Unavailable("away")
    cloud.on_order(away)
    case.start(cloud, uuid)
    row = cloud.settle(uuid)
    if case.name in ("create-backup-of-none", "shelve-offload"):
        assert row.vm_state == case.after  # the first asks no host; of the second the host owes the rest
    else:
        assert (row.vm_state, cloud.journal(uuid)[-1].outcome) == (
            "suspended" if case.name == "shelve-of-suspended" else case.failed, "error")
    cloud.on_order(lambda call, host: None)
    with context.entered(DEMO):
        cloud.order(uuid, "force_delete")
    assert cloud.settle(uuid).deleted and cloud.open_ledger() == set()
