"""A browser at the other end of a WebSocket (RFC 6455): websockify's handshake and frames, and buffers with bounds.

The only module that knows websockify. Its receiving and sending are not used: their buffers grow with what a hostile
browser announces, or does not read.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import struct
import time
import warnings
from typing import Any

from nova.console import frames
from nova.console.codes import ABNORMAL, NEVER_SENT, NORMAL
from nova.console.stream import LINGER_S, NOT_NOW, UP_BYTES, End, TooSlow, settle, tune

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # numpy is missed: what it would be used for is not used here
    from websockify.websocket import WebSocket

BINARY_PROTOCOL = "binary"
HANDSHAKE_S = 10.0
MAX_WORDS = 123  # bytes of a close frame's reason

#: header -> its name in a WSGI environment
HEADERS = {"upgrade": "HTTP_UPGRADE", "Sec-WebSocket-Version": "HTTP_SEC_WEBSOCKET_VERSION",
           "Sec-WebSocket-Key": "HTTP_SEC_WEBSOCKET_KEY"}


class BadHandshake(Exception):
    """The request can't become a WebSocket: words for a 400. Nothing has been sent."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


class _Protocol(WebSocket):
    """websockify's side of a server: the handshake's answer is collected, not sent."""

    _send_buffer: bytes

    def select_subprotocol(self, protocols: list[str]) -> str:
        return protocols[0]

    def _flush(self) -> None:
        return

    def answer(self, headers: dict[str, str]) -> bytes:
        self.accept(None, headers)
        said, self._send_buffer = self._send_buffer, b""
        return said

    def frame(self, opcode: int, payload: bytes) -> bytes:
        return self._encode_hybi(opcode, payload)


def check(environ: dict[str, Any]) -> dict[str, str]:
    """The headers of a handshake as websockify wants them, or BadHandshake."""
    headers = {name: environ.get(key, "") for name, key in HEADERS.items()}
    if environ.get("REQUEST_METHOD") != "GET" or environ.get("SERVER_PROTOCOL") != "HTTP/1.1":
        raise BadHandshake("A WebSocket begins with GET and HTTP/1.1.")
    if headers["upgrade"].strip().lower() != "websocket" \
            or "upgrade" not in _words(environ.get("HTTP_CONNECTION", "").lower()):
        raise BadHandshake("This is no request for a WebSocket.")
    if headers["Sec-WebSocket-Version"] != "13":
        raise BadHandshake("Sec-WebSocket-Version must be 13.")
    try:
        key = base64.b64decode(headers["Sec-WebSocket-Key"], validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != 16:
        raise BadHandshake("Sec-WebSocket-Key is malformed.")
    offered = _words(environ.get("HTTP_SEC_WEBSOCKET_PROTOCOL", ""))
    if offered and BINARY_PROTOCOL not in offered:
        raise BadHandshake("Consoles speak the subprotocol 'binary' only.")
    return {**headers, "Sec-WebSocket-Protocol": BINARY_PROTOCOL if offered else ""}


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def wanted(environ: dict[str, Any]) -> bool:
    """Whether a request asks for a WebSocket, well or badly."""
    return "websocket" in environ.get("HTTP_UPGRADE", "").lower()


class BrowserSocket(End):
    """A browser after its handshake. ``code`` and ``reason``: how it closed, when it did (1006: without a word)."""

    pings = True
    half_closes = False
    headroom = 10  # of a frame's head

    def __init__(self, sock: Any) -> None:
        super().__init__(sock)
        self.code, self.reason = 0, ""
        self.closed = False
        self._frames, self._protocol = frames.FrameReader(), _Protocol()
        self._pong: bytes | None = None
        self._ended = False
        self._raw = b""  # came with the handshake

    @classmethod
    def accept(cls, sock: Any, environ: dict[str, Any], early: bytes = b"") -> BrowserSocket:
        """Answer the handshake in ``environ`` (a WSGI environment). ``early``: what came behind it.

        BadHandshake before anything has been sent; OSError and TooSlow when the browser does not take the answer.
        """
        headers = check(environ)
        tune(sock)
        browser = cls(sock)
        browser._out.append(memoryview(browser._protocol.answer(headers)))
        browser.drain(time.monotonic() + HANDSHAKE_S)
        browser._raw = early
        return browser

    # -- receiving

    def buffered(self) -> bool:
        return bool(self._raw) or self._ended or super().buffered()  # that it has ended is still to be told

    def _fetch(self, limit: int) -> bytes | None:
        """Payload that has come, which may be more than ``limit`` by a little; the rest is kept in ``early``."""
        if self._ended:
            return None
        data, self._raw = self._raw, b""
        try:
            data = data or self.sock.recv(UP_BYTES)
        except NOT_NOW:
            return b""
        if not data:
            self._ended, self.code = True, self.code or ABNORMAL
            return None
        self.heard = time.monotonic()
        payload = self._decode(data)
        if len(payload) > limit:
            payload, self.early = payload[:limit], payload[limit:]
        return payload if payload or not self._ended else None

    def _decode(self, data: bytes) -> bytes:
        """The payload of what has come; pings are noted, a close ends it."""
        found = []
        for opcode, payload in self._frames.feed(data):
            if opcode == frames.BINARY:
                found.append(payload)
            elif opcode == frames.PING:
                self._pong = payload  # the latest alone, as the protocol allows
            elif opcode == frames.CLOSE:
                self._closed_by(payload)
                break
        self._answer_ping()
        return b"".join(found)

    def _closed_by(self, payload: bytes) -> None:
        self._ended = True
        if len(payload) < 2:
            self.code = 1005
        else:
            self.code = int.from_bytes(payload[:2], "big")
            self.reason = payload[2:].decode("utf-8", "replace")

    # -- sending

    def put(self, buffer: memoryview, start: int, end: int) -> None:
        length = end - start
        if length < 126:
            size = 2
            struct.pack_into(">BB", buffer, start - size, 0x80 | frames.BINARY, length)
        elif length < 65536:
            size = 4
            struct.pack_into(">BBH", buffer, start - size, 0x80 | frames.BINARY, 126, length)
        else:
            size = 10
            struct.pack_into(">BBQ", buffer, start - size, 0x80 | frames.BINARY, 127, length)
        self._out.append(buffer[start - size:end])

    def flush(self) -> int:
        gone = super().flush()
        if self._pong is not None and not self._out:
            self._answer_ping()
            gone += super().flush()
        return gone

    def ping(self) -> None:
        if not self._out:
            self._say(frames.PING, b"")

    def _answer_ping(self) -> None:
        """Between frames, and when the browser takes what it is sent: a flood of pings costs one answer at a time."""
        if self._pong is not None and not self._out:
            payload, self._pong = self._pong, None
            self._say(frames.PONG, payload)

    def _say(self, opcode: int, payload: bytes) -> None:
        self._out.append(memoryview(self._protocol.frame(opcode, payload)))
        with contextlib.suppress(OSError):  # reading will tell
            super().flush()

    def close(self, code: int = NORMAL, words: str = "", linger_s: float = LINGER_S) -> None:
        """Say why, unless the browser has gone or does not listen, and close; takes ``linger_s`` at most."""
        if self.closed:
            return
        self.closed = True
        deadline = time.monotonic() + linger_s
        self._pong = None
        try:
            if self.code == ABNORMAL or code in NEVER_SENT:
                return
            self.drain(deadline)  # a frame that is half out must come first
            said = struct.pack(">H", code) + _short(words)
            self._out.append(memoryview(self._protocol.frame(frames.CLOSE, said)))
            self.drain(deadline)
            settle(self.sock, deadline)
        except (OSError, TooSlow, ValueError):
            pass  # it does not listen
        finally:
            super().close(self.code if self.code == ABNORMAL else code)


def _short(words: str) -> bytes:
    """As many bytes as a close frame has room for, and no half letter."""
    return words.encode()[:MAX_WORDS].decode("utf-8", "ignore").encode()
