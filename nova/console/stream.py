"""One side of a console: a byte stream over TCP, a unix socket or TLS, never blocking, with deadlines where it waits.

Both sides of a relay are :class:`StreamEnd`; what a browser sends and gets is in frames, and so is one of its own
(:mod:`nova.console.websocket`). Nothing here asks whether threads are green: sockets do not block, and who waits does
so in a selector.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import ssl
import struct
import time
from collections import deque
from typing import Any

from nova.console.codes import ABNORMAL, NORMAL
from nova.model.base import Json

#: A stream that can't go on now says so in one of these ways.
NOT_NOW = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE

UP_BYTES = 65536  # at most so much is taken from one side at a time where it is not read into a buffer
LINGER_S = 2.0  # for the last words to be taken, and the other side to close

#: Of what was sent to a slow peer the kernel keeps little: the rest stays with the other side, which can wait.
TCP_NOTSENT_LOWAT = getattr(socket, "TCP_NOTSENT_LOWAT", 25)

KEEPALIVE = ((socket.SO_KEEPALIVE, socket.SOL_SOCKET, 1), (socket.TCP_NODELAY, socket.IPPROTO_TCP, 1),
             (socket.TCP_KEEPIDLE, socket.IPPROTO_TCP, 60), (socket.TCP_KEEPINTVL, socket.IPPROTO_TCP, 15),
             (socket.TCP_KEEPCNT, socket.IPPROTO_TCP, 4), (socket.TCP_USER_TIMEOUT, socket.IPPROTO_TCP, 90_000),
             (TCP_NOTSENT_LOWAT, socket.IPPROTO_TCP, 256 * 1024))


class Closed(Exception):
    """The other side has closed before all was said that had to be."""


class TooSlow(Exception):
    """The other side did not do in time what it had to."""


class Violation(Exception):
    """A browser breaks the rules of its protocol: a close code of RFC 6455 and words."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(code, words)
        self.code, self.words = code, words


def selector() -> selectors.BaseSelector:
    """poll(2) needs no descriptor of its own; green threads have a selector of their own only."""
    kind: Any = getattr(selectors, "PollSelector", selectors.DefaultSelector)
    return kind()


def tune(sock: socket.socket) -> None:
    """Small answers go at once, and a peer that vanished without a word is noticed. Unix sockets need neither."""
    if sock.family in (socket.AF_INET, socket.AF_INET6):
        for option, level, value in KEEPALIVE:
            with contextlib.suppress(OSError):
                sock.setsockopt(level, option, value)


def wait(fileno: int, events: int, deadline: float) -> None:
    """Until the descriptor is ready; TooSlow after ``deadline`` (``time.monotonic``)."""
    with selector() as ready:
        ready.register(fileno, events)
        left = deadline - time.monotonic()
        if left <= 0 or not ready.select(left):
            raise TooSlow


class StreamEnd:
    """A side of a console. ``early``: bytes that came and were not taken yet. ``pings``: it answers when asked whether
    it is still there. ``heard``: when something came last, by ``time.monotonic``."""

    pings = False
    code = 0  # how it closed (RFC 6455), where its protocol has words for that

    def __init__(self, sock: Json, early: bytes = b"") -> None:
        self.sock, self.early = sock, early
        self.heard = time.monotonic()
        self._out: deque[memoryview] = deque()
        sock.setblocking(False)

    # -- what a relay asks

    def fileno(self) -> int:
        """The socket's descriptor, for selectors."""
        return self.sock.fileno()

    @property
    def secure(self) -> bool:
        """Whether TLS is spoken: then bytes may be waiting that no selector knows of."""
        return hasattr(self.sock, "pending")

    @property
    def half_closes(self) -> bool:
        """Whether one direction may end before the other: TLS sockets of Python can't."""
        return not self.secure

    def buffered(self) -> bool:
        """Whether there is more to read that no selector knows of."""
        return bool(self.early) or (self.secure and self.sock.pending() > 0)

    def read(self, limit: int = UP_BYTES) -> bytes | None:
        """At most ``limit`` bytes; empty when there are none now, None when there will be no more. OSError, Violation.
        """
        if self.early:
            data, self.early = self.early[:limit], self.early[limit:]
            return data
        return self._fetch(limit)

    def read_into(self, room: memoryview) -> int | None:
        """The same, into ``room``: the number of bytes; as much as is there, for TLS comes in pieces of 16 KB."""
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
            if not count:  # else it comes again, after what came before it
                raise
        if count:
            self.heard = time.monotonic()
        return count

    @property
    def drained(self) -> bool:
        """Whether everything has gone that was to be sent."""
        return not self._out

    def put(self, buffer: memoryview, start: int, end: int) -> None:
        """Send ``buffer[start:end]``, which stays as it is until :attr:`drained`. A protocol with a head for each piece
        writes it before ``start``."""
        self._out.append(buffer[start:end])

    def flush(self) -> int:
        """Send what can be sent now; how many bytes have gone. OSError."""
        gone = 0
        try:
            while self._out:
                sent = self.sock.send(self._out[0])
                gone += sent
                if sent < len(self._out[0]):
                    self._out[0] = self._out[0][sent:]
                else:
                    self._out.popleft()
        except NOT_NOW:
            pass
        return gone

    def ping(self) -> None:
        """Ask whether the other side is still there."""

    def end_writing(self) -> None:
        """There is nothing more to send; reading goes on."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)

    def close(self, code: int = NORMAL, words: str = "", linger_s: float = LINGER_S) -> None:
        """Forget the rest and close. Where there are words for that, ``code`` and ``words`` are said first, for which
        the other side has ``linger_s``. Harmless when repeated."""
        self._out.clear()
        self.early = b""
        with contextlib.suppress(OSError):
            if code == ABNORMAL:  # nobody takes what the kernel still has for it
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.sock.close()

    # -- what a handshake asks: whole things, until a deadline

    def some(self, limit: int, deadline: float) -> bytes:
        """At least one byte, and none beyond ``limit``. Closed, TooSlow, OSError, Violation."""
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
        """So many bytes. The same."""
        have = b""
        while len(have) < count:
            have += self.some(count - len(have), deadline)
        return have

    def say(self, data: bytes, deadline: float) -> None:
        """Send all of ``data``. TooSlow, OSError."""
        self.put(memoryview(bytearray(self.headroom) + data), self.headroom, self.headroom + len(data))
        self.drain(deadline)

    def drain(self, deadline: float) -> None:
        """Send all that is to be sent, waiting until ``deadline`` (``time.monotonic``). TooSlow; OSError."""
        while True:
            self.flush()
            if self.drained:
                return
            wait(self.fileno(), WRITE, deadline)

    #: Bytes to be left free before what :meth:`put` gets.
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
    """A plain byte stream: a hypervisor's console, or a client that speaks without frames."""


def settle(sock: Json, deadline: float) -> None:
    """Close a socket so that what was sent last arrives: a close with unread input would discard it.

    Reads away what still comes, until the other side has closed or ``deadline``.
    """
    try:
        sock.shutdown(socket.SHUT_WR)
        while time.monotonic() < deadline:
            wait(sock.fileno(), READ, deadline)
            if not sock.recv(UP_BYTES):
                return
    except (OSError, TooSlow, ValueError):
        pass
    finally:
        with contextlib.suppress(OSError):
            sock.close()
