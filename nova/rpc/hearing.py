"""Whether a process hears what is sent to it.

A daemon can look alive and be deaf: its connection is open, its heartbeats go out, and no message comes in any more.
So each process is sent an *echo* now and then: control daemons send it to their own queue, conductors send it to hosts.
Whoever expects one and hears nothing for minutes, while the broker takes connections, is to be replaced.
"""

from __future__ import annotations

import contextlib
import inspect
import math
import threading
import time
from collections.abc import Callable, Iterator

import msgspec

from nova.rpc.interface import Method, Timeout

DEAF_S = 180.0  # for so long nothing was heard of what was sent
EVERY_S = 20.0  # a control daemon's worker sends an echo


class _Nothing(msgspec.Struct):
    pass


def _echo(wants_answer: bool) -> Method:
    return Method("echo", Timeout.SHORT, "1.0", wants_answer, False, _Nothing, None, inspect.signature(lambda: None),
                  sensitive=False, introduces=False)


#: Every server answers it, whatever its contract, and it carries nothing.
ECHO, ECHO_SENT = _echo(wants_answer=True), _echo(wants_answer=False)


class Hearing:
    """What one process has heard on one bus. Threads share it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._expected_since, self._under_way = math.inf, 0

    @contextlib.contextmanager
    def message(self) -> Iterator[None]:
        """One that came in, while it is worked on."""
        with self._lock:
            self._under_way += 1
            self._expected_since = math.inf
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1

    def expect(self) -> None:
        """One is on its way."""
        with self._lock:
            if not self._under_way:  # a process whose workers are all busy takes no more: that is not deafness
                self._expected_since = min(self._expected_since, self._clock())

    def excuse(self) -> None:
        """The broker is away: nothing can be heard."""
        with self._lock:
            self._expected_since = math.inf

    @property
    def silent_s(self) -> float:
        """How long what was expected has not been heard; 0 when nothing is missing."""
        with self._lock:
            return max(0.0, self._clock() - self._expected_since)
