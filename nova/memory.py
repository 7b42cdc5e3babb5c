"""Memory of a daemon's processes: what workers share with their parent, what a start and a burst leave behind, and how
often garbage is searched.

The C library (glibc) gives threads memory from eight arenas per processor. Each arena grows separately, and cannot use
the others' free memory: a process with 130 threads that use SQLite grows by some MB in 20,000 servers, though nothing
is kept. Few arenas suffice, as Python runs one thread at a time. Their fragmented free memory is returned to the
operating system from time to time.
"""

from __future__ import annotations

import ctypes
import gc

#: New objects before the youngest ones are searched for garbage, and its searches before those of the older ones.
COLLECTIONS = (10_000, 20, 20)
START_OBJECTS = 200_000  # likewise, of a start: some 20 MB
M_ARENA_MAX = -8  # from malloc.h
MOST_ARENAS = 2
RELEASE_S = 60.0


def begin_start() -> None:
    """Begin the start of a service, which ends with :func:`settle`: nearly all objects that it creates stay, and
    searches for garbage among them would take a tenth of its time."""
    _few_arenas()
    gc.set_threshold(START_OBJECTS)


def _few_arenas() -> None:
    """Limit glibc's arenas, for all threads from now on; no effect for other C libraries."""
    if choose := getattr(ctypes.CDLL(None), "mallopt", None):
        choose(M_ARENA_MAX, MOST_ARENAS)


def prepare_sharing() -> None:
    """Prepare this process for forks. Workers share the pages of what exists now, until one of them writes there; the
    garbage collector would write to all of them."""
    gc.collect()
    gc.freeze()


def settle() -> None:
    """End a service's start: return memory that is free to the operating system, and let the garbage collector search
    less often, and only in objects made later.

    A start allocates buffers that are needed once, such as 16 MB for a key, and the C library keeps them. A service has
    hundreds of thousands of objects that stay. A large answer creates tens of thousands, which are freed without a
    search; with Python's default of 700, a list of 1,000 servers took a fifth longer.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTIONS)
    release()


def release() -> bool:
    """Return free memory to the operating system, also free pages between used ones. Returns False if there was
    none, or for C libraries other than glibc."""
    give = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return give is not None and bool(give(0))
