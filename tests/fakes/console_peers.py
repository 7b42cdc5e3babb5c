"""Small peers of a console session, correct or faulty: a browser's WebSocket, a server, and socket pairs."""

from __future__ import annotations

import base64
import contextlib
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

from nova.console import relay, websocket
from nova.console.stream import Stream, StreamEnd

TIMEOUT_S = 5.0
MASK = b"\x11\x22\x33\x44"


def tcp_pair() -> tuple[socket.socket, socket.socket]:
    """Return two connected TCP sockets: unlike those of socketpair(2), they support RST and half-close."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        one = socket.create_connection(listening.getsockname())
        other, _ = listening.accept()
    for sock in (one, other):
        sock.settimeout(TIMEOUT_S)
    return one, other


def reset(sock: socket.socket) -> None:
    """Close with RST."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def close(sock: socket.socket) -> None:
    sock.close()


@contextlib.contextmanager
def serving(handle: Callable[[socket.socket], None]) -> Iterator[int]:
    """Yield the port of a TCP server; each connection is handled in a separate thread, and then closed."""
    listening = socket.create_server(("127.0.0.1", 0))

    def run() -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = listening.accept()
                sock.settimeout(TIMEOUT_S)
                threading.Thread(target=one, args=(sock,), daemon=True).start()

    def one(sock: socket.socket) -> None:
        with contextlib.suppress(OSError), sock:
            handle(sock)

    threading.Thread(target=run, daemon=True).start()
    try:
        yield listening.getsockname()[1]
    finally:
        with contextlib.suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()


def exactly(sock: Any, count: int) -> bytes:
    """Read this many bytes from a blocking socket. Raises EOFError."""
    found = b""
    while len(found) < count:
        part = sock.recv(count - len(found))
        if not part:
            raise EOFError(found)
        found += part
    return found


def masked(data: bytes, mask: bytes = MASK) -> bytes:
    return bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))


def frame(opcode: int, payload: bytes = b"", final: bool = True, mask: bytes | None = MASK,
          length: int | None = None) -> bytes:
    """Return a browser's frame; ``length``: the announced length, which may differ from the payload's."""
    count = len(payload) if length is None else length
    bit = 0x80 if mask is not None else 0
    if count < 126:
        size = bytes((bit | count,))
    elif count < 65536:
        size = struct.pack(">BH", bit | 126, count)
    else:
        size = struct.pack(">BQ", bit | 127, count)
    return bytes(((0x80 if final else 0) | opcode,)) + size + (mask + masked(payload, mask) if mask else payload)


def handshake(**others: str) -> dict[str, Any]:
    """Return a browser's request for a WebSocket as a WSGI environment."""
    return {"REQUEST_METHOD": "GET", "SERVER_PROTOCOL": "HTTP/1.1", "HTTP_UPGRADE": "websocket",
            "HTTP_CONNECTION": "keep-alive, Upgrade", "HTTP_SEC_WEBSOCKET_VERSION": "13",
            "HTTP_SEC_WEBSOCKET_KEY": base64.b64encode(os.urandom(16)).decode(), **others}


class Browser:
    """A browser's end. ``sock`` is blocking."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._rest = b""

    def type(self, data: bytes) -> None:
        self.sock.sendall(frame(2, data))

    def frame(self) -> tuple[int, bytes]:
        """Return opcode and payload of the next frame. Raises EOFError at the end."""
        first, second = exactly(self.sock, 2)
        assert not second & 0x80, "servers do not mask"
        length = second
        if second == 126:
            length, = struct.unpack(">H", exactly(self.sock, 2))
        elif second == 127:
            length, = struct.unpack(">Q", exactly(self.sock, 8))
        return first & 0x0F, exactly(self.sock, length)

    def see(self, count: int) -> bytes:
        """Read this many bytes of the console's output, from any number of frames."""
        found, self._rest = self._rest, b""
        while len(found) < count:
            opcode, payload = self.frame()
            assert opcode in (2, 9), (opcode, payload)
            if opcode == 9:
                self.sock.sendall(frame(10, payload))
            else:
                found += payload
        self._rest = found[count:]
        return found[:count]

    def last_words(self) -> tuple[int, str]:
        """Return (code, reason) of the close frame, skipping other frames. Raises EOFError if there is none."""
        while True:
            opcode, payload = self.frame()
            if opcode == 8:
                return int.from_bytes(payload[:2], "big"), payload[2:].decode()


def browser(**headers: str) -> tuple[Browser, websocket.BrowserSocket]:
    """Return a browser and the proxy's side of its WebSocket, after the handshake."""
    mine, theirs = tcp_pair()
    front = websocket.BrowserSocket.accept(theirs, handshake(**headers))
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += exactly(mine, 1)
    assert head.startswith(b"HTTP/1.1 101 ")
    return Browser(mine), front


class Session:
    """A running relay: ``browser`` or ``viewer`` on one side, ``console`` on the other, and its result at the end."""

    def __init__(self, times: relay.Times | None = None, framed: bool = True) -> None:
        front: StreamEnd
        if framed:
            self.browser, front = browser()
        else:
            self.viewer, theirs = tcp_pair()
            front = Stream(theirs)
        self.console, back = tcp_pair()
        self.front, self.target = front, Stream(back)
        self.control = relay.Control()
        self.result: Future[relay.Ending] = Future()
        self.thread = threading.Thread(target=self._run, args=(times or relay.Times(),), daemon=True)
        self.thread.start()

    def _run(self, times: relay.Times) -> None:
        try:
            self.result.set_result(relay.carry(self.front, self.target, times, self.control))
        except BaseException as error:
            self.result.set_exception(error)

    def ending(self) -> relay.Ending:
        return self.result.result(TIMEOUT_S)

    def close(self) -> None:
        self.control.end(1001, "the test is over")
        for sock in (self.console, self.browser.sock if hasattr(self, "browser") else self.viewer):
            sock.close()
        self.thread.join(TIMEOUT_S)


def buffered_bytes(end: StreamEnd) -> int:
    """Return the number of bytes that a side of a session holds in memory."""
    return len(end.early) + sum(len(piece) for piece in end._out)
