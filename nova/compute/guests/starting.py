"""Guests started when their network is there: held until the network service says that their interfaces are connected,
so that what they say first (for an address, say) is heard."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from nova import errors
from nova.compute.guests.plug_events import PlugEvents
from nova.compute.orders.orders import Work
from nova.model.networks import Interface
from nova.model.orders import BuildOrder
from nova.model.states import PowerState
from nova.virt.interface import HeldStarts

LOG = logging.getLogger(__name__)

#: Types of interfaces that an agent of the network service connects on this host, and reports.
REPORTED = frozenset({"ovs", "bridge", "vhostuser", "hw_veb", "macvtap", "tap"})
CONNECTED = "ACTIVE"


@dataclass(frozen=True)
class Patience:
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
    """``driver`` has Lifecycle; where it has HeldStarts, too, guests wait for their network."""

    def __init__(self, driver: Any, events: PlugEvents, patience: Patience = Patience()) -> None:  # noqa: B008
        self._driver, self.events, self._patience = driver, events, patience

    def new(self, order: BuildOrder, work: Work) -> PowerState:
        """Define the guest from the order, and start it."""
        if not self._waits(order):
            state: PowerState = self._driver.start_new(order)
            return state
        self._driver.define(order)
        return self._held(order, work, lambda: self._driver.start_held(order.server_uuid), self._off(order))

    def again(self, order: BuildOrder, work: Work) -> PowerState:
        """Start a defined guest."""
        if not self._waits(order):
            state: PowerState = self._driver.start(order.server_uuid)
            return state
        return self._held(order, work, lambda: self._driver.start_held(order.server_uuid), self._off(order))

    def resumed(self, order: BuildOrder, work: Work) -> PowerState:
        """A suspended guest goes on. One that waited in vain is suspended again."""
        if not self._waits(order):
            state: PowerState = self._driver.resume(order)
            return state
        return self._held(order, work, lambda: self._driver.resume_held(order),
                          lambda: self._driver.suspend(order.server_uuid))

    def wait_for_arrival(self, order: BuildOrder, work: Work) -> None:
        """What is plugged in for a guest that comes while it runs, is connected. host.VifNotPlugged,
        host.VifPlugFailed."""
        ids = awaited_before_arrival(order.interfaces)
        if ids and self._patience.timeout_s and self._patience.live:
            self._wait(order, ids, work)

    def _waits(self, order: BuildOrder) -> bool:
        return bool(self._patience.timeout_s and awaited(order.interfaces)) and isinstance(self._driver, HeldStarts)

    def _off(self, order: BuildOrder) -> Callable[[], Any]:
        return lambda: self._driver.shut_down(order.server_uuid, 0)

    def _held(self, order: BuildOrder, work: Work, start: Callable[[], PowerState], back: Callable[[], Any]
              ) -> PowerState:
        state = start()
        if state == PowerState.PAUSED:
            try:
                self._wait(order, awaited(order.interfaces), work)
            except Exception:
                with contextlib.suppress(errors.NovaError):
                    back()
                raise
            state = self._driver.unpause(order.server_uuid)
        return state

    def _wait(self, order: BuildOrder, ids: tuple[str, ...], work: Work) -> None:
        """An interface that the service says it could not connect is an error whatever the options say."""
        try:
            self.events.wait(order.server_uuid, ids, self._patience.timeout_s, work.check)
        except errors.host.VifNotPlugged as error:
            if self._patience.fatal:
                raise
            LOG.warning("guest %s goes on without its network (vif_plugging_is_fatal is off): %s", order.instance_name,
                        error, extra={"server": order.server_uuid})
