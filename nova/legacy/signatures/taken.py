"""Replay protection for requests that change something: each signature is accepted once, so that an eavesdropper cannot
reuse it.

Signatures have a resolution of one second: identical requests within a second have the same signature, and so may a
retry after a lost response. So a signature is accepted again for a few seconds from the same address. After that the
response is 503, which makes clients sign the request again and retry.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from nova.legacy.signatures.request import Signature, SignatureFault, SignatureRefused
from nova.web.replay_cache import ReplayCache

#: Seconds for which the first sender may repeat a signature: one for the clock's resolution, and the delay of requests.
REPEAT_S = 5
PARTS = 16384  # 6 MiB: 262,144 signatures, 145 per second for half an hour


class TakenSignatures:
    """The signatures already used; created before the workers fork, which share it. ``clock``: Unix time in seconds."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock, self._seen = clock, ReplayCache(clock, PARTS)

    def take(self, signature: Signature, peer: str, is_repeatable: bool = True) -> None:
        """Record a signature as used.

        Raises SignatureRefused (REPEATED) if it was used before by another address, too long ago, or if the request is
        not repeatable.
        """
        earlier = self._seen.earlier(f"{signature.access}\n{signature.value}", signature.until, peer)
        if earlier is None:
            return
        is_same = earlier.is_by(peer) and self._clock() <= earlier.at + REPEAT_S
        if not (is_repeatable and is_same):
            raise SignatureRefused(SignatureFault.REPEATED)
