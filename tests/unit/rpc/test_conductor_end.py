"""Messages of hosts at a conductor: what is handed on, and what becomes of the rest."""

from __future__ import annotations

import logging
import sys
from typing import Any

import oslo_messaging
import pytest

from nova import errors
from nova.rpc import codec
from nova.rpc.conductor_listener import ANSWERED, Arrived, ConductorDispatcher, PerSecond
from nova.rpc.interface import Contract, call


class DeskRPC(Contract):
    topic, version, with_hosts = "conductor-host", "1.0", True

    @call()
    def ask(self, host: str) -> str:
        """A call of a host."""


class Checks:
    """Stands for a Receiver: proven is what has the proof "good"."""

    contract = DeskRPC

    def proven(self, name: str, envelope: dict[str, object]) -> str:
        if envelope.get("proof") != "good":
            raise errors.daemon.RpcNotProven(host=envelope.get("sender"))
        return "key"


class Endpoint:
    def ask(self, ctxt: dict[str, object], **envelope: object) -> str:
        return f"answered with {ctxt['key']}"


class Incoming:
    """A message of ``h1`` as the library hands it on; ``deeds``: what was done with it."""

    client_timeout, queue, user = None, "calls.h1", "host-h1"

    def __init__(self, message: dict[str, Any], reply_q: str | None = None) -> None:
        self.message, self.reply_q, self.ctxt, self.deeds = message, reply_q, {"key": "a thief's"}, []  # type: Any, ...

    def settle(self) -> None:
        self.deeds.append("settled")

    def settle_later(self) -> None:
        self.deeds.append("settled later")

    def leave_unanswered(self) -> None:
        self.deeds.append("unanswered")

    def reply(self, reply: object = None, failure: Any = None) -> None:
        self.deeds.append(failure[0].__name__)


@pytest.fixture
def dispatcher() -> ConductorDispatcher:
    return ConductorDispatcher(Endpoint(), Checks(), lambda: 7.0)  # type: ignore[arg-type]


def message(**args: Any) -> dict[str, Any]:
    return {"method": "ask", "version": "1.0", "args": {"sender": "h1", **args}}


REPLIES = "reply_h1_" + "0" * 32


def test_call_when_it_is_proven_then_it_is_settled_before_it_is_worked_on_and_answered(
        dispatcher: ConductorDispatcher) -> None:
    incoming = Incoming(message(proof="good", reply_to=REPLIES), REPLIES)
    assert dispatcher.dispatch(incoming) == "answered with key"  # type: ignore[arg-type]
    assert incoming.deeds == ["settled"]


REFUSED: dict[str, tuple[dict[str, Any], str | None]] = {
    "no proof": (message(), None), "another's queue": (message(proof="good", reply_to="reply_h2_" + "0" * 32),
                                                       "reply_h2_" + "0" * 32),
    "a queue that is not proven": (message(proof="good"), REPLIES), "no method": ({"args": {}}, None),
    "a method that is no word": ({"method": ["ask"], "args": {}}, None), "no arguments": ({"method": "ask"}, None),
    "arguments of another kind": ({"method": "ask", "args": "x"}, None), "nothing": ({}, None),
    "a method that is not there": ({"method": "target", "args": {}}, None)}


@pytest.mark.parametrize("case", REFUSED)
def test_message_when_it_proves_nothing_then_it_is_settled_late_and_said_once_a_second(
        dispatcher: ConductorDispatcher, caplog: pytest.LogCaptureFixture, case: str) -> None:
    body, queue = REFUSED[case]
    for _number in range(3 * ANSWERED):
        incoming = Incoming(body, queue)
        answer = dispatcher.dispatch(incoming)  # type: ignore[arg-type]
        assert "settled" not in incoming.deeds and incoming.deeds.count("settled later") == 1
        assert answer is None or codec.unpack(codec.from_text(answer), codec.CallReply).error
    assert "unanswered" in incoming.deeds, "the last of many is answered"
    [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert "host-h1" in record.getMessage() and "calls.h1" in record.getMessage() and not record.exc_info


def test_echo_when_there_are_many_then_few_are_answered(dispatcher: ConductorDispatcher) -> None:
    deeds = []
    for _number in range(2 * ANSWERED):
        incoming = Incoming({"method": "echo", "args": {}}, REPLIES)
        dispatcher.dispatch(incoming)  # type: ignore[arg-type]
        deeds.append(incoming.deeds)
    assert deeds == [["settled later"]] * ANSWERED + [["settled later", "unanswered"]] * ANSWERED


def test_method_when_this_release_does_not_have_it_then_the_caller_learns_it_as_from_the_library(
        dispatcher: ConductorDispatcher) -> None:
    incoming = Incoming({"method": "newer", "args": {}}, None)
    assert dispatcher.dispatch(incoming) is None  # type: ignore[arg-type]
    assert incoming.deeds == ["settled later", oslo_messaging.NoSuchMethod.__name__, "unanswered"]


def test_messages_when_the_second_is_over_then_they_count_anew() -> None:
    now = [1.0]
    counts = PerSecond(lambda: now[0])
    assert [counts.count("a"), counts.count("a"), counts.count("b")] == [1, 2, 1]
    now[0] = 2.5
    assert counts.count("a") == 1


class Raw:
    """kombu's message."""

    def __init__(self, payload: Any) -> None:
        self.payload = payload


@pytest.mark.parametrize("payload", ["", "x", b"\xff", "[1]", '{"oslo.message": 5}', "[" * 200_000, 7, None,
                                     '{"oslo.version": "9.0", "oslo.message": "{}"}'])
def test_message_when_it_cannot_be_read_then_nothing_is_in_it(payload: Any) -> None:
    limit = sys.getrecursionlimit()
    raw = Raw(payload)
    arrived = Arrived(raw)
    assert dict(arrived) == {} or "oslo.message" not in arrived
    assert arrived.raw is raw and sys.getrecursionlimit() == limit
