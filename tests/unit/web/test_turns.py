"""Turns of projects: nobody waits behind all that another project asks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from nova import errors
from nova.web import fair_share
from nova.web.fair_share import COUNTS_S, GOOD_S, SHARED, ProjectLimiter, ValidatedTokens


class Asking:
    """Requests of a project, each of which is at work until :meth:`end`. ``most``: how many were so at a time."""

    def __init__(self, made: ProjectLimiter, project: str, count: int) -> None:
        self.at_work = self.most = self.refused = 0
        self._lock, self._over = threading.Lock(), threading.Event()
        self._made, self._project = made, project
        self.threads = [threading.Thread(target=self._ask, daemon=True) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def _ask(self) -> None:
        try:
            with self._made.turn(self._project):
                with self._lock:
                    self.at_work += 1
                    self.most = max(self.most, self.at_work)
                self._over.wait(10)
                with self._lock:
                    self.at_work -= 1
        except errors.NovaError:
            self.refused += 1

    def end(self) -> None:
        self._over.set()
        for thread in self.threads:
            thread.join(10)


class StoppedClock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def soon(check: Callable[[], bool]) -> bool:
    until = time.monotonic() + 5
    while not check() and time.monotonic() < until:
        time.sleep(0.01)
    return check()


def test_requests_when_one_of_a_project_may_be_at_work_then_its_second_waits_while_others_ask() -> None:
    made = ProjectLimiter(StoppedClock(), shared=1)
    with made.turn("b"):
        pass
    asking = Asking(made, "a", 3)
    assert soon(lambda: asking.at_work == 1)
    asking.end()
    assert asking.most == 1 and asking.refused == 0


def test_project_when_it_asks_alone_then_nothing_holds_it_up() -> None:
    asking = Asking(ProjectLimiter(StoppedClock()), "a", 5 * SHARED)
    assert soon(lambda: asking.at_work == 5 * SHARED)
    asking.end()


def test_project_when_another_asks_too_then_it_has_a_few_at_work_and_the_other_does_not_wait() -> None:
    made = ProjectLimiter(StoppedClock())
    with made.turn("b"):
        pass
    asking = Asking(made, "a", 5 * SHARED)
    assert soon(lambda: asking.at_work == SHARED)
    began = time.monotonic()
    with made.turn("b"):
        pass
    assert time.monotonic() - began < 1 and asking.most == SHARED
    asking.end()
    assert asking.most == SHARED and asking.refused == 0, "the rest had their turn after it"


def test_request_when_it_takes_long_then_it_keeps_no_other_of_its_project_waiting() -> None:
    """It waits for a host, say, and not for this process."""
    clock = StoppedClock()
    made = ProjectLimiter(clock)
    with made.turn("b"):
        pass
    asking = Asking(made, "a", 2 * SHARED)
    assert soon(lambda: asking.at_work == SHARED)
    clock.now += COUNTS_S
    assert soon(lambda: asking.at_work == 2 * SHARED)
    asking.end()


def test_project_when_the_other_has_asked_nothing_for_a_while_then_it_is_alone_again() -> None:
    clock = StoppedClock()
    made = ProjectLimiter(clock)
    with made.turn("b"):
        pass
    clock.now += fair_share.ALONE_S + 0.1
    asking = Asking(made, "a", 3 * SHARED)
    assert soon(lambda: asking.at_work == 3 * SHARED)
    asking.end()


@pytest.mark.parametrize("name", ["MOST_WAITING", "WAIT_S"])
def test_requests_when_too_many_wait_or_one_too_long_then_they_are_told_to_come_again(
        monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(fair_share, name, 1 if name == "MOST_WAITING" else -1.0)
    made = ProjectLimiter(StoppedClock())
    with made.turn("b"):
        pass
    asking = Asking(made, "a", SHARED + 5)
    assert soon(lambda: asking.refused >= 4)
    asking.end()
    assert asking.refused in (4, 5)


def test_projects_when_their_requests_are_over_then_nothing_is_kept_of_them() -> None:
    made = ProjectLimiter()
    for number in range(100):
        with made.turn(f"p{number}"):
            pass
    with pytest.raises(ValueError), made.turn("failed"):
        raise ValueError
    assert not made._projects


def test_token_when_it_was_good_then_its_project_is_known_for_a_while_and_until_it_is_bad() -> None:
    clock = StoppedClock()
    good = ValidatedTokens(clock)
    assert good.project_of("a") is None
    for token, project in (("a", "p1"), ("b", "p2"), ("system", "")):
        good.note(token, project)
    assert [good.project_of(token) for token in ("a", "b", "system", "")] == ["p1", "p2", "", None]
    good.note("b", None)
    assert good.project_of("b") is None
    clock.now += GOOD_S
    assert good.project_of("a") is None


def test_tokens_when_there_are_many_then_the_newest_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_share, "MOST_GOOD", 3)
    good = ValidatedTokens(StoppedClock())
    for token in "abcd":
        good.note(token, "p")
    assert [good.project_of(token) for token in "abcd"] == [None, "p", "p", "p"]


def test_strangers_when_they_are_of_one_address_then_one_is_at_work_and_another_address_does_not_wait() -> None:
    made = ProjectLimiter(StoppedClock())
    with made.turn("b"), made.unauthenticated("192.0.2.1"):
        asked: list[str] = []

        def ask(address: str) -> None:
            with made.unauthenticated(address):
                asked.append(address)
        threads = [threading.Thread(target=ask, args=(one,), daemon=True) for one in ("192.0.2.1", "192.0.2.2")]
        for thread in threads:
            thread.start()
        assert soon(lambda: asked == ["192.0.2.2"])
        time.sleep(0.2)
        assert asked == ["192.0.2.2"]
    for thread in threads:
        thread.join(5)
    assert asked == ["192.0.2.2", "192.0.2.1"]
