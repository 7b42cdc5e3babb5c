"""What a console's session is once it stands: bytes carried both ways until something ends it.

One thread (native or green) a session. Nothing is read from a side before the other has taken what came before, so a
session holds at most one buffer each way, and an idle one none.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from selectors import BaseSelector
from typing import NamedTuple

from nova.console.codes import ABNORMAL, BACK_END, NORMAL, TIMED_OUT
from nova.console.stream import LINGER_S, READ, UP_BYTES, WRITE, StreamEnd, Violation, selector

DOWN_BYTES = 128 * 1024  # carried at a time from a console to its browser
HEADROOM = 16  # before it, for a frame's head
SPARE_BUFFERS = 8

CONSOLE_CLOSED = "The server's console has closed: it was stopped, moved, or its host restarted."
CONSOLE_STUCK = "The server's console takes no more input."
BROWSER_CLOSED = "The browser has closed the console."
BROWSER_GONE = "The browser has gone without a word."
BROWSER_SILENT = "The browser no longer answers."
BROWSER_STUCK = "The browser no longer takes what the console shows."
IDLE = "Closed because nothing has moved on this console for {0}."
TOTAL = "Closed because a console may be open for {0} only."


class Times(NamedTuple):
    """Seconds; 0 is never. ``idle_s``: nothing moved either way. ``total_s``: since the session began. ``ping_s``: how
    often a browser that says nothing is asked whether it is there, and how long it has to answer. ``stall_s``: how long
    a side may leave untaken what it was sent. ``linger_s``: for last words to be taken; never 0."""

    idle_s: float = 3600
    total_s: float = 0
    ping_s: float = 30
    stall_s: float = 90
    linger_s: float = LINGER_S


class Ending(NamedTuple):
    """How a session ended: a WebSocket close code and words for the user; bytes to and from the browser."""

    code: int
    words: str
    sent: int = 0
    received: int = 0
    seconds: float = 0.0


class Control:
    """Lets another thread end a session, also before it has begun. May be asked any number of times: the first counts.
    """

    def __init__(self) -> None:
        self.ending: Ending | None = None
        self._lock = threading.Lock()
        self._bell: int | None = None
        self._hook: Callable[[Ending], None] | None = None

    def end(self, code: int, words: str) -> None:
        """End the session: ``code`` is a close code of RFC 6455, ``words`` its reason. From any thread; never waits."""
        with self._lock:
            if self.ending is None:
                self.ending = Ending(code, words)
            if self._bell is not None:
                os.eventfd_write(self._bell, 1)
            hook, self._hook = self._hook, None
        if hook is not None:
            hook(self.ending)

    def meanwhile(self, hook: Callable[[Ending], None] | None) -> None:
        """What :meth:`end` does, in its thread, while nobody listens to the bell: a session that only opens waits for
        others. It must not wait itself. None: it is done with that. Who calls this looks at :attr:`ending` after it.
        """
        with self._lock:
            self._hook = hook

    def attach(self) -> int:
        """A descriptor that becomes readable when the session shall end; at once when it shall already."""
        with self._lock:
            self._bell = os.eventfd(int(self.ending is not None), os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            return self._bell

    def detach(self) -> None:
        """Close the descriptor that :meth:`attach` gave. May be called twice."""
        with self._lock:
            bell, self._bell = self._bell, None
            if bell is not None:
                os.close(bell)


def carry(front: StreamEnd, target: StreamEnd, times: Times, control: Control) -> Ending:
    """Carry bytes until the session ends; both sides are closed then, the browser with the ending's code and words."""
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
    """Buffers that wait for their next use: as many are in use as sessions show something at a time."""

    def __init__(self) -> None:
        self._spare: list[bytearray] = []

    def take(self) -> bytearray:
        try:
            return self._spare.pop()
        except IndexError:
            return bytearray(HEADROOM + DOWN_BYTES)

    def give(self, buffer: bytearray) -> None:
        if len(self._spare) < SPARE_BUFFERS:
            self._spare.append(buffer)


_BUFFERS = _Buffers()


class _Way:
    """One direction. ``open``: the source may send more; ``broken``: it did not end but fail. ``lost``: the sink can't
    be sent anything any more. ``ended``: the sink knows that there is no more.
    """

    def __init__(self, source: StreamEnd, sink: StreamEnd) -> None:
        self.source, self.sink = source, sink
        self.open, self.broken, self.lost, self.ended = True, False, False, False
        self.bytes = 0
        self.moved = self.wrote = self._progress = time.monotonic()

    def step(self, now: float) -> None:
        """Take one piece when the last one has gone, and send of it what goes. Violation."""
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
        """Whether nothing is left to be sent."""
        try:
            if self.sink.flush():
                self.wrote = self._progress = now
        except OSError:
            self.lost = True
            return False
        return self.sink.drained

    def stuck(self, now: float, stall_s: float) -> bool:
        """Whether the sink has taken nothing for so long of what it is to be sent."""
        if self.sink.drained:
            self._progress = now
        return now - self._progress > stall_s

    @property
    def ready(self) -> bool:
        """Whether something is to be taken as soon as it comes."""
        return self.open and self.sink.drained

    def _take(self) -> int | None:
        data = self.source.read(UP_BYTES)
        if data:
            self.sink.put(memoryview(data), 0, len(data))
        return None if data is None else len(data)


class _Down(_Way):
    """From the console to the browser: pictures, in large pieces, received where they are sent from."""

    def __init__(self, source: StreamEnd, sink: StreamEnd) -> None:
        super().__init__(source, sink)
        self._buffer: bytearray | None = None

    def flush(self, now: float) -> bool:
        gone = super().flush(now)
        if gone:
            self.release()
        return gone

    def release(self) -> None:
        """Give back the buffer, from which nothing is to be sent any more."""
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
    """"Down" is from the console to the browser, "up" is what the user does."""

    def __init__(self, front: StreamEnd, target: StreamEnd, times: Times, control: Control) -> None:
        self.front, self.target, self.times, self.control = front, target, times, control
        self.down, self.up = _Down(target, front), _Way(front, target)
        self.began = time.monotonic()
        self.asked: float | None = None  # when the browser was asked whether it is there
        self._left: float | None = None  # when the browser had closed
        self._first: Ending | None = None  # by the direction that was over first
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

    # -- how it ends

    def _late(self, now: float) -> Ending | None:
        """A limit of time that has passed."""
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
        """Ask a browser that has said nothing for a while whether it is there. What it is still being sent comes before
        the question, so that it has time from there on."""
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
        """A side that has ended, or can't be reached any more."""
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
        """Whether the session ends with the first of its directions: both sides can't go on with the other one."""
        both = self.front.half_closes and self.target.half_closes
        return not both or self.up.broken or self.down.broken

    def _typed_out(self, now: float) -> bool:
        """Whether what was typed last has reached the guest, or has had its time."""
        self._left = self._left or now
        return self.target.drained or (self._whole() and now - self._left >= self.times.linger_s)

    def _half(self, way: _Way, ending: Ending) -> None:
        """One direction is over, with all that was to be sent."""
        if not way.ended:
            way.ended = True
            self._first = self._first or ending
            if not self._whole():
                way.sink.end_writing()

    def _browser_left(self) -> Ending:
        gone = self.up.broken or self.front.code == ABNORMAL
        return Ending(ABNORMAL, BROWSER_GONE) if gone else Ending(NORMAL, BROWSER_CLOSED)

    # -- what it waits for

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
        """Seconds until there is something to do even if nothing happens."""
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
