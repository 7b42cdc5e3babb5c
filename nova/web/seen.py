"""Requests that were taken already: one that somebody read on its way is not taken again.

The workers of a daemon are processes that serve one socket, so they share a table, which is made before they fork and
never grows. What stands in it is proven; where so much comes that a part of the table is full, what would be over first
is forgotten.
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
from typing import NamedTuple

#: Of a proof; until when (Unix seconds) its request would be taken, and when it came first; of who sent it then.
SLOT = struct.Struct("<QIIQ")
SLOTS_OF_PART, PARTS = 16, 4096
LATEST = 2 ** 32 - 1


class Sighting(NamedTuple):
    """When a request came first (whole Unix seconds), and a number that stands for who sent it."""

    at: int
    sender: int

    def is_by(self, sender: str) -> bool:
        """Whether that one sent it."""
        return self.sender == number_of(sender)


class SeenRequests:
    """``clock``: seconds of Unix time. ``parts``: what the table holds, of 384 bytes each: 1.5 MiB if not given."""

    def __init__(self, clock: Callable[[], float] = time.time, parts: int = PARTS) -> None:
        self._clock, self._parts, self._threads = clock, parts, threading.Lock()
        self._table = mmap.mmap(-1, SLOT.size * SLOTS_OF_PART * parts)  # shared with who is forked from here
        # a lock of other processes than this one, which the kernel takes back when its holder dies
        self._file = tempfile.TemporaryFile()  # noqa: SIM115

    def add(self, proof: str, until: float) -> bool:
        """Whether a request with this proof is new. ``until``: when it is too old to be taken."""
        return self.earlier(proof, until) is None

    def earlier(self, proof: str, until: float, sender: str = "") -> Sighting | None:
        """How a request with this proof came first; None: now, by ``sender``."""
        digest = hashlib.blake2b(proof.encode("utf-8", "surrogateescape"), digest_size=16).digest()
        known, part = int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little") % self._parts
        with self._threads:
            fcntl.lockf(self._file, fcntl.LOCK_EX)
            try:
                return self._earlier((known, min(int(until), LATEST), int(self._clock()), number_of(sender)),
                                     part * SLOTS_OF_PART)
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN)

    def _earlier(self, new: tuple[int, int, int, int], first: int) -> Sighting | None:
        known, _, now, _ = new
        soonest = (LATEST + 1, first)
        for number in range(first, first + SLOTS_OF_PART):
            there, its_until, at, sender = SLOT.unpack_from(self._table, number * SLOT.size)
            if there == known and its_until >= now:
                return Sighting(at, sender)
            soonest = min(soonest, (its_until, number))
        SLOT.pack_into(self._table, soonest[1] * SLOT.size, *new)
        return None


def number_of(sender: str) -> int:
    """A number of 64 bits that stands for a name, as a sighting has it."""
    return int.from_bytes(hashlib.blake2b(sender.encode("utf-8", "surrogateescape"), digest_size=8).digest(), "little")
