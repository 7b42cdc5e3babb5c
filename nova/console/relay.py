"""The relay of an open console session: bytes in both directions until the session ends.

Each session has one thread (native or green). No data are read from a side before the other has taken the data before,
so a session holds at most one buffer per direction, and an idle session none.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from selectors import BaseSelector
from typing import NamedTuple

from nova.console.codes import ABNORMAL, BACK_END, NORMAL, TIMED_OUT
from nova.console.stream import LINGER_S, READ, UP_BYTES, WRITE, StreamEnd, Violation, selector

DOWN_BYTES = 128 * 1024  # maximum of one piece from a console to its browser
HEADROOM = 16  # before it, for a frame's head
SPARE_BUFFERS = 8

CONSOLE_CLOSED = "The server's console has closed: it was stopped, moved, or its host restarted."
CONSOLE_STUCK = "The server's console accepts no more input."
BROWSER_CLOSED = "The browser has closed the console."
BROWSER_GONE = "The browser disconnected without closing the console."
BROWSER_SILENT = "The browser does not respond any more."
BROWSER_STUCK = "The browser does not read the console's output any more."
IDLE = "Closed because this console was idle for {0}."
TOTAL = "Closed because a console may be open for at most {0}."


class Times(NamedTuple):
    """Time limits in seconds; 0 means none. ``idle_s``: without data in either direction. ``total_s``: since the
    session began. ``ping_s``: interval of pings to a silent browser, and its time to respond. ``stall_s``: how long a
    side may leave sent data unread. ``linger_s``: for the delivery of a close message; never 0."""

    idle_s: float = 3600
    total_s: float = 0
    ping_s: float = 30
    stall_s: float = 90
    linger_s: float = LINGER_S


class Ending(NamedTuple):
    """The end of a session: a WebSocket close code and a message for the user; bytes to and from the browser."""

    code: int
    words: str
    sent: int = 0
    received: int = 0
    seconds: float = 0.0


class Control:
    """A handle to end a session from another thread, also before it has begun. Of repeated calls the first one
    counts."""

    def __init__(self) -> None:
        self.ending: Ending | None = None
        self._lock = threading.Lock()
        self._bell: int | None = None
        self._hook: Callable[[Ending], None] | None = None

    def end(self, code: int, words: str) -> None:
        """End the session: ``code`` is a close code of RFC 6455, ``words`` its reason. Callable from any thread; never
        blocks."""
        with self._lock:
            if self.ending is None:
                self.ending = Ending(code, words)
            if self._bell is not None:
                os.eventfd_write(self._bell, 1)
            hook, self._hook = self._hook, None
        if hook is not None:
            hook(self.ending)

    def meanwhile(self, hook: Callable[[Ending], None] | None) -> None:
        """Set the function that :meth:`end` calls, in its thread, while a session is being opened and does not poll the
        descriptor yet. It must not block. None: removes it. The caller checks :attr:`ending` afterwards.
        """
        with self._lock:
            self._hook = hook

    def attach(self) -> int:
        """Return a descriptor that becomes readable when the session must end; immediately if it must end already."""
        with self._lock:
            self._bell = os.eventfd(int(self.ending is not None), os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            return self._bell

    def detach(self) -> None:
        """Close the descriptor of :meth:`attach`. May be called twice."""
        with self._lock:
            bell, self._bell = self._bell, None
            if bell is not None:
                os.close(bell)


def carry(front: StreamEnd, target: StreamEnd, times: Times, control: Control) -> Ending:
    """Relay bytes until the session ends. Then closes both sides, the browser's with the ending's code and message."""
    session = _Session(front, target, times, control)
    ending = Ending(BACK_END, CONSOLE_CLOSED)
    try:
        ending = session.run()
    finally:
        target.close()
        front.close(ending.code, ending.words, times.linger_s)
        session.down.release()
    return ending._replace(sent=session.down.bytes, received=session.up.bytes,
                           seconds=time.monotonic() - session.began)


class _Buffers:
    """Buffers for reuse: only sessions that are sending output use one."""

    def __init__(self) -> None:
        self._spare: list[bytearray] = []

    def take(self) -> bytearray:
        with contextlib.suppress(IndexError):
            return self._spare.pop()
        return bytearray(HEADROOM + DOWN_BYTES)

    def give(self, buffer: bytearray) -> None:
        if len(self._spare) < SPARE_BUFFERS:
            self._spare.append(buffer)


_BUFFERS = _Buffers()


class _Way:
    """A direction of a relayed session. ``open``: the source may send more; ``broken``: it failed. ``lost``: the sink
    is unreachable. ``ended``: the sink knows that the data are complete."""

    def __init__(self, source: StreamEnd, sink: StreamEnd) -> None:
        self.source, self.sink = source, sink
        self.open, self.broken, self.lost, self.ended = True, False, False, False
        self.bytes = 0
        self.moved = self.wrote = self._progress = time.monotonic()

    def step(self, now: float) -> None:
        """Read one piece after the last one was sent, and send as much as possible. Raises Violation."""
        if not self.flush(now) or not self.open:
            return
        try:
            count = self._take()
        except OSError:
            count, self.broken = None, True
        if count is None:
            self.open = False
        elif count:
            self.bytes += count
            self.moved = now
            self.flush(now)

    def flush(self, now: float) -> bool:
        """Send as much as possible, and return whether all data were sent."""
        try:
            if self.sink.flush():
                self.wrote = self._progress = now
        except OSError:
            self.lost = True
            return False
        return self.sink.drained

    def stuck(self, now: float, stall_s: float) -> bool:
        """Return whether the sink has taken none of its pending data for so long."""
        if self.sink.drained:
            self._progress = now
        return now - self._progress > stall_s

    @property
    def ready(self) -> bool:
        """True if new data can be read immediately."""
        return self.open and self.sink.drained

    def _take(self) -> int | None:
        data = self.source.read(UP_BYTES)
        if data:
            self.sink.put(memoryview(data), 0, len(data))
        return None if data is None else len(data)


class _Down(_Way):
    """The direction from the console to the browser: screen updates, in large pieces, sent from the receive buffer."""

    def __init__(self, source: StreamEnd, sink: StreamEnd) -> None:
        super().__init__(source, sink)
        self._buffer: bytearray | None = None

    def flush(self, now: float) -> bool:
        gone = super().flush(now)
        if gone:
            self.release()
        return gone

    def release(self) -> None:
        """Return the buffer to the pool, after all of its data were sent."""
        if self._buffer is not None:
            _BUFFERS.give(self._buffer)
            self._buffer = None

    def _take(self) -> int | None:
        self._buffer = _BUFFERS.take()
        room = memoryview(self._buffer)
        count = None
        try:
            count = self.source.read_into(room[HEADROOM:])
        finally:
            if not count:
                self.release()
        if count:
            self.sink.put(room, HEADROOM, HEADROOM + count)
        return count


class _Session:
    """A relayed console session. "Down" is from the console to the browser, "up" is the user's input."""

    def __init__(self, front: StreamEnd, target: StreamEnd, times: Times, control: Control) -> None:
        self.front, self.target, self.times, self.control = front, target, times, control
        self.down, self.up = _Down(target, front), _Way(front, target)
        self.began = time.monotonic()
        self.asked: float | None = None  # time of the unanswered ping to the browser
        self._left: float | None = None  # time when the browser had closed
        self._first: Ending | None = None  # of the direction that ended first
        self._interest: dict[int, int] = {}

    def run(self) -> Ending:
        bell = self.control.attach()
        try:
            with selector() as ready:
                ready.register(bell, READ)
                return self._loop(ready)
        except Violation as wrong:
            return Ending(wrong.code, wrong.words)
        finally:
            self.control.detach()

    def _loop(self, ready: BaseSelector) -> Ending:
        while True:
            now = time.monotonic()
            ending = self.control.ending or self._late(now)
            if ending is None:
                self.up.step(now)
                self.down.step(now)
                ending = self._over(now)
            if ending is not None:
                return ending
            self._watch(ready)
            ready.select(self._patience(now))

    # -- endings

    def _late(self, now: float) -> Ending | None:
        """Return the ending for an expired time limit; None if there is none."""
        idle_s, total_s, ping_s, stall_s, _ = self.times
        if total_s and now - self.began >= total_s:
            return Ending(TIMED_OUT, TOTAL.format(_in_words(total_s)))
        if idle_s and now - max(self.up.moved, self.down.moved) >= idle_s:
            return Ending(TIMED_OUT, IDLE.format(_in_words(idle_s)))
        if stall_s and self.down.stuck(now, stall_s):
            return Ending(ABNORMAL, BROWSER_STUCK)
        if stall_s and self.up.stuck(now, stall_s):
            return Ending(BACK_END, CONSOLE_STUCK)
        if ping_s and self.front.pings and self.up.ready:
            return self._ask(now, ping_s)
        return None

    def _ask(self, now: float, ping_s: float) -> Ending | None:
        """Ping a browser that was silent for a while. Pending data are sent before the ping, so its time to respond
        begins after them."""
        if self.asked is not None and self.front.heard >= self.asked:
            self.asked = None
        if self.asked is None:
            if now - self.front.heard >= ping_s:
                self.asked = now
                self.front.ping()
        elif now - max(self.asked, self.down.wrote) >= ping_s:
            return Ending(ABNORMAL, BROWSER_SILENT)
        return None

    def _over(self, now: float) -> Ending | None:
        """Return the ending if a side has closed or is unreachable; else None."""
        if self.down.lost:
            return Ending(ABNORMAL, BROWSER_GONE)
        if self.up.lost:
            return Ending(BACK_END, CONSOLE_CLOSED)
        if not self.up.open and self._typed_out(now):
            self._half(self.up, self._browser_left())
        if not self.down.open and self.front.drained:
            self._half(self.down, Ending(BACK_END, CONSOLE_CLOSED))
        over = self._first is not None and (self._whole() or (self.up.ended and self.down.ended))
        return self._first if over else None

    def _whole(self) -> bool:
        """Return whether the session ends with its first direction: not both sides can continue with the other one."""
        both = self.front.half_closes and self.target.half_closes
        return not both or self.up.broken or self.down.broken

    def _typed_out(self, now: float) -> bool:
        """Return whether the last input has reached the guest, or its time is over."""
        self._left = self._left or now
        return self.target.drained or (self._whole() and now - self._left >= self.times.linger_s)

    def _half(self, way: _Way, ending: Ending) -> None:
        """End one direction, after all of its data were sent."""
        if not way.ended:
            way.ended = True
            self._first = self._first or ending
            if not self._whole():
                way.sink.end_writing()

    def _browser_left(self) -> Ending:
        gone = self.up.broken or self.front.code == ABNORMAL
        return Ending(ABNORMAL, BROWSER_GONE) if gone else Ending(NORMAL, BROWSER_CLOSED)

    # -- polling

    def _watch(self, ready: BaseSelector) -> None:
        for end, source, sink in ((self.front, self.up, self.down), (self.target, self.down, self.up)):
            wanted = (READ if source.ready else 0) | (0 if sink.sink.drained else WRITE)
            fileno = end.fileno()
            known = self._interest.get(fileno, 0)
            if wanted == known:
                continue
            if not wanted:
                ready.unregister(fileno)
            elif known:
                ready.modify(fileno, wanted)
            else:
                ready.register(fileno, wanted)
            self._interest[fileno] = wanted

    def _patience(self, now: float) -> float | None:
        """Return the seconds until the next scheduled action; None without one."""
        if (self.up.ready and self.front.buffered()) or (self.down.ready and self.target.buffered()):
            return 0
        idle_s, total_s, ping_s, stall_s, _ = self.times
        due = []
        if idle_s:
            due.append(max(self.up.moved, self.down.moved) + idle_s)
        if total_s:
            due.append(self.began + total_s)
        if ping_s and self.front.pings:
            due.append(now + ping_s if self.asked or now - self.front.heard >= ping_s else self.front.heard + ping_s)
        if stall_s and not (self.front.drained and self.target.drained):
            due.append(now + stall_s)
        if self._left is not None and not self.up.ended:
            due.append(now + self.times.linger_s)
        return max(0.0, min(due) - now) + 0.001 if due else None


def _in_words(seconds: float) -> str:
    for size, name in ((3600, "hour"), (60, "minute")):
        if seconds >= size:
            count = round(seconds / size)
            return f"{count} {name}{'s' * (count != 1)}"
    return f"{seconds:g} seconds"
