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
from nova.compute.orders.batches import Do
from nova.compute.orders.kind import OrderKind, OrderT, build_of
from nova.compute.orders.orders import Work
from nova.compute.orders.permission import BatchPermission
from nova.model.guest.orders import Outcome
from nova.model.network.networks import Interface
from nova.model.server.states import PowerState

LOG = logging.getLogger(__name__)

ALIVE = frozenset({PowerState.RUNNING, PowerState.PAUSED})

#: Enable hairpin mode on the devices that exist. Raises Unavailable.
TurnOn = Callable[[Iterable[str]], object]


def devices(interfaces: Iterable[Interface]) -> tuple[str, ...]:
    """Return the taps on nova-network's bridges; taps of other network services belong to those services."""
    return tuple(one.device for one in interfaces if one.device and one.type == "bridge" and one.status is None)


def reflecting(how: TurnOn | None, kind: OrderKind[OrderT], do: Do[OrderT]) -> Do[OrderT]:
    """Wrap a handler: afterwards, the guest can reach itself by its floating address. None: not on this host."""
    if how is None or not kind.plugs:
        return do

    def reflected(order: OrderT, work: Work, permission: BatchPermission) -> PowerState | Outcome:
        done = do(order, work, permission)
        build = build_of(order)
        state = done.power_state if isinstance(done, Outcome) else done
        taps = devices(build.interfaces) if build is not None and state in ALIVE else ()
        if taps:
            turn_on(how, taps)
        return done
    return reflected


def turn_on(how: TurnOn, taps: Iterable[str]) -> None:
    """Enable hairpin mode. Never fails: a guest that cannot reach itself by its floating address need not be
    stopped."""
    with failures.best_effort(LOG, "guests may be unable to reach themselves by their floating addresses until the "
            "next attempt: %s"):
        how(taps)


__all__ = ["devices", "reflecting", "turn_on"]
