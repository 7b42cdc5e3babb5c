"""Requests that were taken already: one that somebody read on its way is not taken again.

The workers of a proxy are processes that serve one socket, so they share a table, which is made before they fork:
1 MiB, whatever comes. What stands in it is proven by hosts alone; where one of them sends so much that its part of the
table is full, what would be over first is forgotten.
"""

from __future__ import annotations

import fcntl
import hashlib
import mmap
import struct
import tempfile
import threading
import time
from collections.abc import Callable

SLOT = struct.Struct("<QQ")  # of a proof, and until when (Unix seconds) its request would be taken
SLOTS_OF_PART, PARTS = 16, 4096


class SeenRequests:
    """``clock``: seconds of Unix time."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock, self._threads = clock, threading.Lock()
        self._table = mmap.mmap(-1, SLOT.size * SLOTS_OF_PART * PARTS)  # shared with who is forked from here
        # a lock of other processes than this one, which the kernel takes back when its holder dies
        self._file = tempfile.TemporaryFile()  # noqa: SIM115

    def add(self, proof: str, until: float) -> bool:
        """Whether a request with this proof is new. ``until``: when it is too old to be taken."""
        digest = hashlib.blake2b(proof.encode(), digest_size=16).digest()
        known, part = int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little") % PARTS
        with self._threads:
            fcntl.lockf(self._file, fcntl.LOCK_EX)
            try:
                return self._add(known, part * SLOTS_OF_PART, int(until))
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN)

    def _add(self, known: int, first: int, until: int) -> bool:
        now, soonest = self._clock(), (2**64, first)
        for number in range(first, first + SLOTS_OF_PART):
            there, its_until = SLOT.unpack_from(self._table, number * SLOT.size)
            if there == known and its_until >= now:
                return False
            soonest = min(soonest, (its_until, number))
        SLOT.pack_into(self._table, soonest[1] * SLOT.size, known, until)
        return True


__all__ = ["SeenRequests"]
