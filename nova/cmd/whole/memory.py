"""How much of the process's memory is the C library's to hand out, and stays with it.

glibc gives threads memory of eight arenas a processor. Each grows by itself, and what is free in one is of no use to
the others. nova-all has some 130 threads that share connections to SQLite, so that caches come from all arenas. Memory
then creeps up by some MB while 20,000 servers come and go, though nothing is kept. Few arenas are enough, as Python
runs one thread at a time.
"""

from __future__ import annotations

import ctypes

M_ARENA_MAX = -8  # of malloc.h
MOST_ARENAS = 2


def few_arenas() -> bool:
    """Of glibc's, for all threads from now on. False: the C library is another, and nothing was changed."""
    choose = getattr(ctypes.CDLL(None), "mallopt", None)
    return choose is not None and bool(choose(M_ARENA_MAX, MOST_ARENAS))
