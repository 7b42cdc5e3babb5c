"""State of a daemon's workers, in shared memory: a few numbers per worker."""

from __future__ import annotations

import enum
import mmap
import struct
import time
from collections.abc import Callable
from typing import NamedTuple

STUCK_S = 120.0  # a worker whose main loop has not run for so long does not recover
_SLOT = struct.Struct("=dqq")  # last run of the main loop (CLOCK_MONOTONIC), pid, state


class WorkerState(enum.IntEnum):
    ABSENT = 0
    STARTING = 1
    SERVING = 2
    STOPPING = 3


class Worker(NamedTuple):
    """State of a worker. ``silent_s``: seconds since its main loop ran."""

    number: int
    pid: int
    state: WorkerState
    silent_s: float

    @property
    def stuck(self) -> bool:
        """True if its main loop does not run. A stopping worker has its own timeout."""
        return self.state in (WorkerState.STARTING, WorkerState.SERVING) and self.silent_s > STUCK_S


class Workers:
    """The table of workers: one slot each, written only by that worker. Create it before they fork."""

    def __init__(self, count: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.count, self._clock = count, clock
        self._memory = mmap.mmap(-1, count * _SLOT.size)

    def turn(self, index: int, pid: int, state: WorkerState) -> None:
        """Record that the main loop of worker ``index`` has run."""
        _SLOT.pack_into(self._memory, index * _SLOT.size, self._clock(), pid, state)

    def gone(self, index: int) -> None:
        """Record that the worker has ended, and its successor has not started yet."""
        _SLOT.pack_into(self._memory, index * _SLOT.size, self._clock(), 0, WorkerState.ABSENT)

    def all(self) -> list[Worker]:
        """Return the current states."""
        now, found = self._clock(), []
        for index in range(self.count):
            turned, pid, state = _SLOT.unpack_from(self._memory, index * _SLOT.size)
            found.append(Worker(index, pid, WorkerState(state), max(0.0, now - turned)))
        return found
