"""Start of guests whose network is not connected yet: a guest is held paused until the network service reports that its
interfaces are connected, so that its first packets (a DHCP request, for example) are not lost."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from nova import errors, failures
from nova.compute.guests.plug_events import PlugEvents
from nova.compute.orders.orders import Work
from nova.model.guest.orders import BuildOrder
from nova.model.network.networks import Interface
from nova.model.server.states import PowerState
from nova.virt.interface import Driver, HeldStarts, Suspending

LOG = logging.getLogger(__name__)

#: Interface types that an agent of the network service connects on this host, and reports.
REPORTED = frozenset({"ovs", "bridge", "vhostuser", "hw_veb", "macvtap", "tap"})
CONNECTED = "ACTIVE"


@dataclass(frozen=True)
class VifPlugging:
    """Settings for the wait for interfaces. ``timeout_s`` 0: do not wait. ``fatal``: do not start a guest whose wait
    timed out. ``live``: a live-migrated guest also waits for its interfaces at the destination."""

    timeout_s: int = 300
    fatal: bool = True
    live: bool = True


def awaited(interfaces: Iterable[Interface]) -> tuple[str, ...]:
    """Return the ids of interfaces that are not connected yet and will be when the guest has them. An interface without
    a status (nova-network's) is connected as soon as it is plugged."""
    return tuple(one.id for one in interfaces
                 if one.status is not None and one.status != CONNECTED and one.type in REPORTED)


def awaited_before_arrival(interfaces: Iterable[Interface]) -> tuple[str, ...]:
    """Return the ids of interfaces whose connection a destination can await before the guest arrives. The network
    service has one active binding at a time. It reports the other binding only if there is a device for it to see
    before the tap exists."""
    return tuple(one.id for one in interfaces
                 if one.status is not None and one.type == "ovs" and one.details.get("ovs_hybrid_plug"))


class GuestStarter:
    """Starts guests; if the driver can hold guests, they wait for their network."""

    def __init__(self, driver: Driver, events: PlugEvents, vif_plugging: VifPlugging = VifPlugging()) -> None:  # noqa: B008
        self._driver, self.events, self._vif_plugging = driver, events, vif_plugging

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
        """Resume a suspended guest. If its wait fails, it is suspended again."""
        holder = self._holder(order)
        if holder is None:
            return suspending.resume(order)
        state = holder.resume_held(order)
        return self._let_go(holder, order, work, state, lambda: suspending.suspend(order.server_uuid))

    def wait_for_arrival(self, order: BuildOrder, work: Work) -> None:
        """Wait until the interfaces that are plugged for a live-migrated guest are connected. Raises
        host.VifNotPlugged, host.VifPlugFailed."""
        ids = awaited_before_arrival(order.interfaces)
        if ids and self._vif_plugging.timeout_s and self._vif_plugging.live:
            self._wait(order, ids, work)

    def _holder(self, order: BuildOrder) -> HeldStarts | None:
        """Return the driver's means to hold the guest; None if the guest waits for no event, or cannot be held."""
        return self._driver.held_starts if self._vif_plugging.timeout_s and awaited(order.interfaces) else None

    def _start_held(self, holder: HeldStarts, order: BuildOrder, work: Work) -> PowerState:
        state = holder.start_held(order.server_uuid)
        return self._let_go(holder, order, work, state,
                            lambda: self._driver.lifecycle.shut_down(order.server_uuid, 0))

    def _let_go(self, holder: HeldStarts, order: BuildOrder, work: Work, state: PowerState,
                back: Callable[[], object]) -> PowerState:
        """Unpause the guest when its network is connected. ``state``: the state after the start; a guest that is not
        held was running before."""
        if state != PowerState.PAUSED:
            return state

        def undo() -> None:
            with contextlib.suppress(errors.NovaError):
                back()
        with failures.on_failure(undo):
            self._wait(order, awaited(order.interfaces), work)
        return holder.unpause(order.server_uuid)

    def _wait(self, order: BuildOrder, ids: tuple[str, ...], work: Work) -> None:
        """Wait for the interfaces. An interface that the service reports as failed is always an error, regardless of
        options."""
        try:
            self.events.wait(order.server_uuid, ids, self._vif_plugging.timeout_s, work.check)
        except errors.host.VifNotPlugged as error:
            if self._vif_plugging.fatal:
                raise
            LOG.warning("guest %s continues without its network (vif_plugging_is_fatal is off): %s",
                        order.instance_name, error, extra={"server": order.server_uuid})
