"""Whether a daemon lives and is ready."""

from __future__ import annotations

import itertools

import pytest

from nova import context, errors
from nova.monitoring.health import CACHED_S, Health, HealthChecks
from nova.monitoring.workers import STUCK_S, Workers, WorkerState


class Daemon:
    """Two workers of one, and a clock."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.workers = Workers(2, lambda: self.now)
        self.health = Health("nova-conductor", "ctl", self.workers, lambda: self.now)
        self.looks = itertools.count(1)

    def turn(self, *states: WorkerState) -> Daemon:
        for index, state in enumerate(states):
            self.workers.turn(index, 4000 + index, state)
        return self

    def needs(self, error: Exception | None = None) -> Daemon:
        def look() -> None:
            self.looked = next(self.looks)
            self.left_s = context.deadline().left_s
            if error:
                raise error
        self.health.health_checks = HealthChecks({"database": look})
        return self


@pytest.fixture
def daemon() -> Daemon:
    return Daemon()


SERVING, STARTING, STOPPING = WorkerState.SERVING, WorkerState.STARTING, WorkerState.STOPPING


def test_ready_when_all_workers_serve_and_all_answers_then_it_is(daemon: Daemon) -> None:
    well, said = daemon.turn(SERVING, SERVING).needs().health.ready()
    assert well and said["checks"] == {"database": {"ok": True, "ms": 0}}
    assert [one["state"] for one in said["workers"]] == ["serving", "serving"]


@pytest.mark.parametrize("other", [STARTING, STOPPING, WorkerState.ABSENT])
def test_ready_when_one_worker_does_not_serve_then_it_is_not_and_lives(daemon: Daemon, other: WorkerState) -> None:
    daemon.turn(SERVING, other).needs()
    assert not daemon.health.ready()[0] and daemon.health.live()[0]


@pytest.mark.parametrize(("error", "words"), [
    (errors.Unavailable("The database does not answer."), "The database does not answer."),
    (ValueError("odd"), "ValueError: odd")])
def test_ready_when_a_check_fails_then_it_is_not_and_says_why(daemon: Daemon, error: Exception, words: str) -> None:
    well, said = daemon.turn(SERVING, SERVING).needs(error).health.ready()
    assert not well and said["checks"]["database"]["error"] == words


def test_ready_when_many_ask_then_what_is_needed_is_asked_once_in_a_while(daemon: Daemon) -> None:
    daemon.turn(SERVING, SERVING).needs()
    for _ in range(10):
        daemon.health.ready()
    assert daemon.looked == 1 and 0 < daemon.left_s < 60
    daemon.now += CACHED_S
    daemon.health.ready()
    assert daemon.looked == 2


def test_live_when_a_main_loop_stands_still_then_it_is_not(daemon: Daemon) -> None:
    daemon.turn(SERVING, SERVING).needs()
    daemon.now += STUCK_S + 1
    daemon.turn(SERVING)
    well, said = daemon.health.live()
    assert not well and [one["state"] for one in said["workers"]] == ["serving", "stuck"]
    assert not daemon.health.ready()[0]


def test_live_when_a_worker_takes_long_to_stop_then_it_is_not_stuck(daemon: Daemon) -> None:
    daemon.turn(STOPPING, STOPPING)
    daemon.now += 10 * STUCK_S
    assert daemon.health.live()[0]
