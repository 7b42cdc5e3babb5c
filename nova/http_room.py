"""Which connections give way when an HTTP server has as many as it may have: none of those whose request is being
worked on, and first those of whoever holds the most."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterable
from typing import Protocol, TypeVar

HOLDER = "nova.holder"  # in the environ of a request: the project of its client, once the application knows it
SHARE = 4  # more than one connection of so many: only then answers that are being sent give way, too
AT_A_TIME = 20  # one connection of so many, so that many newcomers do not wait for one another


class Stage(enum.Enum):
    """``WAITING``: for a request, or for the rest of it. ``WORKING``: the application has it, or it waits for its turn
    there. ``SENDING``: its client takes the answer."""

    WAITING = "waiting"
    WORKING = "working"
    SENDING = "sending"


class Held(Protocol):
    """A connection. ``holder``: its client's project, if that is known by now, or else its address. ``until``: when the
    present stage must be over (``time.monotonic``)."""

    stage: Stage
    holder: str
    until: float


T = TypeVar("T", bound=Held)


def giving_way(held: Iterable[T], most: int) -> list[T]:
    """Those of the connections that are to end, where there are ``most``, the server's bound. Empty where a request is
    worked on on each."""
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
