"""Two connections joined, one of them TLS, in one thread."""

from __future__ import annotations

import select
import socket
import ssl
from typing import Protocol

from nova.migrationproxy.calls import Passed

CHUNK = 1 << 18
RECORD = 1 << 14  # the most that TLS hands out at once


class StreamFilter(Protocol):
    """Decides what of a stream goes on."""

    def pass_(self, data: bytes) -> Passed:
        """``data`` as it came, cut anywhere. wire.BadMessage, references.Refused: the connection is to end."""
        ...


class _End:
    """One end of a relay: a socket that does not block, and what is still to be written to it."""

    def __init__(self, connection: socket.socket, filter_: StreamFilter | None) -> None:
        connection.setblocking(False)
        self.socket, self._filter = connection, filter_
        self._out: list[memoryview] = []
        self.waits_to_read = self.waits_to_write = False
        self.ended = False

    @property
    def full(self) -> bool:
        """Whether something waits to be written."""
        return bool(self._out)

    def may_be_read(self, other: _End) -> bool:
        """What is read has a place to go to; a filter's refusals go back."""
        return not self.ended and not other.full and (self._filter is None or not self.full)

    def put(self, data: bytes) -> None:
        """To be written."""
        if data:
            self._out.append(memoryview(data))

    def take(self, other: _End) -> None:
        """Read what there is, and hand it on."""
        data = self._read()
        if self._filter is None:
            other.put(data)
        elif data:
            passed = self._filter.pass_(data)
            other.put(passed.onward)
            self.put(passed.back)

    def _read(self) -> bytes:
        """Up to a chunk; TLS gives it out by records."""
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
            if len(part) > RECORD:  # no TLS: that was all there is
                break
        return b"".join(found)

    def flush(self) -> None:
        """Write what the socket takes."""
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
        """Whether TLS holds bytes that the socket no longer shows."""
        return isinstance(self.socket, ssl.SSLSocket) and self.socket.pending() > 0

    def events(self, may_read: bool) -> int:
        """What poll(2) shall wait for."""
        reads = may_read and not self.ended or self.waits_to_read
        return (select.POLLIN if reads else 0) | (select.POLLOUT if self._out or self.waits_to_write else 0)


def relay(a: socket.socket, b: socket.socket, towards_b: StreamFilter | None = None) -> None:
    """Both ways until one of them ends, and all of it has reached the other. ``towards_b`` sees what ``a`` says. One
    thread: a TLS connection cannot be read and written at the same time."""
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
