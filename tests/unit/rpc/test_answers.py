"""Answers whose caller has no queue at the moment."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import oslo_messaging
import pytest

from nova.rpc import answers
from nova.rpc.answers import IncomingCall, PendingReplies
from tests.fakes.small_cloud import until


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test leaves is over before the next one begins, which reads the log."""
    monkeypatch.setattr(answers, "LOOK_S", 0.005)
    monkeypatch.setattr(answers, "LATE_S", 1.0)
    yield
    until(lambda: not any(thread.name == "late-answers" for thread in threading.enumerate()), "all answers are over")


class Answer:
    """Finds its queue at the try of that number; never with 0."""

    def __init__(self, found_at: int = 0, fails: bool = False) -> None:
        self.found_at, self.fails, self.tries = found_at, fails, 0

    def __call__(self) -> bool:
        self.tries += 1
        if self.fails:
            raise OSError("no broker")
        return self.tries == self.found_at


def test_late_answer_when_its_queue_is_back_then_sent_once(caplog: pytest.LogCaptureFixture) -> None:
    late, first, second = PendingReplies(), Answer(3), Answer(1)
    late.take("reply_a", first)
    late.take("reply_b", second)
    until(lambda: first.tries == 3 and second.tries == 1, "both are sent")
    third = Answer(2)
    late.take("reply_a", third)  # whether or not the thread of before has ended
    until(lambda: third.tries == 2, "the third is sent")
    threading.Event().wait(0.05)
    assert (first.tries, second.tries, third.tries) == (3, 1, 2) and "dropped" not in caplog.text


def test_late_answer_when_its_queue_stays_away_then_dropped_and_said(
        caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "LATE_S", 0.02)
    PendingReplies().take("reply_gone", Answer())
    until(lambda: "reply queue reply_gone has no consumer; reply dropped" in caplog.text, "it is said")


def test_late_answer_when_sending_it_fails_otherwise_then_the_others_are_sent(caplog: pytest.LogCaptureFixture) -> None:
    late, good = PendingReplies(), Answer(2)
    late.take("reply_bad", Answer(fails=True))
    late.take("reply_good", good)
    until(lambda: good.tries == 2, "it is sent")
    until(lambda: "no broker" in caplog.text, "the other one is said")


def test_late_answers_when_one_caller_has_many_then_they_are_dropped_and_anothers_are_not(
        caplog: pytest.LogCaptureFixture) -> None:
    late, good = PendingReplies(lambda queue: queue.split("_")[1]), Answer(2)
    for number in range(answers.MOST_OF_ONE + 3):
        late.take(f"reply_thief_{number}", Answer())
    late.take("reply_other_1", good)
    until(lambda: good.tries == 2, "it is sent")
    assert caplog.text.count("reply queue reply_thief_") == 3


def incoming(send: Any) -> IncomingCall:
    class Connection:
        def __enter__(self) -> Any:
            return SimpleNamespace(direct_send=send)

        def __exit__(self, *_: object) -> None:
            pass
    driver = SimpleNamespace(late=PendingReplies(), _get_connection=lambda purpose: Connection())
    valid = SimpleNamespace(reply_q_valid=lambda queue, number: True)
    return IncomingCall(SimpleNamespace(driver=driver), {}, {}, "unique", "m", "reply_x", 30, valid, None)


def gone(queue: str, message: Any) -> None:
    raise oslo_messaging.MessageUndeliverable(None, "", queue, message)


def test_heartbeat_when_the_callers_queue_is_away_then_the_next_one_can_follow() -> None:
    incoming(gone).heartbeat()  # raises nothing: the library would end its heartbeats else


def test_reply_when_the_callers_queue_is_away_then_it_is_tried_beside() -> None:
    sent: list[str] = []

    def send(queue: str, message: Any) -> None:
        sent.append(queue)
        if len(sent) < 3:
            gone(queue, message)
    incoming(send).reply("done")
    until(lambda: len(sent) == 3, "it is sent")
