"""Ranges that guests must not reach now: derived from the operator's setting, this host's addresses, and the guests'
ranges."""

from __future__ import annotations

import ipaddress
import logging
import time
from collections.abc import Callable, Iterable

from nova import failures
from nova.model.network.forbidden_ranges import Forbidden, RangeSetting, worked_out
from nova.privileged import host_networks

LOG = logging.getLogger(__name__)

ASK_EVERY_S = 300.0
ASK_AGAIN_S = 5.0  # after a failed request, or an answer that lacks a guest of this host

Ask = Callable[[], tuple[str, ...]]
Found = Callable[[], tuple[str, ...]]


class Forbidding:
    """Calculates forbidden ranges. ``ask``: returns the ranges of all guests; ``found``: returns the networks in which
    this host has addresses."""

    def __init__(self, wanted: RangeSetting, exceptions: Iterable[str], ask: Ask, found: Found = host_networks.networks,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._wanted, self._exceptions, self._ask, self._found = wanted, tuple(exceptions), ask, found
        self._clock, self._due = clock, 0.0
        self._guests: tuple[str, ...] | None = None

    def now(self, own: Iterable[str]) -> Forbidden:
        """Return the forbidden ranges. ``own``: addresses or ranges of guests here. Until the ranges of guests are
        known, nothing is forbidden: a range might be their own network. Raises host.Link."""
        if self._wanted == RangeSetting(auto=False):
            return Forbidden()
        mine = tuple(dict.fromkeys(own))
        self._learn(mine)
        if self._guests is None:
            return Forbidden()
        found = self._found() if self._wanted.auto else ()
        return worked_out(self._wanted, found, (*self._guests, *_outside(mine, self._guests)), self._exceptions)

    def _learn(self, mine: tuple[str, ...]) -> None:
        now = self._clock()
        unheard = self._guests is None or bool(_outside(mine, self._guests))
        if now < (self._due - ASK_EVERY_S + ASK_AGAIN_S if unheard else self._due):
            return
        with failures.best_effort(LOG, "could not get the ranges of guests%s: %s", "" if self._guests is None else
                " again"):  # unavailable, or too old for the question
            self._guests = self._ask()
        self._due = now + ASK_EVERY_S


def _outside(mine: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    """Return the entries of ``mine`` that no known range contains."""
    ranges = [ipaddress.ip_network(one) for one in known]
    return tuple(one for one in mine if not any(_within(one, other) for other in ranges))


def _within(one: str, other: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
    inner = ipaddress.ip_network(one, strict=False)
    return inner.version == other.version and inner.subnet_of(other)  # type: ignore[arg-type]


__all__ = ["Forbidding"]
