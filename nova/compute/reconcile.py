"""Reconciliation of the guests on this host with the conductor's records, at start and periodically. Destroys only
guests that a record marks as gone."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from nova import failures
from nova.compute.filter.guard import Guard, NoGuard
from nova.compute.guests.build_markers import BuildMarkers
from nova.compute.guests.lifecycle import Guests
from nova.compute.guests.volumes import GuestVolumes
from nova.compute.host import Host
from nova.compute.orders.fences import Fences
from nova.compute.orders.orders import Orders
from nova.compute.reports.power_events import PowerEvents
from nova.conf._options import Options
from nova.model.guest.orders import ExpectedGuest, Permission
from nova.model.server.states import PowerState, VmState
from nova.rpc.contracts.conductor_host import ConductorHostRPC
from nova.virt.interface import Driver

LOG = logging.getLogger(__name__)

NAMED = 5  # names listed in a log line


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED]) + (", ..." if len(names) > NAMED else "")


@dataclass(frozen=True)
class GuestManagers:
    """The objects that manage the host's guests, passed around together."""

    driver: Driver
    guests: Guests
    orders: Orders
    fences: Fences
    markers: BuildMarkers
    events: PowerEvents
    guard: Guard = NoGuard()


class Reconciler:
    """Reconciles guests with records. ``options``: resume_guests_state_on_host_boot, running_deleted_instance_action
    and its timeout."""

    def __init__(self, managers: GuestManagers, conductor: ConductorHostRPC, options: Options, host: Host) -> None:
        self._managers, self._conductor, self._options, self._host = managers, conductor, options, host

    def at_start(self) -> None:
        """Reconcile before orders are accepted. Guests in the middle of an operation are left to that operation."""
        states = {guest.server_uuid: guest.power_state for guest in self._managers.driver.guests()}
        have = {*states, *self._managers.markers.all()}
        source_copies = self._source_copies()
        expected = self._expected(have | source_copies)
        for guest in expected:
            if self._is_due(guest):
                self._remove(guest, have | source_copies)
        settled = [guest for guest in expected if not guest.gone and guest.task_state is None]
        self._report_orphans(have, expected)
        self._tell_of_copies(source_copies - {guest.server_uuid for guest in expected if guest.gone})
        self._tell_of_options([guest for guest in settled
                               if states.get(guest.server_uuid, PowerState.NOSTATE) != PowerState.NOSTATE])
        down = [guest for guest in settled if guest.vm_state == VmState.ACTIVE
                and states.get(guest.server_uuid, PowerState.NOSTATE) != PowerState.RUNNING]
        self._resume(down, states)
        self._managers.events.report_all([guest.server_uuid for guest in down if guest.server_uuid not in states])

    def _tell_of_options(self, here: Sequence[ExpectedGuest]) -> None:
        """Warn of options that changed while guests exist here, so that an operator learns of it before the next order
        fails."""
        if self._managers.driver.kept_orders is None:
            return
        orders = [(guest, self._managers.driver.kept_orders.kept_order(guest.server_uuid)) for guest in here]
        lost = [guest.server_uuid for guest, order in orders if order is None]
        if lost:
            LOG.warning("%d guests on this host have no directory in [DEFAULT]instances_path, so orders to them will "
                        "fail: %s. Was the option changed, or is a disk not mounted?", len(lost), _some(lost))
        renamed = [f"{order.instance_name} (now {guest.instance_name})" for guest, order in orders
                   if order is not None and order.instance_name != guest.instance_name]
        if renamed:
            LOG.warning("%d guests on this host have names that differ from the conductors' "
                        "[DEFAULT]instance_name_template: %s. Restore the option: tools find guests by their names",
                        len(renamed), _some(renamed))

    def sweep(self) -> int:
        """Apply running_deleted_instance_action to guests that a record marks as gone, and return how many there
        are."""
        action = self._options.running_deleted_instance_action
        if action == "noop":
            return 0
        have = {guest.server_uuid for guest in self._managers.driver.guests()} | set(self._managers.markers.all())
        have |= self._source_copies()
        found = [guest for guest in self._expected(have) if self._is_due(guest) and guest.server_uuid in have
                 and not self._managers.orders.busy(guest.server_uuid)]
        for guest in found:
            LOG.warning("guest %s is still on this host although it was deleted or moved away (action: %s)",
                        guest.instance_name, action, extra={"server": guest.server_uuid})
            if action == "reap":
                self._remove(guest, have)
            elif action == "shutdown":
                self._shut_down(guest)
        return len(found)

    def _is_due(self, guest: ExpectedGuest) -> bool:
        """True if a record has marked the guest as gone for at least running_deleted_instance_timeout."""
        return guest.gone and guest.gone_s >= self._options.running_deleted_instance_timeout

    def _source_copies(self) -> frozenset[str]:
        """Return the servers with a source copy here. A source copy waits for its operation or its confirmation, unless
        a record marks the guest as gone."""
        moves = self._managers.driver.cold_moves
        return moves.kept_sources() if moves is not None else frozenset()

    def _expected(self, have: Iterable[str]) -> tuple[ExpectedGuest, ...]:
        return self._conductor.expected_guests(self._host.name, tuple(sorted(have)))

    def _remove(self, guest: ExpectedGuest, have: set[str]) -> None:
        """Remove a guest that a record marks as gone. After a failure, the next sweep tries again."""
        uuid = guest.server_uuid
        if uuid not in have:
            return
        with failures.keep_running(LOG, "guest %s was deleted or moved away, but could not be removed",
                guest.instance_name, extra={"server": uuid}):
            with self._managers.orders.alone(uuid):
                if self._newer(guest):
                    return
                self._managers.guests.remove(uuid)
                self._managers.fences.note(uuid, guest.epoch, destroyed=True)
            LOG.info("removed guest %s, which was deleted or moved away", guest.instance_name, extra={"server": uuid})

    def _shut_down(self, guest: ExpectedGuest) -> None:
        lifecycle = self._managers.driver.lifecycle
        with failures.keep_running(LOG, "guest %s could not be shut down", guest.instance_name,
                extra={"server": guest.server_uuid}), self._managers.orders.alone(guest.server_uuid):
            if not self._newer(guest) and lifecycle.power_state(guest.server_uuid) == PowerState.RUNNING:
                lifecycle.shut_down(guest.server_uuid, 0)

    def _newer(self, guest: ExpectedGuest) -> bool:
        """True if the guest here was built after the epoch of the record, so the guest has come back."""
        return self._managers.fences.known(guest.server_uuid).built > guest.epoch

    def _report_orphans(self, have: set[str], expected: tuple[ExpectedGuest, ...]) -> None:
        for uuid in sorted(have - {guest.server_uuid for guest in expected}):
            LOG.warning("guest %s is on this host, but no record says that it belongs here or is gone; leaving it "
                        "unchanged. If it is not wanted, remove it manually", uuid, extra={"server": uuid})

    @staticmethod
    def _tell_of_copies(source_copies: frozenset[str]) -> None:
        """Log the source copies here. If the host's pending cleanups were dropped, such a cleanup is the only record of
        the copy, and no process removes it."""
        copies = ", ".join(f"{uuid}_resize" for uuid in sorted(source_copies))
        if copies:
            LOG.info("source copies of guests that left by a cold migration stay until it is confirmed or reverted: "
                     "%s. If a copy's server is in no such migration (openstack server show), remove the copy manually",
                     copies)

    def _resume(self, down: list[ExpectedGuest], states: dict[str, PowerState]) -> None:
        """Start guests that should be running, if the operator enabled that; the states of the others are reported
        afterwards."""
        for guest in down:
            if guest.server_uuid not in states:
                LOG.error("guest %s should be on this host but is missing", guest.instance_name,
                          extra={"server": guest.server_uuid})
        wanted = [guest for guest in down if guest.power_state == PowerState.RUNNING
                  and states.get(guest.server_uuid) in (PowerState.SHUTDOWN, PowerState.CRASHED, PowerState.NOSTATE)]
        if not wanted or not self._options.resume_guests_state_on_host_boot:
            return
        asked = tuple(Permission(server_uuid=guest.server_uuid, epoch=guest.epoch) for guest in wanted)
        answer = self._conductor.may_proceed(self._host.name, asked)
        granted = {permission.server_uuid for permission in answer if permission.granted}
        for guest in wanted:
            if guest.server_uuid in granted:
                self._start(guest)

    def _start(self, guest: ExpectedGuest) -> None:
        with failures.keep_running(LOG, "guest %s ran before this start and could not be restarted",
                guest.instance_name, extra={"server": guest.server_uuid}):
            with self._managers.orders.alone(guest.server_uuid):
                self._connect(guest.server_uuid)
                self._managers.driver.lifecycle.start(guest.server_uuid)
            LOG.info("restarted guest %s", guest.instance_name, extra={"server": guest.server_uuid})

    def _connect(self, server_uuid: str) -> None:
        """Plug interfaces and connect volumes: a rebooted host has no taps, bridges or mounts, and may have no packet
        filter. The conductor has just sent the filter rules; those of the kept order are outdated. This does not wait
        for network events: they arrive only when orders are accepted, and it is unknown which interfaces the network
        service still considers connected."""
        driver = self._managers.driver
        order = driver.kept_orders.kept_order(server_uuid) if driver.kept_orders is not None else None
        if order is not None:
            self._managers.guard.guard(msgspec.structs.replace(order, firewall=None))
            driver.interfaces.plug(order)
            GuestVolumes(driver, self._host.name).connect(order)
