"""Parts of states that many hosts have alike, kept once: ten thousand copies of one topology would take more memory
than all the rest."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from nova.model.base import Library
from nova.model.host.hosts import HostState

PARTS = ("topology", "capabilities", "supported", "traits")
KEPT = 20_000  # different ones; then it begins anew, and what is in use stays with its hosts


class Shared:
    """What was seen of each of :data:`PARTS`."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._known: dict[bytes, Any] = {}
        self._encode = msgspec.msgpack.Encoder().encode

    def of(self, state: HostState) -> HostState:
        """The same state, made of parts that other hosts' states have, too."""
        found = {name: self._one(name, value) for name in PARTS if (value := getattr(state, name))}
        return msgspec.structs.replace(state, **found) if found else state

    def _one(self, name: str, value: object) -> Library:
        if len(self._known) >= self._kept:
            self._known.clear()
        return self._known.setdefault(hashlib.blake2b(self._encode((name, value)), digest_size=16).digest(), value)
