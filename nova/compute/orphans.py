"""Orphan detection: reports guests and source copies here without a record, and removes them on the conductors'
request.

An orphan that is seen once may be in the middle of an operation; an orphan that is seen twice in a row is reported. The
conductors check whether a record explains it. Only orphans that their answer names are removed, immediately, and only
if this host has seen no newer order for the server.
"""

from __future__ import annotations

import logging
import threading

from nova import errors, failures
from nova.compute.host import Host
from nova.compute.reconcile import GuestManagers
from nova.model.guest.orphans import MOST_ORPHANS, FoundOrphan, OrphanKind, OrphanRemoval, OrphanReport
from nova.model.server.states import PowerState
from nova.rpc.contracts.conductor_host import ConductorHostRPC

LOG = logging.getLogger(__name__)

LOOK_S = 600.0  # seconds between two checks

Found = dict[tuple[OrphanKind, str], FoundOrphan]


class OrphanReports:
    """Reports orphans to the conductors; runs one check at a time."""

    def __init__(self, managers: GuestManagers, conductor: ConductorHostRPC, host: Host) -> None:
        self._managers, self._conductor, self._host = managers, conductor, host
        self._before: Found = {}
        self._reported: OrphanReport | None = None
        self._lock = threading.Lock()

    def scan(self, ask: bool = False) -> None:
        """Send a report if it changed; with ``ask`` always, because a removal was requested."""
        with self._lock:
            now = self._found()
            report = _report(self._host.name, {key: one for key, one in now.items() if key in self._before})
            self._before = now
            if ask or report != self._reported:
                self._tell(report)

    def _tell(self, report: OrphanReport) -> None:
        try:
            removals = self._conductor.report_strangers(self._host.name, report)
        except errors.PeerTooOld:
            return  # the conductors are upgraded soon
        self._reported = report
        reported = {(one.kind, one.server_uuid) for one in report.found}
        removed = [one for one in removals if (one.kind, one.server_uuid) in reported and self._remove(one)]
        if removed:
            self._reported = None  # the next check reports the rest

    def _found(self) -> Found:
        """Return guests (including half-built ones) and source copies that are not in the conductor's list, except
        those with an order in progress."""
        driver, fences = self._managers.driver, self._managers.fences
        states = {guest.server_uuid: guest.power_state for guest in driver.guests()}
        copies = driver.cold_moves.kept_sources() if driver.cold_moves is not None else frozenset()
        guests = {*states, *self._managers.markers.all()}
        expected = self._conductor.expected_guests(self._host.name, tuple(sorted(guests | copies)))
        known = {guest.server_uuid for guest in expected}
        strange = [(OrphanKind.GUEST, uuid) for uuid in guests - known]
        strange += [(OrphanKind.SOURCE_COPY, uuid) for uuid in copies - known]
        return {(kind, uuid): FoundOrphan(kind=kind, server_uuid=uuid, epoch=fences.known(uuid).epoch,
                                          power_state=states.get(uuid, PowerState.NOSTATE))
                for kind, uuid in sorted(strange) if not self._managers.orders.busy(uuid)}

    def _remove(self, one: OrphanRemoval) -> bool:
        """Remove an orphan, and return whether it is gone. A failure is logged; the removal is retried when it is
        requested again."""
        uuid = one.server_uuid
        with failures.keep_running(LOG, "could not remove an orphaned %s", one.kind, extra={"server": uuid}):
            with self._managers.orders.alone(uuid):
                if self._managers.fences.known(uuid).epoch != one.epoch:
                    LOG.warning("keeping the orphan: a newer order arrived for its server", extra={"server": uuid})
                    return False
                if one.kind is OrphanKind.SOURCE_COPY:
                    self._managers.guests.forget(uuid)
                else:
                    self._managers.guests.remove(uuid, keep_disks=one.keep_disks)
                    self._managers.fences.note(uuid, one.epoch, destroyed=True)
            LOG.warning("removed an orphaned %s at an operator's request", one.kind, extra={"server": uuid})
            return True
        return False


def _report(host: str, found: Found) -> OrphanReport:
    chosen = [found[key] for key in sorted(found)]
    return OrphanReport(host=host, found=tuple(chosen[:MOST_ORPHANS]), more=len(chosen[MOST_ORPHANS:]))
