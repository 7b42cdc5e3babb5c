"""Limits for the memory that the C library keeps.

glibc gives threads memory from eight arenas per processor. Each arena grows separately, and cannot use the others' free
memory. nova-all has some 130 threads that share connections to SQLite, so that caches come from all arenas. Memory then
grows by some MB while 20,000 servers are created and deleted, though nothing is kept. Few arenas suffice, as Python
runs one thread at a time. Their fragmented free memory is returned to the system once a minute.
"""

from __future__ import annotations

import ctypes

from nova.service import PeriodicTask

M_ARENA_MAX = -8  # from malloc.h
MOST_ARENAS = 2
TRIM_S = 60.0


def few_arenas() -> bool:
    """Limit glibc's arenas, for all threads from now on. Returns False, without effect, for other C libraries."""
    choose = getattr(ctypes.CDLL(None), "mallopt", None)
    return choose is not None and bool(choose(M_ARENA_MAX, MOST_ARENAS))


def trim() -> bool:
    """Return free memory to the system. Returns False if there was none, or for other C libraries."""
    give = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return give is not None and bool(give(0))


class MemoryTrimmer:
    """Part of the cloud that trims memory periodically."""

    def start(self) -> None:
        self._periodic = PeriodicTask(TRIM_S, trim, "free memory").start()

    def stop(self, _seconds: float) -> None:
        self._periodic.stop()
