"""What is much too large is an error for who sent it; the server goes on, and logs little of it (OSSA-2013-026)."""

from __future__ import annotations

import base64
import logging
import zlib
from collections.abc import Callable

import pytest

from nova.rpc import codec
from nova.rpc.interface import Contract, call
from nova.rpc.server import Receiver

HUGE = 72 << 20
#: Made when they are wanted: they are as large as they say.
PAYLOADS: dict[str, Callable[[], bytes]] = {
    "zeros": lambda: b"r" + b"\0" * HUGE,
    "a list that says it is long": lambda: b"r\xdd\xff\xff\xff\xff" + b"\x91" * HUGE,
    "a text that says it is long": lambda: b"r\xdb\xff\xff\xff\xff" + b"x" * HUGE,
    "a bomb": lambda: b"z" + zlib.compress(b"\0" * HUGE, 9)}


class EchoRPC(Contract):
    topic, version = "echo", "1.0"

    @call()
    def echo(self, text: str) -> str:
        """The same."""


class Echo:
    def echo(self, text: str) -> str:
        return text


def answered(receiver: Receiver, body: str) -> codec.CallReply:
    return codec.unpack(codec.from_text(receiver.handle("echo", {"contract": "1.0", "body": body})), codec.CallReply)


@pytest.mark.parametrize("what", PAYLOADS)
def test_server_when_a_payload_is_huge_then_an_error_in_few_words_and_it_goes_on(
        what: str, caplog: pytest.LogCaptureFixture) -> None:
    receiver = Receiver(EchoRPC, Echo())
    with caplog.at_level(logging.DEBUG):
        answer = answered(receiver, base64.b64encode(PAYLOADS[what]()).decode())
    assert answer.error is not None and answer.error[1] == "rpc.malformed" and len(answer.error[2]) < 500
    assert len(caplog.text) < 2000
    assert answered(receiver, "").error is not None, "it answers the next one"
