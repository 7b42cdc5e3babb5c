"""Signatures of calls that change something: each is taken once, so that who reads one on its way cannot use it.

Clients sign by the second: who asks for the same twice within one has signed it the same, and who asks again after a
lost answer may have. So the same signature is taken again for a moment from the address that it came from; a client of
ours behind it signs anew at the next try, which an answer with 503 makes it do.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from nova.legacy.signatures.request import Signature, SignatureFault, SignatureRefused
from nova.web.seen import SeenRequests

#: Seconds for which the first sender may say the same: one of signing, and what requests of one second may be late by.
REPEAT_S = 5
PARTS = 16384  # 6 MiB: 262,144 signatures, which is 145 a second for half an hour


class TakenSignatures:
    """Made before workers fork, who share it. ``clock``: seconds of Unix time."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock, self._seen = clock, SeenRequests(clock, PARTS)

    def take(self, signature: Signature, peer: str, is_repeatable: bool = True) -> None:
        """SignatureRefused (REPEATED) where it was taken already: by another address, too long ago, or at all where
        what it asks for may not be done twice."""
        earlier = self._seen.earlier(f"{signature.access}\n{signature.value}", signature.until, peer)
        if earlier is None:
            return
        is_same = earlier.is_by(peer) and self._clock() <= earlier.at + REPEAT_S
        if not (is_repeatable and is_same):
            raise SignatureRefused(SignatureFault.REPEATED)
