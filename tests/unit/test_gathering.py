"""Concurrent callers share executions; nobody waits for long, and a failure fails only its own caller."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any

import pytest

from nova import context, errors
from nova.gathering import Gathering, in_own_context

TOP = Path(__file__).resolve().parents[2]
TIMEOUT_S = 10.0
PATIENT_S = 30.0


def lost(error: Exception) -> bool:
    """Return whether the work may have been done, although it failed."""
    return isinstance(error, errors.Unavailable)


class Interrupted(BaseException):
    pass


class Interrupting(Gathering[str, Any]):
    """One whose caller ``b`` is interrupted when it is to execute what has arrived."""

    def _lose_patience(self, queue: Any, mine: Any) -> None:
        super()._lose_patience(queue, mine)
        if mine.item == "b":
            raise Interrupted


class Work:
    """Work that waits at the gate until it is open. ``executed``: the items of each execution. ``quick``: an item that
    does not wait."""

    def __init__(self, act: Callable[[str], Any] = str.upper, patience_s: float = PATIENT_S, most: int = 100,
                 quick: str = "", kind: type[Gathering[str, Any]] = Gathering) -> None:
        self.quick = quick
        self.gate, self.entered = threading.Event(), threading.Event()
        self.executed: list[list[str]] = []
        self.answers: dict[str, Any] = {}
        self._each = act
        self.gathering = kind("test", self._act, lost, len, patience_s=patience_s, most=most)

    def _act(self, items: Sequence[str]) -> list[Any]:
        self.executed.append(list(items))
        self.entered.set()
        assert items == [self.quick] or self.gate.wait(TIMEOUT_S)
        return [self._each(item) for item in items]

    def call(self, item: str, key: Hashable = None) -> threading.Thread:
        def run() -> None:
            try:
                self.answers[item] = self.gathering(item, key)
            except BaseException as error:
                self.answers[item] = error
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def gathered(self, *items: str) -> None:
        """Call with the first item, and with the others while that one is executed."""
        threads = [self.call(items[0])]
        assert self.entered.wait(TIMEOUT_S)
        threads += [self.call(item) for item in items[1:]]
        self.until_waiting(len(items) - 1)
        self.gate.set()
        for thread in threads:
            thread.join(TIMEOUT_S)
            assert not thread.is_alive()

    def until_waiting(self, count: int, key: Hashable = None) -> None:
        for _ in range(1000):
            if len(self.gathering._queues[key].waiting) == count:
                return
            threading.Event().wait(0.01)
        raise AssertionError(f"{count} callers do not wait")


def test_call_when_nothing_is_in_progress_then_its_own_thread_executes_it() -> None:
    threads = []
    gathering: Gathering[str, str] = Gathering("test", lambda items: threads.append(threading.current_thread()) or
                                               [item.upper() for item in items], lost)
    assert [gathering("a"), gathering("b")] == ["A", "B"]
    assert threads == [threading.current_thread()] * 2 and not gathering._queues


def test_calls_when_one_is_executed_then_the_others_share_the_next_execution() -> None:
    work = Work()
    work.gathered("a", "b", "c", "d")
    assert [sorted(items) for items in work.executed] == [["a"], ["b", "c", "d"]]
    assert work.answers == {"a": "A", "b": "B", "c": "C", "d": "D"}
    assert not work.gathering._queues


def test_calls_when_they_are_more_than_fit_then_they_share_several_executions() -> None:
    work = Work(most=2)
    work.gathered("a", "b", "c", "d", "e", "f")
    assert [len(items) for items in work.executed] == [1, 2, 2, 1]
    assert work.answers == {name: name.upper() for name in "abcdef"}


def test_calls_when_items_are_heavy_then_fewer_share_an_execution_and_one_that_is_too_heavy_is_alone() -> None:
    work = Work(most=4)
    work.gathered("a", "bbb", "c", "ddddddd", "ee", "ff")
    assert [len("".join(items)) for items in work.executed][0] == 1
    assert all(len("".join(items)) <= 4 or len(items) == 1 for items in work.executed)
    assert len(work.answers) == 6


def test_calls_when_an_impatient_one_is_heavy_then_it_takes_no_more_than_fit() -> None:
    work = Work(patience_s=0.2, most=3)
    stuck = work.call("a")
    assert work.entered.wait(TIMEOUT_S)
    others = [work.call("bbb"), work.call("cc")]
    for thread in others:
        thread.join(0.5)
    work.gate.set()
    for thread in (stuck, *others):
        thread.join(TIMEOUT_S)
    assert sorted(map(tuple, work.executed)) == [("a",), ("bbb",), ("cc",)]


def test_calls_when_the_keys_differ_then_neither_waits_for_the_other() -> None:
    work = Work()
    first = work.call("a", "one")
    assert work.entered.wait(TIMEOUT_S)
    work.entered.clear()
    second = work.call("b", "two")
    assert work.entered.wait(TIMEOUT_S)
    work.gate.set()
    for thread in (first, second):
        thread.join(TIMEOUT_S)
    assert sorted(work.executed) == [["a"], ["b"]] and not work.gathering._queues


def test_calls_when_one_item_is_refused_then_only_its_caller_gets_the_error() -> None:
    work = Work(lambda item: errors.Conflict("taken") if item == "c" else item.upper())
    work.gathered("a", "b", "c", "d")
    assert len(work.executed) == 2
    assert isinstance(work.answers.pop("c"), errors.Conflict) and work.answers == {"a": "A", "b": "B", "d": "D"}


@pytest.mark.parametrize("error", [errors.Conflict("taken"), RuntimeError("unforeseen")])
def test_calls_when_the_shared_execution_fails_then_each_repeats_its_own_part(error: Exception) -> None:
    def each(item: str) -> str:
        if item == "c":
            raise error
        return item.upper()
    work = Work(each)
    work.gathered("a", "b", "c", "d")
    assert sorted(work.executed[2:]) == [["b"], ["c"], ["d"]]
    assert work.answers.pop("c") is error and work.answers == {"a": "A", "b": "B", "d": "D"}


def test_calls_when_their_work_may_be_done_then_nobody_repeats_it() -> None:
    def each(item: str) -> str:
        if item != "a":
            raise errors.Unavailable("the answer is lost")
        return item.upper()
    work = Work(each)
    work.gathered("a", "b", "c")
    assert len(work.executed) == 2 and work.answers.pop("a") == "A"
    assert len(work.answers) == 2 and all(isinstance(one, errors.Unavailable) for one in work.answers.values())


def test_call_when_the_execution_in_progress_hangs_then_it_no_longer_waits() -> None:
    work = Work(patience_s=0.01, quick="b")
    stuck = work.call("a")
    assert work.entered.wait(TIMEOUT_S)
    work.call("b").join(TIMEOUT_S)
    assert work.answers == {"b": "B"}
    work.gate.set()
    stuck.join(TIMEOUT_S)
    assert work.answers == {"a": "A", "b": "B"} and not work.gathering._queues


def test_calls_when_the_executing_thread_is_interrupted_then_the_others_do_their_parts() -> None:
    def each(item: str) -> str:
        if item == "b" and len(work.executed[-1]) > 1:
            raise Interrupted
        return item.upper()
    work = Work(each)
    work.gathered("a", "b", "c", "d")
    assert isinstance(work.answers.pop("b"), Interrupted) and work.answers == {"a": "A", "c": "C", "d": "D"}
    assert not work.gathering._queues


def test_calls_when_the_next_executing_thread_was_interrupted_then_the_others_do_their_parts() -> None:
    work = Work(patience_s=0.2, kind=Interrupting)
    first = work.call("a")
    assert work.entered.wait(TIMEOUT_S)
    others = [work.call("b")]
    work.until_waiting(1)
    others.append(work.call("c"))  # loses its patience later
    for _ in range(1000):
        if "b" in work.answers:
            break
        threading.Event().wait(0.01)
    work.gate.set()
    for thread in (first, *others):
        thread.join(TIMEOUT_S)
    assert isinstance(work.answers.pop("b"), Interrupted) and work.answers == {"a": "A", "c": "C"}
    assert not work.gathering._queues


def test_work_when_another_caller_executes_it_then_it_has_the_context_of_its_own() -> None:
    work = Work()
    gathering: Gathering[Callable[[], str], str] = Gathering("test", lambda works: [one() for one in works], lost)
    with context.entered(context.RequestContext(request_id="req-mine")):
        mine = in_own_context(lambda: context.current().request_id)
    with context.entered(context.RequestContext(request_id="req-other")):
        assert gathering(mine) == "req-mine"
    assert not work.executed


@pytest.mark.parametrize("mode", ["eventlet", "threads"])
def test_calls_when_many_come_at_once_then_all_are_answered_in_mode(mode: str) -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-m", "tests.fakes.gathering_in_mode", mode], cwd=TOP,
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == "ok", done.stderr
