"""A relay between two connections, one of which is TLS, in one thread."""

from __future__ import annotations

import select
import socket
import ssl
from typing import Protocol

from nova.migrationproxy.calls import Passed

CHUNK = 1 << 18
RECORD = 1 << 14  # maximum of one read from TLS


class StreamFilter(Protocol):
    """Filter of the data in one direction."""

    def pass_(self, data: bytes) -> Passed:
        """Filter ``data``, a piece of the stream of any length. Raises wire.BadMessage and references.Refused: the
        connection must end."""
        ...


class _End:
    """An end of a relay: a non-blocking socket, and the data to write to it."""

    def __init__(self, connection: socket.socket, filter_: StreamFilter | None) -> None:
        connection.setblocking(False)
        self.socket, self._filter = connection, filter_
        self._out: list[memoryview] = []
        self.waits_to_read = self.waits_to_write = False
        self.ended = False

    @property
    def full(self) -> bool:
        """True if data wait to be written."""
        return bool(self._out)

    def may_be_read(self, other: _End) -> bool:
        """Return whether the next data can be forwarded; a filter's refusals go back."""
        return not self.ended and not other.full and (self._filter is None or not self.full)

    def put(self, data: bytes) -> None:
        """Queue data to write."""
        if data:
            self._out.append(memoryview(data))

    def take(self, other: _End) -> None:
        """Read available data, and forward them."""
        data = self._read()
        if self._filter is None:
            other.put(data)
        elif data:
            passed = self._filter.pass_(data)
            other.put(passed.onward)
            self.put(passed.back)

    def _read(self) -> bytes:
        """Return at most about one chunk; TLS returns it record by record."""
        found: list[bytes] = []
        self.waits_to_read = self.waits_to_write = False
        while sum(map(len, found)) < CHUNK and not self.ended:
            try:
                part = self.socket.recv(CHUNK)
            except (ssl.SSLWantReadError, BlockingIOError):
                break
            except ssl.SSLWantWriteError:
                self.waits_to_write = True
                break
            except ssl.SSLEOFError:
                part = b""
            self.ended = not part
            found.append(part)
            if len(part) > RECORD:  # not TLS: these were all available data
                break
        return b"".join(found)

    def flush(self) -> None:
        """Write as much as the socket accepts."""
        while self._out:
            try:
                sent = self.socket.send(self._out[0])
            except (ssl.SSLWantWriteError, BlockingIOError):
                return
            except ssl.SSLWantReadError:
                self.waits_to_read = True
                return
            self._out[0] = self._out[0][sent:]
            if not self._out[0]:
                del self._out[0]

    def pending(self) -> bool:
        """Return whether TLS has buffered bytes that poll(2) cannot see."""
        return isinstance(self.socket, ssl.SSLSocket) and self.socket.pending() > 0

    def events(self, may_read: bool) -> int:
        """Return the events to wait for with poll(2)."""
        reads = may_read and not self.ended or self.waits_to_read
        return (select.POLLIN if reads else 0) | (select.POLLOUT if self._out or self.waits_to_write else 0)


def relay(a: socket.socket, b: socket.socket, towards_b: StreamFilter | None = None) -> None:
    """Relay in both directions until one ends and all of its data have reached the other. ``towards_b`` filters the
    data from ``a``. Runs in one thread, because a TLS connection cannot be read and written concurrently."""
    ends = _End(a, towards_b), _End(b, None)
    poll = select.poll()
    for end in ends:
        poll.register(end.socket, 0)
    while True:
        free = {end: end.may_be_read(other) for end, other in (ends, ends[::-1])}
        for end in ends:
            poll.modify(end.socket, end.events(may_read=free[end]))
        waiting = not any(free[end] and end.pending() for end in ends)
        ready = dict(poll.poll() if waiting else [])
        for end, other in (ends, ends[::-1]):
            if free[end] and (end.pending() or ready.get(end.socket.fileno(), 0)):
                end.take(other)
        for end, other in (ends, ends[::-1]):
            end.flush()
            gone = ready.get(end.socket.fileno(), 0) & (select.POLLHUP | select.POLLERR)
            if (other.ended and not end.full) or (end.full and gone):
                return
