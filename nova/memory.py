"""Memory of a daemon's processes: what workers share with their parent, what a start leaves behind, and how often
garbage is searched."""

from __future__ import annotations

import contextlib
import ctypes
import gc

#: New objects before the youngest ones are searched for garbage, and its searches before those of the older ones.
COLLECTIONS = (10_000, 20, 20)
START_OBJECTS = 200_000  # likewise, of a start: some 20 MB


def begin_start() -> None:
    """Begin the start of a service, which ends with :func:`settle`: nearly all objects that it creates stay, and
    searches for garbage among them would take a tenth of its time."""
    gc.set_threshold(START_OBJECTS)


def prepare_sharing() -> None:
    """Prepare this process for forks. Workers share the pages of what exists now, until one of them writes there; the
    garbage collector would write to all of them."""
    gc.collect()
    gc.freeze()


def settle() -> None:
    """End a service's start: return memory that is free to the operating system, and let the garbage collector search
    less often, and only in objects made later.

    A start allocates buffers that are needed once, such as 16 MB for a key, and the C library (glibc) keeps them. A
    service has hundreds of thousands of objects that stay. A large answer creates tens of thousands, which are freed
    without a search; with Python's default of 700, a list of 1,000 servers took a fifth longer.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTIONS)
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
