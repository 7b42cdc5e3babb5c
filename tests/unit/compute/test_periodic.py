"""What is done now and then."""

from __future__ import annotations

from nova.compute.host import HostClock
from nova.compute.periodic import USUAL_S, Periodic, PeriodicJob
from tests.fakes.compute import wait_until


def _counting(counts: dict[str, int], name: str, interval_s: float, error: Exception | None = None) -> PeriodicJob:
    def do() -> None:
        counts[name] = counts.get(name, 0) + 1
        if error:
            raise error
    return PeriodicJob(name, interval_s, do)


def test_run_due_when_time_passes_then_each_job_runs_at_its_own_pace(clock):
    counts: dict[str, int] = {}
    periodic = Periodic([_counting(counts, "often", 10), _counting(counts, "seldom", 100),
                         _counting(counts, "usual", 0), _counting(counts, "never", -1)], clock)
    for _ in range(200):
        periodic.run_due()
        clock.advance(seconds=1)
    assert 16 <= counts["often"] <= 22 and 1 <= counts["seldom"] <= 2
    assert 200 / USUAL_S - 1 <= counts["usual"] <= 200 / USUAL_S + 1 and "never" not in counts


def test_run_due_when_a_job_fails_then_it_is_logged_comes_again_and_the_others_run(clock, caplog):
    counts: dict[str, int] = {}
    periodic = Periodic([_counting(counts, "bad", 10, ValueError("no")), _counting(counts, "good", 10)], clock)
    for _ in range(2):
        clock.advance(seconds=12)
        periodic.run_due()
    assert counts == {"bad": 2, "good": 2} and "'bad' failed" in caplog.text


def test_jobs_when_many_hosts_start_together_then_they_are_spread(clock):
    dues = [Periodic([_counting({}, "job", 600)], clock)._jobs[0].due for _ in range(50)]
    assert max(dues) - min(dues) > 200


def test_thread_when_started_and_stopped_then_jobs_run_and_end():
    counts: dict[str, int] = {}
    periodic = Periodic([_counting(counts, "job", 0.01)], HostClock())
    periodic.start()
    wait_until(lambda: counts.get("job", 0) >= 3)
    periodic.stop()


def test_thread_when_there_is_nothing_to_do_then_it_does_not_spin(clock):
    periodic = Periodic([], clock)
    periodic._loop()
    periodic.stop()


def test_stop_when_a_job_runs_then_no_other_begins(clock):
    counts: dict[str, int] = {}
    stopping = PeriodicJob("stopping", 10, lambda: periodic.stop())
    periodic = Periodic([stopping, _counting(counts, "next", 10)], clock)
    clock.advance(seconds=12)
    periodic.run_due()
    assert counts == {}
