"""The RPC watchdog: detects a process that receives no messages.

A daemon can look alive and receive no RPC: its connection is open and its heartbeats go out, but no message arrives. So
each process is sent an *echo* regularly: control daemons send it to their own queue, conductors send it to hosts. A
process that expects one and receives nothing for minutes, while the broker accepts connections, must be replaced.
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

NOT_RECEIVING_S = 180.0  # without a message, although one was expected: the process counts as not receiving RPC
EVERY_S = 20.0  # between two echoes of a control daemon's worker


class _Nothing(msgspec.Struct):
    pass


def _echo(wants_answer: bool) -> Method:
    return Method("echo", Timeout.SHORT, "1.0", wants_answer, False, _Nothing, None, inspect.signature(lambda: None),
                  sensitive=False, introduces=False)


#: Every server answers it, for any contract, and it carries no data.
ECHO, ECHO_SENT = _echo(wants_answer=True), _echo(wants_answer=False)


class RpcWatchdog:
    """The RPC watchdog of one process on one bus. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._expected_since, self._under_way = math.inf, 0

    @contextlib.contextmanager
    def message(self) -> Iterator[None]:
        """Record an incoming message, and that it is in progress until the block ends."""
        with self._lock:
            self._under_way += 1
            self._expected_since = math.inf
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1

    def expect(self) -> None:
        """Record that a message is expected."""
        with self._lock:
            if not self._under_way:  # a process whose workers are all busy takes no messages: that is no failure
                self._expected_since = min(self._expected_since, self._clock())

    def excuse(self) -> None:
        """Record that the broker is unreachable: no message can arrive."""
        with self._lock:
            self._expected_since = math.inf

    @property
    def silent_s(self) -> float:
        """Seconds since an expected message should have arrived; 0 if none is missing."""
        with self._lock:
            return max(0.0, self._clock() - self._expected_since)
