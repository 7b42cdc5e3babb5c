"""Shared parts of host states: equal parts of many hosts are stored one time, because ten thousand copies of one
topology would take more memory than all the rest."""

from __future__ import annotations

import hashlib
from typing import Any, TypeVar

import msgspec

from nova.model.host.hosts import HostState

T = TypeVar("T")

PARTS = ("topology", "capabilities", "supported", "traits")
KEPT = 20_000  # different parts; then the store is emptied, and parts in use stay with their hosts


class Shared:
    """A store of the known values of each of :data:`PARTS`."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._known: dict[bytes, Any] = {}
        self._encode = msgspec.msgpack.Encoder().encode

    def of(self, state: HostState) -> HostState:
        """Return the same state, with parts that are shared with other hosts' states."""
        found = {name: self._one(name, value) for name in PARTS if (value := getattr(state, name))}
        return msgspec.structs.replace(state, **found) if found else state

    def _one(self, name: str, value: T) -> T:
        if len(self._known) >= self._kept:
            self._known.clear()
        known: T = self._known.setdefault(hashlib.blake2b(self._encode((name, value)), digest_size=16).digest(), value)
        return known
