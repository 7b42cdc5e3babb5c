"""A side of a console session: a non-blocking byte stream over TCP, a unix socket or TLS, with deadlines for its waits.

Both sides of a relay are :class:`StreamEnd`; a browser's side is framed, and has its own class
(:mod:`nova.console.websocket`). The code works with native and green threads: sockets do not block, and all waits use a
selector.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import ssl
import struct
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from nova.console.codes import ABNORMAL, NORMAL

#: Exceptions of a stream that cannot continue now.
NOT_NOW = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE

UP_BYTES = 65536  # maximum of one read from a side, without a caller's buffer
LINGER_S = 2.0  # for a close message to be read, and the other side to close

#: Keeps little unsent data of a slow peer in the kernel: the rest stays at the other side, which can wait.
TCP_NOTSENT_LOWAT = getattr(socket, "TCP_NOTSENT_LOWAT", 25)

KEEPALIVE = ((socket.SO_KEEPALIVE, socket.SOL_SOCKET, 1), (socket.TCP_NODELAY, socket.IPPROTO_TCP, 1),
             (socket.TCP_KEEPIDLE, socket.IPPROTO_TCP, 60), (socket.TCP_KEEPINTVL, socket.IPPROTO_TCP, 15),
             (socket.TCP_KEEPCNT, socket.IPPROTO_TCP, 4), (socket.TCP_USER_TIMEOUT, socket.IPPROTO_TCP, 90_000),
             (TCP_NOTSENT_LOWAT, socket.IPPROTO_TCP, 256 * 1024))


class Closed(Exception):
    """The other side closed before the exchange was complete."""


class TooSlow(Exception):
    """The other side missed a deadline."""


class Violation(Exception):
    """A browser violated its protocol: a close code of RFC 6455 and a message."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(code, words)
        self.code, self.words = code, words


def selector() -> selectors.BaseSelector:
    """Return a selector: poll(2) needs no descriptor of its own; green threads provide only their own selector."""
    kind: Any = getattr(selectors, "PollSelector", selectors.DefaultSelector)
    return kind()


def tune(sock: socket.socket) -> None:
    """Send small messages immediately, and detect a vanished peer. Unix sockets need neither."""
    if sock.family in (socket.AF_INET, socket.AF_INET6):
        for option, level, value in KEEPALIVE:
            with contextlib.suppress(OSError):
                sock.setsockopt(level, option, value)


def wait(fileno: int, events: int, deadline: float) -> None:
    """Wait until the descriptor is ready. Raises TooSlow after ``deadline`` (``time.monotonic``)."""
    with selector() as ready:
        ready.register(fileno, events)
        left = deadline - time.monotonic()
        if left <= 0 or not ready.select(left):
            raise TooSlow


class StreamEnd:
    """A side of a console. ``early``: received bytes that were not read yet. ``pings``: True if it responds to pings.
    ``heard``: time of the last received data, by ``time.monotonic``."""

    pings = False
    code = 0  # its close code (RFC 6455), if its protocol has one

    def __init__(self, sock: socket.socket, early: bytes = b"") -> None:
        self.sock, self.early = sock, early
        self.heard = time.monotonic()
        self._out: deque[memoryview] = deque()
        sock.setblocking(False)

    # -- for a relay

    def fileno(self) -> int:
        """The socket's descriptor, for selectors."""
        return self.sock.fileno()

    @property
    def secure(self) -> bool:
        """True for TLS, which may have received bytes that a selector cannot see."""
        return hasattr(self.sock, "pending")

    @property
    def half_closes(self) -> bool:
        """True if one direction can end before the other: Python's TLS sockets cannot."""
        return not self.secure

    def buffered(self) -> bool:
        """Return whether there are received bytes that a selector cannot see."""
        pending: Callable[[], int] = getattr(self.sock, "pending", lambda: 0)
        return bool(self.early) or pending() > 0

    def read(self, limit: int = UP_BYTES) -> bytes | None:
        """Return at most ``limit`` bytes; empty if none are available now, None at the end of the stream. Raises
        OSError and Violation.
        """
        if self.early:
            data, self.early = self.early[:limit], self.early[limit:]
            return data
        return self._fetch(limit)

    def read_into(self, room: memoryview) -> int | None:
        """Read into ``room``, and return the number of bytes. Reads all available bytes, because TLS delivers pieces of
        16 KB."""
        if self.early:
            data = self.read(len(room)) or b""
            room[:len(data)] = data
            return len(data)
        count = 0
        try:
            while count < len(room):
                got = self.sock.recv_into(room[count:])
                if not got:
                    return count or None
                count += got
                if not self.secure:
                    break
        except NOT_NOW:
            pass
        except OSError:
            if not count:  # else the error occurs again, after the data before it
                raise
        if count:
            self.heard = time.monotonic()
        return count

    @property
    def drained(self) -> bool:
        """True if all data were sent."""
        return not self._out

    def put(self, buffer: memoryview, start: int, end: int) -> None:
        """Send ``buffer[start:end]``, which must stay unchanged until :attr:`drained`. A protocol with a head per piece
        writes it before ``start``."""
        self._out.append(buffer[start:end])

    def flush(self) -> int:
        """Send as much as possible now, and return the number of sent bytes. Raises OSError."""
        gone = 0
        with contextlib.suppress(*NOT_NOW):
            while self._out:
                sent = self.sock.send(self._out[0])
                gone += sent
                if sent < len(self._out[0]):
                    self._out[0] = self._out[0][sent:]
                else:
                    self._out.popleft()
        return gone

    def ping(self) -> None:
        """Send a ping, to check that the other side still responds."""

    def end_writing(self) -> None:
        """End this direction; reading continues."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)

    def close(self, code: int = NORMAL, words: str = "", linger_s: float = LINGER_S) -> None:
        """Discard pending data and close. If the protocol has close messages, ``code`` and ``words`` are sent first,
        within ``linger_s``. Idempotent."""
        self._out.clear()
        self.early = b""
        with contextlib.suppress(OSError):
            if code == ABNORMAL:  # the peer does not read the data that the kernel still has for it
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.sock.close()

    # -- for a handshake: complete messages, until a deadline

    def some(self, limit: int, deadline: float) -> bytes:
        """Return at least one byte, and at most ``limit``. Raises Closed, TooSlow, OSError and Violation."""
        while time.monotonic() < deadline:
            data = self.read(limit)
            if data:
                return data
            if data is None:
                raise Closed
            if not self.buffered():
                wait(self.fileno(), READ, deadline)
        raise TooSlow

    def exactly(self, count: int, deadline: float) -> bytes:
        """Return exactly so many bytes. Raises the errors of :meth:`some`."""
        have = b""
        while len(have) < count:
            have += self.some(count - len(have), deadline)
        return have

    def say(self, data: bytes, deadline: float) -> None:
        """Send all of ``data``. Raises TooSlow and OSError."""
        self.put(memoryview(bytearray(self.headroom) + data), self.headroom, self.headroom + len(data))
        self.drain(deadline)

    def drain(self, deadline: float) -> None:
        """Send all pending data, until ``deadline`` (``time.monotonic``). Raises TooSlow and OSError."""
        while True:
            self.flush()
            if self.drained:
                return
            wait(self.fileno(), WRITE, deadline)

    #: Bytes to leave free before the data for :meth:`put`.
    headroom = 0

    def _fetch(self, limit: int) -> bytes | None:
        try:
            data = self.sock.recv(limit)
        except NOT_NOW:
            return b""
        if not data:
            return None
        self.heard = time.monotonic()
        return data


class Stream(StreamEnd):
    """A plain byte stream: a hypervisor's console, or a client without frames."""


def settle(sock: socket.socket, deadline: float) -> None:
    """Close a socket so that the last sent data arrive: a close with unread input would discard them.

    Discards further input, until the other side has closed or ``deadline``.
    """
    try:
        with contextlib.suppress(OSError, TooSlow, ValueError):
            sock.shutdown(socket.SHUT_WR)
            while time.monotonic() < deadline:
                wait(sock.fileno(), READ, deadline)
                if not sock.recv(UP_BYTES):
                    return
    finally:
        with contextlib.suppress(OSError):
            sock.close()
