"""Hairpin mode of ports on nova-network's bridges.

Packets that a guest sends to its own floating address are translated on the bridge. They must go out by the port they
came in on, where a bridge normally drops them. A tap is a new port each time its guest starts, so the mode is set after
each order that may have created one, and again periodically. The guest's own multicast frames would come back to it,
too: ``frame_rules.py`` drops those. The same call disables the host's IPv6 on these ports, which the kernel enables on
every new device.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from nova import failures
from nova.model.guest.orders import BuildOrder, Outcome
from nova.model.network.networks import Interface
from nova.model.server.states import PowerState

LOG = logging.getLogger(__name__)

ALIVE = frozenset({PowerState.RUNNING, PowerState.PAUSED})

#: Enable hairpin mode on the devices that exist. Raises Unavailable.
TurnOn = Callable[[Iterable[str]], object]


def devices(interfaces: Iterable[Interface]) -> tuple[str, ...]:
    """Return the taps on nova-network's bridges; taps of other network services belong to those services."""
    return tuple(one.device for one in interfaces if one.device and one.type == "bridge" and one.status is None)


class Hairpins:
    """Hairpin mode of this host's taps. Its failure is a warning: a guest that cannot reach itself by its floating
    address need not be stopped."""

    def __init__(self, enable: TurnOn) -> None:
        self._enable = enable

    def turn_on_for(self, build: BuildOrder, done: PowerState | Outcome) -> None:
        """Enable it on the taps of a guest whose order ended with ``done``; a guest that is off has no taps."""
        state = done.power_state if isinstance(done, Outcome) else done
        if state in ALIVE and (taps := devices(build.interfaces)):
            self.turn_on(taps)

    def turn_on(self, taps: Iterable[str]) -> None:
        """Enable it on taps that exist."""
        with failures.best_effort(LOG, "guests may be unable to reach themselves by their floating addresses until "
                                  "the next attempt: %s"):
            self._enable(taps)
