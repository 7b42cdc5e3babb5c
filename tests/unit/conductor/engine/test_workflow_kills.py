"""The runner dies after (or instead of) each write of the journal; a second one comes to the same end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nova.conductor.engine.journal import Journal
from nova.conductor.engine.runner import Runner
from tests.fakes.failing_cloud import FailingCloud

pytestmark = [pytest.mark.one_in(5),  # whole clouds
              pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")]
DIED_S = 5.0
MOST_WRITES = 12  # of any operation


class Killed(BaseException):
    """As a SIGKILL: nothing of the runner handles it."""


class MortalJournal(Journal):
    """Dies at its n-th write: ``when`` before it reaches the database, or right after it."""

    def __init__(self, *args: Any, die_at: int, when: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.left, self.when, self.dead = die_at, when, False

    def _write(self, write: Callable[..., None], *args: Any) -> None:
        if self.dead or not self.left:
            raise Killed
        self.left -= 1
        try:
            if self.left or self.when == "after":
                write(*args)
        finally:
            self.dead = not self.left  # not before its last write has ended: another runner takes over from then on
        if self.dead:
            raise Killed

    def advance(self, *args: Any) -> None:
        self._write(super().advance, *args)

    def finish(self, *args: Any) -> None:
        self._write(super().finish, *args)


@pytest.fixture
def cloud(tmp_path: Path, templates: Path) -> Iterator[FailingCloud]:
    made = FailingCloud(tmp_path, templates)
    yield made
    made.cell.dispose()
    made.api.dispose()


def killed(cloud: FailingCloud, runner: Runner) -> bool:
    """Wait until the runner has died or has nothing to do; whether it died."""
    until = time.monotonic() + DIED_S
    while not runner.journal.dead and runner.running:
        assert time.monotonic() < until
        time.sleep(0.002)
    return bool(runner.journal.dead)


def taken_over(cloud: FailingCloud, uuid: str) -> Any:
    """The server's row after a second runner has taken over what the dead one left."""
    cloud.expire_leases()
    cloud.runner().sweep()
    return cloud.settle(uuid)


@pytest.mark.parametrize("when", ["before", "after"])
def test_create_when_the_runner_dies_at_any_write_then_another_ends_it(tmp_path, templates, when) -> None:
    for number in range(1, MOST_WRITES):
        (folder := tmp_path / str(number)).mkdir()
        cloud = FailingCloud(folder, templates)
        runner = cloud.runner(MortalJournal, die_at=number, when=when)
        [uuid] = cloud.boot()
        died = killed(cloud, runner)
        row = taken_over(cloud, uuid)
        assert (row.vm_state, row.task_state, row.host) == ("active", None, "host1"), number
        held = cloud.held()
        assert held.pop("guests") == [("host1", uuid)]
        assert {what: len(rows) for what, rows in held.items()} == {
            "allocations": 1, "addresses": 1, "interfaces": 1, "told": 1}, number
        cloud.order(uuid, "delete")
        assert cloud.settle(uuid).deleted and cloud.held() == {}
        cloud.cell.dispose()
        cloud.api.dispose()
        if not died:
            break
    assert 3 < number < MOST_WRITES - 1


@pytest.mark.parametrize("when", ["before", "after"])
def test_failing_create_when_the_runner_dies_at_any_write_then_another_undoes_it(tmp_path, templates, when) -> None:
    def refuse(call: str, host: str) -> None:
        if call == "build":
            raise RuntimeError("cannot")
    for number in range(1, MOST_WRITES):
        (folder := tmp_path / str(number)).mkdir()
        cloud = FailingCloud(folder, templates)
        cloud.on_order(refuse)
        runner = cloud.runner(MortalJournal, die_at=number, when=when)
        [uuid] = cloud.boot()
        died = killed(cloud, runner)
        row = taken_over(cloud, uuid)
        assert (row.vm_state, row.task_state) == ("error", None) and row.fault.message, number
        assert cloud.held() == {}, number
        cloud.cell.dispose()
        cloud.api.dispose()
        if not died:
            break
    assert 5 < number < MOST_WRITES - 1


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("action", ["delete", "start", "stop", "soft_reboot", "hard_reboot"])
def test_action_when_the_runner_dies_at_any_write_then_another_ends_it(tmp_path, templates, action, when) -> None:
    for number in range(1, MOST_WRITES):
        (folder := tmp_path / str(number)).mkdir()
        cloud = FailingCloud(folder, templates)
        [uuid] = cloud.active()
        if action == "start":
            cloud.order(uuid, "stop")
            cloud.settle(uuid)
        runner = cloud.runner(MortalJournal, die_at=number, when=when)
        cloud.order(uuid, action)
        died = killed(cloud, runner)
        row = taken_over(cloud, uuid)
        if action == "delete":
            assert row.deleted and cloud.held() == {} and cloud.open_ledger() == set(), number
        else:
            assert (row.vm_state, row.task_state) == ("stopped" if action == "stop" else "active", None), number
            assert set(cloud.guests()) == {("host1", uuid)}
        cloud.cell.dispose()
        cloud.api.dispose()
        if not died:
            break
    assert 1 < number < MOST_WRITES - 1


def test_runner_when_it_wakes_after_its_work_was_taken_then_it_changes_nothing(cloud: FailingCloud) -> None:
    asleep, wake = threading.Event(), threading.Event()

    def sleep_once(call: str, host: str) -> None:
        if call == "build" and not asleep.is_set():
            asleep.set()
            wake.wait(10)
    cloud.on_order(sleep_once)
    [uuid] = cloud.boot()
    assert asleep.wait(5)
    sleeper = cloud.deps.runner
    cloud.expire_leases()
    cloud.runner().sweep()
    row = cloud.settle(uuid)
    assert row.vm_state == "active"
    wake.set()
    until = time.monotonic() + 5
    while sleeper.running and time.monotonic() < until:
        time.sleep(0.005)
    after = cloud.server(uuid)
    assert not sleeper.running and (after.vm_state, after.epoch) == ("active", row.epoch)
    assert after.updated_at == row.updated_at
    assert cloud.held()["guests"] == [("host1", uuid)]


def test_sweep_when_two_runners_do_it_at_once_then_one_has_each_operation(cloud: FailingCloud, monkeypatch) -> None:
    runner = cloud.runner(MortalJournal, die_at=1, when="before")
    uuids = cloud.boot(3)
    assert killed(cloud, runner)
    cloud.expire_leases()
    first, second = cloud.runner(), cloud.runner()
    found = [first.journal.take_over(set()), second.journal.take_over(set())]
    assert sorted(entry.server_uuid for entry in found[0]) == sorted(uuids) and found[1] == []


def test_delete_when_it_overtakes_a_dead_create_then_it_alone_goes_on(cloud: FailingCloud) -> None:
    runner = cloud.runner(MortalJournal, die_at=3, when="after")  # the build's intent is written
    [uuid] = cloud.boot()
    assert killed(cloud, runner)
    cloud.expire_leases()
    second = cloud.runner()
    cloud.order(uuid, "delete")
    assert cloud.settle(uuid).deleted
    assert second.sweep() == 0 and cloud.held() == {} and cloud.open_ledger() == set()
    assert [one.outcome for one in cloud.journal(uuid)] == ["overtaken", "success"]
