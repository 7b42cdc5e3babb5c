"""Guests started when their network is there: held until the network service says that their interfaces are connected,
so that what they say first (for an address, say) is heard."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from nova import errors
from nova.compute.guests.plug_events import PlugEvents
from nova.compute.orders.orders import Work
from nova.model.guest.orders import BuildOrder
from nova.model.network.networks import Interface
from nova.model.server.states import PowerState
from nova.virt.interface import Driver, HeldStarts, Suspending

LOG = logging.getLogger(__name__)

#: Types of interfaces that an agent of the network service connects on this host, and reports.
REPORTED = frozenset({"ovs", "bridge", "vhostuser", "hw_veb", "macvtap", "tap"})
CONNECTED = "ACTIVE"


@dataclass(frozen=True)
class VifPlugging:
    """``timeout_s`` 0: nothing is waited for. ``fatal``: a guest that waits in vain is not started. ``live``: a
    guest that moves while it runs waits for its interfaces at the destination, too."""

    timeout_s: int = 300
    fatal: bool = True
    live: bool = True


def awaited(interfaces: Iterable[Interface]) -> tuple[str, ...]:
    """Ids of those that are not connected yet, and will be when the guest has them. What has no status (nova-network's)
    is there as soon as it is plugged in."""
    return tuple(one.id for one in interfaces
                 if one.status is not None and one.status != CONNECTED and one.type in REPORTED)


def awaited_before_arrival(interfaces: Iterable[Interface]) -> tuple[str, ...]:
    """Of those that a destination plugs in before the guest comes: the network service has one binding active at a
    time, and reports what it sees of the other where there is something to be seen before a tap is."""
    return tuple(one.id for one in interfaces
                 if one.status is not None and one.type == "ovs" and one.details.get("ovs_hybrid_plug"))


class Starter:
    """Where the driver can hold guests, they wait for their network."""

    def __init__(self, driver: Driver, events: PlugEvents, patience: VifPlugging = VifPlugging()) -> None:  # noqa: B008
        self._driver, self.events, self._patience = driver, events, patience

    def new(self, order: BuildOrder, work: Work) -> PowerState:
        """Define the guest from the order, and start it."""
        holder = self._holder(order)
        if holder is None:
            return self._driver.lifecycle.start_new(order)
        self._driver.lifecycle.define(order)
        return self._start_held(holder, order, work)

    def again(self, order: BuildOrder, work: Work) -> PowerState:
        """Start a defined guest."""
        holder = self._holder(order)
        if holder is None:
            return self._driver.lifecycle.start(order.server_uuid)
        return self._start_held(holder, order, work)

    def resumed(self, suspending: Suspending, order: BuildOrder, work: Work) -> PowerState:
        """A suspended guest goes on. One that waited in vain is suspended again."""
        holder = self._holder(order)
        if holder is None:
            return suspending.resume(order)
        state = holder.resume_held(order)
        return self._let_go(holder, order, work, state, lambda: suspending.suspend(order.server_uuid))

    def wait_for_arrival(self, order: BuildOrder, work: Work) -> None:
        """What is plugged in for a guest that comes while it runs, is connected. host.VifNotPlugged,
        host.VifPlugFailed."""
        ids = awaited_before_arrival(order.interfaces)
        if ids and self._patience.timeout_s and self._patience.live:
            self._wait(order, ids, work)

    def _holder(self, order: BuildOrder) -> HeldStarts | None:
        """None: the guest waits for nothing, or cannot be held."""
        return self._driver.held_starts if self._patience.timeout_s and awaited(order.interfaces) else None

    def _start_held(self, holder: HeldStarts, order: BuildOrder, work: Work) -> PowerState:
        state = holder.start_held(order.server_uuid)
        return self._let_go(holder, order, work, state,
                            lambda: self._driver.lifecycle.shut_down(order.server_uuid, 0))

    def _let_go(self, holder: HeldStarts, order: BuildOrder, work: Work, state: PowerState,
                back: Callable[[], object]) -> PowerState:
        """When its network is there. ``state``: as it was started; a guest that is not held ran before."""
        if state != PowerState.PAUSED:
            return state
        try:
            self._wait(order, awaited(order.interfaces), work)
        except Exception:
            with contextlib.suppress(errors.NovaError):
                back()
            raise
        return holder.unpause(order.server_uuid)

    def _wait(self, order: BuildOrder, ids: tuple[str, ...], work: Work) -> None:
        """An interface that the service says it could not connect is an error whatever the options say."""
        try:
            self.events.wait(order.server_uuid, ids, self._patience.timeout_s, work.check)
        except errors.host.VifNotPlugged as error:
            if self._patience.fatal:
                raise
            LOG.warning("guest %s goes on without its network (vif_plugging_is_fatal is off): %s", order.instance_name,
                        error, extra={"server": order.server_uuid})
