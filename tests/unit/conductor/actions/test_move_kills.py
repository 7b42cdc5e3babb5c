"""The runner dies after (or instead of) each write of a move's journal; a second one comes to the same end."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.fakes.failing_cloud import MOVES, FailingCloud
from tests.sampling import turn
from tests.unit.conductor.engine.test_workflow_kills import MortalJournal, killed, taken_over

pytestmark = [pytest.mark.one_in(5),  # whole clouds
              pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")]
MOST_WRITES = 20
#: Move -> (vm_state, host) after it; and where its guest is when it fails at its last order.
ENDS = {"resize": ("resized", "host2"), "migrate": ("resized", "host2"), "confirmResize": ("active", "host2"),
        "revertResize": ("active", "host1"), "live-migration": ("active", "host2"), "evacuate": ("active", "host2")}
LAST = {"resize": "finish", "migrate": "fetch", "live-migration": "migrate", "evacuate": "rebuild"}


def in_turn(actions: Iterable[str]) -> list[tuple[str, str]]:
    """Every other one dies before its writes, the rest after them: each step of each is met both ways on whole hosts
    (tests/functional/test_every_step.py)."""
    return [(action, when) for number, action in enumerate(actions) for when in turn(["before", "after"], number, 1)]


def clouds(tmp_path: Path, templates: Path):
    for number in range(1, MOST_WRITES):
        (folder := tmp_path / str(number)).mkdir()
        cloud = FailingCloud(folder, templates)
        yield number, cloud
        cloud.cell.dispose()
        cloud.api.dispose()


@pytest.mark.parametrize("action, when", in_turn(MOVES))
def test_move_when_the_runner_dies_at_any_write_then_another_ends_it(tmp_path, templates, action, when):
    for number, cloud in clouds(tmp_path, templates):
        uuid = cloud.ready(action)
        runner = cloud.runner(MortalJournal, die_at=number, when=when)
        cloud.begin(uuid, action)
        died = killed(cloud, runner)
        row = taken_over(cloud, uuid)
        assert (row.vm_state, row.host, row.task_state) == (*ENDS[action], None), (number, row.fault)
        if row.vm_state == "resized":
            assert cloud.ends(uuid) == {"own": ["host2"], "moves": ["host1"]}
            cloud.begin(uuid, "confirmResize")
            cloud.settle(uuid)
        if action == "evacuate":
            assert [debt.host for debt in cloud.debts()] == ["host1"]
            cloud.computes["host1"].guests.clear()
            cloud.hosts.debt_paid("host1", cloud.debts()[0].id)
        cloud.whole(uuid, ENDS[action][1])
        if not died:
            break
    assert 2 < number < MOST_WRITES - 1


@pytest.mark.parametrize("action, when", in_turn(LAST))
def test_failing_move_when_the_runner_dies_at_any_write_then_another_undoes_it(tmp_path, templates, action, when):
    def refuse(call: str, host: str) -> None:
        if call == LAST[action]:
            raise RuntimeError("cannot")
    for number, cloud in clouds(tmp_path, templates):
        uuid = cloud.ready(action)
        cloud.on_order(refuse)
        runner = cloud.runner(MortalJournal, die_at=number, when=when)
        cloud.begin(uuid, action)
        died = killed(cloud, runner)
        row = taken_over(cloud, uuid)
        assert (row.vm_state, row.host, row.task_state) == ("active", "host1", None), (number, row.fault)
        assert row.fault.message and cloud.moves(uuid)[0].status in ("error", "failed")
        cloud.whole(uuid, "host1")
        if not died:
            break
    assert 4 < number < MOST_WRITES - 1
