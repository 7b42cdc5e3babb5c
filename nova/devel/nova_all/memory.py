"""How much of the process's memory is the C library's to hand out, and stays with it.

glibc gives threads memory of eight arenas a processor. Each grows by itself, and what is free in one is of no use to
the others. nova-all has some 130 threads that share connections to SQLite, so that caches come from all arenas. Memory
then creeps up by some MB while 20,000 servers come and go, though nothing is kept. Few arenas are enough, as Python
runs one thread at a time. What is free in these, in the midst of what is used, goes back to the system once a minute.
"""

from __future__ import annotations

import ctypes

from nova.service import Every

M_ARENA_MAX = -8  # of malloc.h
MOST_ARENAS = 2
TRIM_S = 60.0


def few_arenas() -> bool:
    """Of glibc's, for all threads from now on. False: the C library is another, and nothing was changed."""
    choose = getattr(ctypes.CDLL(None), "mallopt", None)
    return choose is not None and bool(choose(M_ARENA_MAX, MOST_ARENAS))


def trim() -> bool:
    """Give free memory back to the system. False: there was none, or the C library is another."""
    give = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return give is not None and bool(give(0))


class Trimming:
    """A part of the cloud that does this again and again."""

    def start(self) -> None:
        self._periodic = Every(TRIM_S, trim, "free memory").start()

    def stop(self, _seconds: float) -> None:
        self._periodic.stop()
