"""Ports of nova-network's bridges that give frames back to where they came from.

What a guest sends to its own floating address is translated on the bridge and belongs on the very port it came in by,
where a bridge drops it. A tap is a new port each time its guest starts, so it is said after each order that may have
made one, and again now and then. What the guest says to all would come back to it, too: ``frame_rules.py`` drops that.
The same call sees to it that the host speaks no IPv6 by them, as the kernel would have it do by every new device.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from nova import errors
from nova.compute.orders.batches import Do, Order
from nova.compute.orders.kind import OrderKind
from nova.compute.orders.orders import Work
from nova.compute.orders.permission import BatchGate
from nova.model.guest.orders import BuildOrder, Outcome
from nova.model.network.networks import Interface
from nova.model.server.states import PowerState

LOG = logging.getLogger(__name__)

ALIVE = frozenset({PowerState.RUNNING, PowerState.PAUSED})

#: Have these devices give frames back, those of them that are there. Raises Unavailable.
TurnOn = Callable[[Iterable[str]], Any]


def devices(interfaces: Iterable[Interface]) -> tuple[str, ...]:
    """Taps on nova-network's bridges: those of other network services are theirs."""
    return tuple(one.device for one in interfaces if one.device and one.type == "bridge" and one.status is None)


def reflecting(how: TurnOn | None, kind: OrderKind, do: Do) -> Do:
    """What an order does; after it the guest reaches itself. None: not on this host."""
    if how is None or not kind.plugs:
        return do

    def reflected(order: Order, work: Work, gate: BatchGate) -> PowerState | Outcome:
        done = do(order, work, gate)
        build = order if isinstance(order, BuildOrder) else order.build
        state = done.power_state if isinstance(done, Outcome) else done
        taps = devices(build.interfaces) if build is not None and state in ALIVE else ()
        if taps:
            turn_on(how, taps)
        return done
    return reflected


def turn_on(how: TurnOn, taps: Iterable[str]) -> None:
    """Never fails: a guest that does not reach itself by its floating address is no reason to stop it."""
    try:
        how(taps)
    except errors.NovaError as error:
        LOG.warning("guests may not reach themselves by their floating addresses, until the next look: %s", error)


__all__ = ["devices", "reflecting", "turn_on"]
