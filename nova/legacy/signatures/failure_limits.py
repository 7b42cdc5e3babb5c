"""Rate limit of wrong signatures, each of which costs the identity service more than its sender.

Every address has a limit, and all addresses together have one. A sender with a recent valid signature has its own
limit, so that a flood affects only unknown senders. The limits apply per process.
"""

from __future__ import annotations

import ipaddress
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from nova.legacy.signatures.request import SignatureFault, SignatureRefused

MOST_SENDERS = 4096
KNOWN_S = 900.0  # how long a sender stays known after a valid signature


class SignatureFailureRate(NamedTuple):
    """A limit: ``burst`` wrong signatures in one burst, then ``per_s`` per second."""

    burst: float
    per_s: float


OF_ONE, OF_ALL = SignatureFailureRate(20, 2.0), SignatureFailureRate(200, 20.0)


class _Levels:
    """Leaky buckets by key, for the ``MOST_SENDERS`` most recent keys."""

    def __init__(self, rate: SignatureFailureRate) -> None:
        self._rate = rate
        self._found: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def level(self, key: str, now: float) -> float:
        used, at = self._found.get(key, (0.0, now))
        return max(0.0, used - (now - at) * self._rate.per_s)

    def is_full(self, key: str, now: float) -> bool:
        return self.level(key, now) >= self._rate.burst

    def add(self, key: str, now: float) -> None:
        self._found[key] = (self.level(key, now) + 1, now)
        self._found.move_to_end(key)
        if len(self._found) > MOST_SENDERS:
            self._found.popitem(last=False)


class SignatureFailures:
    """The counts of wrong signatures. ``clock``: monotonic seconds. Safe for concurrent use by threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._senders, self._all = _Levels(OF_ONE), _Levels(OF_ALL)
        self._known: OrderedDict[str, float] = OrderedDict()

    def check(self, peer: str, access: str) -> None:
        """Check the limits before a signature is verified. Raises SignatureRefused (TOO_MANY)."""
        with self._lock:
            now, key = self._clock(), _key(peer, access)
            is_full = self._senders.is_full(key, now) if self._is_known(key, now) else \
                self._senders.is_full(_network(peer), now) or self._all.is_full("", now)
        if is_full:
            raise SignatureRefused(SignatureFault.TOO_MANY)

    def wrong(self, peer: str, access: str) -> None:
        """Count a wrong signature of this sender."""
        with self._lock:
            now, key = self._clock(), _key(peer, access)
            if self._is_known(key, now):
                self._senders.add(key, now)
            else:
                self._senders.add(_network(peer), now)
                self._all.add("", now)

    def right(self, peer: str, access: str) -> None:
        """Record a valid signature: the sender is known from now on."""
        with self._lock:
            key = _key(peer, access)
            self._known[key] = self._clock()
            self._known.move_to_end(key)
            if len(self._known) > MOST_SENDERS:
                self._known.popitem(last=False)

    def _is_known(self, key: str, now: float) -> bool:
        return key in self._known and now < self._known[key] + KNOWN_S


def _key(peer: str, access: str) -> str:
    return f"{_network(peer)} {access}"


def _network(peer: str) -> str:
    """Return the address to count by: of IPv6 its /64 network, since a host can choose the rest."""
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return peer
    return str(ipaddress.ip_network((address, 64), strict=False)) if address.version == 6 else peer
