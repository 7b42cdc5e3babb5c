"""What /metrics says of a daemon's readiness."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from nova import errors
from nova.monitoring.health import Health, HealthChecks
from nova.monitoring.readiness import ReadyFigures
from nova.monitoring.workers import Workers, WorkerState


@pytest.fixture
def health() -> Health:
    workers = Workers(1)
    workers.turn(0, 4000, WorkerState.SERVING)
    return Health("nova-conductor", "ctl", workers)


def told(figures: ReadyFigures) -> dict[tuple[str, ...], float]:
    """Values by the name of the metric and the values of its labels."""
    return {(sample.name, *sample.labels.values()): sample.value
            for metric in figures.collect() for sample in metric.samples}


def refuses() -> None:
    raise errors.Unavailable("The database does not answer.")


def test_figures_when_all_answers_then_the_daemon_and_each_check_are_1(health: Health) -> None:
    health.health_checks = HealthChecks({"bus": lambda: None})
    assert told(ReadyFigures(health)) == {("nova_ready", "nova-conductor"): 1,
                                          ("nova_ready_check", "nova-conductor", "bus"): 1}


def test_figures_when_a_check_fails_then_it_is_0_and_so_is_the_daemon(health: Health) -> None:
    health.health_checks = HealthChecks({"bus": lambda: None, "database": refuses})
    assert told(ReadyFigures(health)) == {("nova_ready", "nova-conductor"): 0,
                                          ("nova_ready_check", "nova-conductor", "bus"): 1,
                                          ("nova_ready_check", "nova-conductor", "database"): 0}


def test_figures_when_the_daemon_has_not_started_then_it_is_not_ready(health: Health) -> None:
    assert told(ReadyFigures(health)) == {("nova_ready", "nova-conductor"): 0}


class TestSlowCheck:
    """A check that does not end for now."""

    @pytest.fixture
    def answer(self, health: Health) -> Iterator[threading.Event]:
        event = threading.Event()
        health.health_checks = HealthChecks({"database": event.wait})
        yield event
        event.set()

    def test_figures_when_a_check_does_not_end_then_a_reader_has_those_of_before(self, health: Health,
                                                                                 answer: threading.Event) -> None:
        figures = ReadyFigures(health, 0.05)
        assert told(figures) == told(figures) == {("nova_ready", "nova-conductor"): 0}

    def test_figures_when_it_ends_at_last_then_the_next_reader_has_its_result(self, health: Health,
                                                                              answer: threading.Event) -> None:
        assert told(ReadyFigures(health, 0.05))["nova_ready", "nova-conductor"] == 0
        answer.set()
        assert told(ReadyFigures(health, 60))["nova_ready", "nova-conductor"] == 1
