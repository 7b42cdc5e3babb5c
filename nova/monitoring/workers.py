"""What a daemon's processes know of each other: a few numbers a worker, in memory that they share."""

from __future__ import annotations

import enum
import mmap
import struct
import time
from collections.abc import Callable
from typing import NamedTuple

STUCK_S = 120.0  # a worker whose main loop did not turn for so long does not come to itself any more
_SLOT = struct.Struct("=dqq")  # when it turned last (CLOCK_MONOTONIC), pid, state


class WorkerState(enum.IntEnum):
    ABSENT = 0
    STARTING = 1
    SERVING = 2
    STOPPING = 3


class Worker(NamedTuple):
    """``silent_s``: since its main loop turned."""

    number: int
    pid: int
    state: WorkerState
    silent_s: float

    @property
    def stuck(self) -> bool:
        """Its main loop stands still. One that stops has its own time to do so in."""
        return self.state in (WorkerState.STARTING, WorkerState.SERVING) and self.silent_s > STUCK_S


class Workers:
    """One slot a worker, written by that worker alone; to be made before they fork."""

    def __init__(self, count: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.count, self._clock = count, clock
        self._memory = mmap.mmap(-1, count * _SLOT.size)

    def turn(self, index: int, pid: int, state: WorkerState) -> None:
        """Worker ``index``'s main loop turned."""
        _SLOT.pack_into(self._memory, index * _SLOT.size, self._clock(), pid, state)

    def gone(self, index: int) -> None:
        """It has ended, and the next one has not begun yet."""
        _SLOT.pack_into(self._memory, index * _SLOT.size, self._clock(), 0, WorkerState.ABSENT)

    def all(self) -> list[Worker]:
        """As they are now."""
        now, found = self._clock(), []
        for index in range(self.count):
            turned, pid, state = _SLOT.unpack_from(self._memory, index * _SLOT.size)
            found.append(Worker(index, pid, WorkerState(state), max(0.0, now - turned)))
        return found
