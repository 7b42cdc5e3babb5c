"""Choice of connections to close when an HTTP server has reached its limit: never those with a request in progress, and
first those of the client with the most connections."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterable
from typing import Protocol, TypeVar

HOLDER = "nova.holder"  # in the environ of a request: the client's project, once the application knows it
SHARE = 4  # a client with more than one of this many connections also loses connections that receive responses
AT_A_TIME = 20  # closes one of this many connections at a time, so that many new clients do not wait for each other


class Stage(enum.Enum):
    """Stage of a connection. ``WAITING``: for a request, or for the rest of it. ``WORKING``: the application works on a
    request, or the request is queued for it. ``SENDING``: the client receives the response."""

    WAITING = "waiting"
    WORKING = "working"
    SENDING = "sending"


class Held(Protocol):
    """A connection. ``holder``: its client's project if it is known, otherwise its address. ``until``: deadline of the
    present stage (``time.monotonic``)."""

    stage: Stage
    holder: str
    until: float


T = TypeVar("T", bound=Held)


def select_evicted(held: Iterable[T], most: int) -> list[T]:
    """Return the connections to close when there are ``most``, the server's limit. Empty if all have a request in
    progress."""
    by_holder: defaultdict[str, list[T]] = defaultdict(list)
    for one in held:
        by_holder[one.holder].append(one)
    for ours in sorted(by_holder.values(), key=len, reverse=True):
        excess = len(ours) - most // SHARE
        stages = (Stage.WAITING, Stage.SENDING) if excess > 0 else (Stage.WAITING,)
        found = sorted((one for one in ours if one.stage in stages), key=lambda one: one.until)
        if found:
            return found[:max(1, min(excess, most // AT_A_TIME))]
    return []
