"""Calls on a cell that is away, or hangs: they do not wait for it, and a bounded number of threads does."""

from __future__ import annotations

import concurrent.futures
import logging
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from nova import errors
from nova.conductor.cells import gates
from nova.conductor.cells.gates import AT_ONCE, Gate
from nova.db.sql.engine import DatabaseUnavailable
from tests.fakes.small_cloud import until

UUID = "7a7ec0de-0000-4000-8000-000000000007"


class Checked:
    """A cell's database. ``there``: set while it answers; ``checks``: how often it was tried."""

    def __init__(self) -> None:
        self.there, self.checks = threading.Event(), 0
        self.there.set()

    def answers(self) -> bool:
        self.checks += 1
        return self.there.is_set()


class Rig:
    def __init__(self) -> None:
        self.database, self.lives = Checked(), True
        cell: Any = SimpleNamespace(cell=self.database, cell_uuid=UUID)
        self.gate, self.go = Gate(cell, lambda: self.lives), threading.Event()
        self.threads: list[threading.Thread] = []
        self.refused: list[errors.NovaError] = []

    def fail(self) -> None:
        """A call finds the database away."""
        with pytest.raises(DatabaseUnavailable), self.gate.turn():
            raise DatabaseUnavailable("gone")

    def call(self) -> bool:
        """Return whether a call had its turn."""
        try:
            with self.gate.turn():
                return True
        except errors.cell.Busy:
            return False

    def hold(self, calls: int) -> None:
        """Let so many calls wait for the cell."""
        def held() -> None:
            try:
                with self.gate.turn():
                    self.go.wait(20)
            except errors.cell.Busy as error:
                self.refused.append(error)
        begun = [threading.Thread(target=held) for _ in range(calls)]
        self.threads += begun
        for thread in begun:
            thread.start()

    def close(self) -> None:
        self.lives = False
        self.go.set()
        self.database.there.set()
        for thread in self.threads:
            thread.join(10)


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    monkeypatch.setattr(gates, "RETRY_S", 0.02)
    made = Rig()
    yield made
    made.close()


def test_call_when_the_database_is_away_then_the_next_ones_are_refused_at_once_until_it_answers(
        rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    rig.database.there.clear()
    rig.fail()
    until(lambda: rig.gate.away, "it is known to be away")
    assert not any(rig.call() for _ in range(AT_ONCE * 3))
    until(lambda: rig.database.checks > 3, "it is tried again without a call")
    rig.database.there.set()
    until(rig.call, "the first call after its return is served")
    assert [record.message for record in caplog.records] == [
        f"cell {UUID} does not answer; its servers are not available", f"cell {UUID} answers again"]


def test_call_when_another_database_was_away_then_the_cell_is_not(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    """A call on a cell uses the api database, too."""
    rig.fail()
    until(lambda: rig.database.checks == 1, "it is tried")
    assert rig.call() and not caplog.records


def test_call_when_the_cell_has_no_free_turn_then_it_waits_for_one(rig: Rig) -> None:
    rig.hold(AT_ONCE)
    threading.Timer(0.1, rig.go.set).start()
    assert rig.call() and not rig.gate.away


def test_calls_when_they_hang_then_a_bounded_number_waits_and_others_are_refused_at_once(
        rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "TURN_S", 20.0)
    rig.hold(2 * AT_ONCE + 3)
    until(lambda: len(rig.refused) == 3, "those beyond the waiting ones are refused")
    assert not rig.call()
    monkeypatch.setattr(gates, "SLOW_S", 0.0)
    rig.database.there.clear()
    rig.call()
    until(lambda: len(rig.refused) == AT_ONCE + 3, "the cell is tried, and the waiting ones are refused, too")
    assert rig.gate.away


def test_question_when_it_is_late_then_the_cell_is_away_until_it_is_answered(rig: Rig) -> None:
    """Its database answers: it is only slow."""
    late = concurrent.futures.Future[object]()
    rig.gate.suspect(late)
    assert not rig.call()
    until(lambda: rig.database.checks > 2, "its database answers")
    assert not rig.call()
    late.set_result(None)
    until(rig.call, "it is quick again")


def test_question_when_it_is_never_answered_then_the_cell_is_tried_again_after_a_time(
        rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "LATE_S", 0.1)
    rig.gate.suspect(concurrent.futures.Future())
    until(rig.call, "its connections are new")


def test_cell_when_it_is_served_no_longer_then_it_is_not_tried_again(rig: Rig) -> None:
    rig.database.there.clear()
    rig.fail()
    until(lambda: rig.database.checks > 1, "it is tried")
    rig.lives = False
    until(lambda: not any(thread.name == "cell-7a7ec0de-watch" for thread in threading.enumerate()), "its thread ends")
    tried = rig.database.checks
    time.sleep(0.1)
    assert rig.database.checks == tried
