"""Messages of control daemons at a server: which methods they reach, and which have heartbeats."""

from __future__ import annotations

from typing import Any

import oslo_messaging
import pytest

from nova.rpc.dispatching import DirectDispatcher
from nova.rpc.transport import Probed


class Endpoint:
    def ask(self, ctxt: dict[str, object], **envelope: object) -> str:
        return f"asked by {envelope['sender']}"

    def unlisted(self, ctxt: dict[str, object]) -> str:
        return "reached by the library's path"


class Incoming:
    """A message as the library hands it on; ``beats``: the heartbeats that its caller got."""

    def __init__(self, message: dict[str, Any], client_timeout: int | None = None) -> None:
        self.message, self.client_timeout, self.ctxt, self.beats = message, client_timeout, {}, 0  # type: Any, ...

    def heartbeat(self) -> None:
        self.beats += 1


@pytest.fixture
def dispatcher() -> DirectDispatcher:
    return DirectDispatcher([Endpoint(), Probed("conductor")], ["ask"])


def test_dispatcher_when_the_caller_wants_no_heartbeats_then_no_thread_is_made(
        dispatcher: DirectDispatcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("threading.Thread")
    assert dispatcher.dispatch(Incoming({"method": "ask", "args": {"sender": "a"}})) == "asked by a"


@pytest.mark.parametrize(("message", "answer"), [
    ({"method": "ask", "args": {"sender": "a"}, "version": "1.0"}, "asked by a"),
    ({"method": "unlisted", "args": {}}, "reached by the library's path"),
    ({"method": "ping", "namespace": "baseapi", "version": "1.1", "args": {"arg": 7}},
     {"service": "conductor", "arg": 7})])
def test_dispatcher_when_an_endpoint_has_the_method_then_it_answers(
        dispatcher: DirectDispatcher, message: dict[str, Any], answer: object) -> None:
    assert dispatcher.dispatch(Incoming(message)) == answer
    assert dispatcher.dispatch(Incoming(message, client_timeout=30)) == answer


@pytest.mark.parametrize(("message", "error"), [
    ({"method": "newer", "args": {}}, oslo_messaging.NoSuchMethod),
    ({"method": "ask", "args": {}, "version": "2.0"}, oslo_messaging.UnsupportedVersion),
    ({"method": "ask", "args": {}, "namespace": "other"}, oslo_messaging.UnsupportedVersion),
    ({"method": ["ask"], "args": {}}, TypeError), ({"method": "ask", "args": "text"}, AttributeError)])
def test_dispatcher_when_no_endpoint_has_the_method_then_the_error_is_the_librarys(
        dispatcher: DirectDispatcher, message: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        dispatcher.dispatch(Incoming(message))
