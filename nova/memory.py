"""Memory of a daemon's processes: what workers share with their parent, and what a start leaves behind."""

from __future__ import annotations

import contextlib
import ctypes
import gc


def prepare_sharing() -> None:
    """Prepare this process for forks. Workers share the pages of what exists now, until one of them writes there; the
    garbage collector would write to all of them."""
    gc.collect()
    gc.freeze()


def release() -> None:
    """Return memory that is free to the operating system, where the C library can (glibc): a start allocates buffers
    that are needed once, such as 16 MB for a key, and glibc keeps them."""
    gc.collect()
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
