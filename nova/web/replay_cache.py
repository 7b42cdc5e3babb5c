"""Replay protection: requests that were accepted already. An intercepted request is not accepted again.

The workers of a daemon are processes with one shared socket, so they share a table, which is created before they fork
and never grows. It contains only authenticated requests. If a part of the table is full, the entry that expires first
is overwritten.
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

#: Digest of a proof; the expiry of its request and its first arrival (Unix seconds); digest of the sender at that time.
SLOT = struct.Struct("<QIIQ")
SLOTS_OF_PART, PARTS = 16, 4096
LATEST = 2 ** 32 - 1


class SeenRequest(NamedTuple):
    """The first arrival of a request (whole Unix seconds), and a number that represents its sender."""

    at: int
    sender: int

    def is_by(self, sender: str) -> bool:
        """Return whether that sender sent it."""
        return self.sender == number_of(sender)


class ReplayCache:
    """A table of accepted requests. ``clock``: seconds of Unix time. ``parts``: its size, in parts of 384 bytes
    (default: 1.5 MiB in total)."""

    def __init__(self, clock: Callable[[], float] = time.time, parts: int = PARTS) -> None:
        self._clock, self._parts, self._threads = clock, parts, threading.Lock()
        self._table = mmap.mmap(-1, SLOT.size * SLOTS_OF_PART * parts)  # shared with processes forked from this one
        # a lock among processes, which the kernel releases when its holder dies
        self._file = tempfile.TemporaryFile()  # noqa: SIM115

    def add(self, proof: str, until: float) -> bool:
        """Return whether a request with this proof is new, and record it. ``until``: when it becomes too old to be
        accepted."""
        return self.earlier(proof, until) is None

    def earlier(self, proof: str, until: float, sender: str = "") -> SeenRequest | None:
        """Return the first arrival of a request with this proof; None if it arrives now, from ``sender``."""
        digest = hashlib.blake2b(proof.encode("utf-8", "surrogateescape"), digest_size=16).digest()
        known, part = int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little") % self._parts
        with self._threads:
            fcntl.lockf(self._file, fcntl.LOCK_EX)
            try:
                return self._earlier((known, min(int(until), LATEST), int(self._clock()), number_of(sender)),
                                     part * SLOTS_OF_PART)
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN)

    def _earlier(self, new: tuple[int, int, int, int], first: int) -> SeenRequest | None:
        known, _, now, _ = new
        soonest = (LATEST + 1, first)
        for number in range(first, first + SLOTS_OF_PART):
            there, its_until, at, sender = SLOT.unpack_from(self._table, number * SLOT.size)
            if there == known and its_until >= now:
                return SeenRequest(at, sender)
            soonest = min(soonest, (its_until, number))
        SLOT.pack_into(self._table, soonest[1] * SLOT.size, *new)
        return None


def number_of(sender: str) -> int:
    """Return the 64-bit number that represents a name in a sighting."""
    return int.from_bytes(hashlib.blake2b(sender.encode("utf-8", "surrogateescape"), digest_size=8).digest(), "little")
