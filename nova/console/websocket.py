"""A browser's WebSocket (RFC 6455): wsproto's handshake and frames over a socket of the proxy.

wsproto does no I/O: this module and :mod:`nova.console.frames` limit the waits, and the data for a browser that does
not read.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import socket
import struct
import time
from wsgiref.types import WSGIEnvironment

from wsproto import ConnectionType, WSConnection
from wsproto.connection import Connection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Event, Ping, Pong

from nova.console import frames
from nova.console.codes import ABNORMAL, NEVER_SENT, NORMAL
from nova.console.stream import LINGER_S, NOT_NOW, UP_BYTES, StreamEnd, TooSlow, settle, tune

BINARY_PROTOCOL = "binary"
HANDSHAKE_S = 10.0
FINAL_BINARY = 0x82  # a frame with a complete binary message


class BadHandshake(Exception):
    """The request cannot become a WebSocket: a message for a 400 response. No data were sent."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


def check(environ: WSGIEnvironment) -> str:
    """Return the chosen subprotocol, empty for none. Raises BadHandshake, with a message for manual tests."""
    if environ.get("REQUEST_METHOD") != "GET" or environ.get("SERVER_PROTOCOL") != "HTTP/1.1":
        raise BadHandshake("A WebSocket begins with GET and HTTP/1.1.")
    if environ.get("HTTP_UPGRADE", "").strip().lower() != "websocket" \
            or "upgrade" not in _words(environ.get("HTTP_CONNECTION", "").lower()):
        raise BadHandshake("This is not a request for a WebSocket.")
    if environ.get("HTTP_SEC_WEBSOCKET_VERSION") != "13":
        raise BadHandshake("Sec-WebSocket-Version must be 13.")
    key = b""
    with contextlib.suppress(binascii.Error, ValueError):
        key = base64.b64decode(environ.get("HTTP_SEC_WEBSOCKET_KEY", ""), validate=True)
    if len(key) != 16:
        raise BadHandshake("Sec-WebSocket-Key is malformed.")
    offered = _words(environ.get("HTTP_SEC_WEBSOCKET_PROTOCOL", ""))
    if offered and BINARY_PROTOCOL not in offered:
        raise BadHandshake("Consoles support only the subprotocol 'binary'.")
    return BINARY_PROTOCOL if offered else ""


def _answer(environ: WSGIEnvironment, bounds: frames.FrameBounds) -> tuple[bytes, Connection]:
    """Return the handshake's response to a validated request, and the connection after it. Raises BadHandshake."""
    protocol = check(environ)
    headers = [("Host", "console"), ("Upgrade", "websocket"), ("Connection", "Upgrade"),
               ("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", environ["HTTP_SEC_WEBSOCKET_KEY"])]
    if protocol:
        headers.append(("Sec-WebSocket-Protocol", protocol))
    opening = WSConnection(ConnectionType.SERVER)
    opening.initiate_upgrade_connection([(name.encode(), value.encode()) for name, value in headers], "/")
    answer = opening.send(AcceptConnection(subprotocol=protocol or None, extensions=[bounds]))
    assert opening.connection is not None, "the request was accepted"
    return answer, opening.connection


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def wanted(environ: WSGIEnvironment) -> bool:
    """Return whether a request asks for a WebSocket, whether it is well-formed or not."""
    return "websocket" in environ.get("HTTP_UPGRADE", "").lower()


class BrowserSocket(StreamEnd):
    """A browser after its handshake. ``code`` and ``reason``: of its close message, if any (1006: closed without
    one)."""

    pings = True
    half_closes = False
    headroom = 10  # of a frame's head

    def __init__(self, sock: socket.socket, environ: WSGIEnvironment) -> None:
        """Prepare the response to the handshake in ``environ``, without sending it. Raises BadHandshake."""
        self._bounds = frames.FrameBounds()
        answer, self._connection = _answer(environ, self._bounds)
        super().__init__(sock)
        self.code, self.reason = 0, ""
        self.closed = False
        self._pong: bytes | None = None
        self._ended = False
        self._raw = b""  # received with the handshake
        self._out.append(memoryview(answer))

    @classmethod
    def accept(cls, sock: socket.socket, environ: WSGIEnvironment, early: bytes = b"") -> BrowserSocket:
        """Send the response to the handshake in ``environ`` (a WSGI environment). ``early``: bytes received after it.

        Raises BadHandshake before any data are sent; OSError and TooSlow if the browser does not read the response.
        """
        browser = cls(sock, environ)
        tune(sock)
        browser.drain(time.monotonic() + HANDSHAKE_S)
        browser._raw = early
        return browser

    # -- receiving

    def buffered(self) -> bool:
        return bool(self._raw) or self._ended or super().buffered()  # the end itself must still be reported

    def _fetch(self, limit: int) -> bytes | None:
        """Return received payload, which may exceed ``limit`` a little; the rest is stored in ``early``."""
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
        """Return the payload of received bytes; pings are recorded, and a close ends the stream. Raises Violation."""
        found = []
        for event in frames.received(self._connection, self._bounds, data):
            if isinstance(event, BytesMessage):
                found.append(event.data)
            elif isinstance(event, Ping):
                self._pong = event.payload  # only the latest, as the protocol permits
            elif isinstance(event, CloseConnection):
                self._ended, self.code, self.reason = True, int(event.code), event.reason or ""
                self._pong = None  # after a close, only a close is sent
        self._answer_ping()
        return b"".join(found)

    # -- sending

    def put(self, buffer: memoryview, start: int, end: int) -> None:
        """Write the frame's head in front of the data, in place. wsproto would copy a screen update four times, and its
        checks are unnecessary for the proxy's own data."""
        length = end - start
        if length < 126:
            size = 2
            struct.pack_into(">BB", buffer, start - size, FINAL_BINARY, length)
        elif length < 65536:
            size = 4
            struct.pack_into(">BBH", buffer, start - size, FINAL_BINARY, 126, length)
        else:
            size = 10
            struct.pack_into(">BBQ", buffer, start - size, FINAL_BINARY, 127, length)
        self._out.append(buffer[start - size:end])

    def flush(self) -> int:
        gone = super().flush()
        if self._pong is not None and not self._out:
            self._answer_ping()
            gone += super().flush()
        return gone

    def ping(self) -> None:
        if not self._out:
            self._say(Ping())

    def _answer_ping(self) -> None:
        """Send a pong between frames, while the browser reads: a flood of pings costs one response at a time."""
        if self._pong is not None and not self._out:
            payload, self._pong = self._pong, None
            self._say(Pong(payload))

    def _say(self, event: Event) -> None:
        self._out.append(memoryview(self._connection.send(event)))
        with contextlib.suppress(OSError):  # the next read reports the error
            super().flush()

    def close(self, code: int = NORMAL, words: str = "", linger_s: float = LINGER_S) -> None:
        """Send the reason, unless the browser has disconnected or does not read, and close; takes at most
        ``linger_s``."""
        if self.closed:
            return
        self.closed = True
        deadline = time.monotonic() + linger_s
        self._pong = None
        try:
            with contextlib.suppress(OSError, TooSlow, ValueError):  # the browser does not read
                if self.code == ABNORMAL or code in NEVER_SENT:
                    return
                self.drain(deadline)  # a partly sent frame must be completed first
                self._out.append(memoryview(self._connection.send(CloseConnection(code, words))))
                self.drain(deadline)
                settle(self.sock, deadline)
        finally:
            super().close(self.code if self.code == ABNORMAL else code)
