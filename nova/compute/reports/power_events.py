"""Spontaneous changes of power states: gathered for a moment, read again, and reported to the conductor."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Collection

from nova import concurrency, failures
from nova.compute.host import Host
from nova.compute.orders.fences import Fences
from nova.compute.orders.orders import Orders, Work
from nova.model.guest.orders import GuestState, PowerReport
from nova.model.server.states import PowerState
from nova.rpc.contracts.conductor_host import ConductorHostRPC
from nova.virt.interface import Driver

LOG = logging.getLogger(__name__)

GATHER_S = 0.3  # a guest that goes down and up within this time is one report, and so is a host full of guests
RETRY_S = 5.0  # after a report that could not be sent


class PowerEvents:
    """The driver's listener. Power states that an order's outcome contains are not reported again."""

    def __init__(self, driver: Driver, conductor: ConductorHostRPC, orders: Orders, fences: Fences, host: Host) -> None:
        self._driver, self._conductor, self._host = driver, conductor, host
        self._orders, self._fences = orders, fences
        self._pending: set[str] = set()
        self._reported: dict[str, PowerState] = {}
        self._lock = threading.Lock()
        self._gathering = False

    def on_event(self, state: GuestState) -> None:
        """Record that a guest's power state changed. Fast, and safe in any thread of this process."""
        with self._lock:
            self._pending.add(state.server_uuid)
        if not self._orders.busy(state.server_uuid):
            self._flush_soon(GATHER_S)

    def order_finished(self, work: Work) -> None:
        """Handle the end of an order, whose outcome reported this guest's state; check for changes in the meantime. The
        outcome of a late order may not have reached the conductor: the state is reported, too."""
        uuid, outcome = work.key.server_uuid, work.outcome
        with self._lock:
            if work.late:
                self._pending.add(uuid)
            if outcome is not None and not work.late and outcome.ok and outcome.power_state != PowerState.NOSTATE:
                self._reported[uuid] = outcome.power_state
            else:
                self._reported.pop(uuid, None)  # also for a guest that is gone: no other code would remove it
            pending = uuid in self._pending
        if pending:
            self._flush_soon(GATHER_S)

    def flush(self) -> int:
        """Send changed states that the conductor does not know yet; return how many were sent."""
        with self._lock:
            pending, self._pending = self._pending, set()
        states, waiting = [], set()
        for uuid in pending:
            mark, epoch = self._orders.mark(), self._epoch(uuid)
            state = self._driver.lifecycle.power_state(uuid)
            if state is None and self._reported.get(uuid, PowerState.NOSTATE) != PowerState.NOSTATE:
                state = self._undefined(uuid)  # no order removed it: that order would have reported it
            if not self._orders.quiet_since(uuid, mark):
                waiting.add(uuid)  # checked again when its order ends
            elif state is not None and state != self._reported.get(uuid):
                states.append(GuestState(server_uuid=uuid, power_state=state, epoch=epoch))
        with self._lock:
            self._pending |= waiting
        self._send(PowerReport(host=self._host.name, guests=tuple(states)))
        return len(states)

    def report_all(self, missing: Collection[str] = ()) -> int:
        """Report the state of every guest, as a safety net, except guests with an order in progress; return how many
        were sent. ``missing``: further servers that should have a guest here."""
        mark = self._orders.mark()
        epochs = {guest.server_uuid: self._epoch(guest.server_uuid) for guest in self._driver.guests()}
        epochs |= {uuid: self._epoch(uuid) for uuid in missing}
        found = {guest.server_uuid: guest.power_state for guest in self._driver.guests()}
        found |= {uuid: PowerState.NOSTATE for uuid in missing if uuid not in found}
        states = tuple(GuestState(server_uuid=uuid, power_state=self._real(uuid, state), epoch=epochs.get(uuid, 0))
                       for uuid, state in found.items() if self._orders.quiet_since(uuid, mark))
        if states or not found:
            self._send(PowerReport(host=self._host.name, guests=states, all_guests=True))
        if len(states) == len(found):
            with self._lock:
                self._reported = {uuid: state for uuid, state in self._reported.items() if uuid in found}
        return len(states)

    def _real(self, server_uuid: str, state: PowerState) -> PowerState:
        """Return the state, or off for a guest that this host knows but the hypervisor does not."""
        if state != PowerState.NOSTATE or self._driver.lifecycle.power_state(server_uuid) is not None:
            return state
        return self._undefined(server_uuid)

    def _undefined(self, server_uuid: str) -> PowerState:
        if self._reported.get(server_uuid) != PowerState.SHUTDOWN:
            LOG.warning("guest %s is no longer defined in the hypervisor, although no order removed it; treating it as "
                        "off. A start redefines it", server_uuid, extra={"server": server_uuid})
        return PowerState.SHUTDOWN

    def _epoch(self, server_uuid: str) -> int:
        """Return the newest epoch seen. It is read before the state, so that a report cannot claim to be newer than it
        is."""
        return max(0, self._fences.known(server_uuid).epoch)

    def _send(self, report: PowerReport) -> None:
        if not report.guests and not report.all_guests:
            return
        self._conductor.report_power(self._host.name, report)
        with self._lock:
            self._reported.update({guest.server_uuid: guest.power_state for guest in report.guests})

    def _flush_soon(self, seconds: float) -> None:
        with self._lock:
            if self._gathering:
                return
            self._gathering = True
        concurrency.spawn(self._flush_later, seconds, name="power-events")

    def _flush_later(self, seconds: float) -> None:
        """Gather and send reports; repeat while a report could not be sent."""
        concurrency.sleep(seconds)
        with self._lock:
            self._gathering = False
            pending = set(self._pending)
        if error := failures.failure_of(self.flush):
            LOG.warning("could not report the power states of %d guests, will retry: %s",
                        len(pending), error)
            with self._lock:
                self._pending |= pending
            self._flush_soon(RETRY_S * random.uniform(1, 2))
