"""How long a call waits, and how often it is asked.

A server that is killed takes the calls with it that it had taken off the queue. Whoever asked to change something waits
until the end: it may have been done. What only reads is soon asked again, and goes to another server.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from nova import errors
from nova.rpc.interface import Method, Timeout

LOG = logging.getLogger(__name__)

#: Of a read's time, what its first asking gets. A server gives up at 0.8 of a caller's time (``PART`` in server.py), so
#: that its reason still arrives: the second asking keeps more than that.
FIRST_PART = 0.15

Answer = TypeVar("Answer")


def tries(method: Method, seconds: int) -> tuple[int, ...]:
    """Seconds of each asking; ``seconds`` is their sum."""
    first = int(seconds * FIRST_PART)
    if method.reads and method.timeout is Timeout.NORMAL and first > 0:
        return first, seconds - first
    return (seconds,)


def ask(waits: Sequence[int], once: Callable[[int], Answer], name: str) -> Answer:
    """``once(seconds)`` until it answers; the last daemon.RpcNoAnswer."""
    *early, last = waits
    for seconds in early:
        try:
            return once(seconds)
        except errors.daemon.RpcNoAnswer:
            LOG.warning("%s was not answered within %s s; it changes nothing, and is asked once more", name, seconds)
    return once(last)


__all__ = ["FIRST_PART", "ask", "tries"]
