"""Pending cleanups of this host: undo steps that could not reach it. They are done before it accepts orders, and
reported."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from nova import errors, failures
from nova.compute.guests.cold_moves import Moves
from nova.compute.guests.lifecycle import Guests
from nova.compute.host import Host
from nova.compute.orders.fences import Fences
from nova.compute.orders.orders import Orders
from nova.model.host.services import PendingCleanup
from nova.rpc.contracts.conductor_host import ConductorHostRPC

LOG = logging.getLogger(__name__)


class Cleanups:
    """Pending cleanups, done without asking for permission, because they come from the conductor's own record. (RPC
    messages call a cleanup a debt.)"""

    def __init__(self, guests: Guests, moves: Moves, orders: Orders, fences: Fences, conductor: ConductorHostRPC,
                 host: Host) -> None:
        self._guests, self._moves, self._orders, self._fences = guests, moves, orders, fences
        self._conductor, self._host = conductor, host
        self._open: dict[int, PendingCleanup] = {}
        self._done: set[int] = set()  # done here, but not reported yet
        self._lock = threading.Lock()
        self._steps: dict[str, Callable[[PendingCleanup], None]] = {
            "destroy_guests": self._destroy, "forget_guests": self._forget, "return_guests": self._restore_source,
            "drop_snapshots": self._drop_snapshot}

    def take(self, cleanups: tuple[PendingCleanup, ...]) -> None:
        """Store the conductor's complete list of pending cleanups."""
        with self._lock:
            self._open = {cleanup.id: cleanup for cleanup in cleanups}
            self._done &= set(self._open)

    def do_open(self) -> int:
        """Do the open cleanups, and return the number that is left. A failed one stays open, is logged, and is retried
        later."""
        with self._lock:
            for cleanup in list(self._open.values()):
                if error := failures.failure_of(self._do, cleanup):
                    bug = None if isinstance(error, errors.NovaError) else error
                    LOG.error("cleanup %d (%s) failed, will retry: %s", cleanup.id, cleanup.step, error,
                              exc_info=bug, extra={"server": cleanup.server_uuid})
            return len(self._open)

    def _do(self, cleanup: PendingCleanup) -> None:
        if cleanup.id not in self._done:
            step = self._steps.get(cleanup.step)
            if step is None:
                raise errors.quota.CleanupUnknownStep(step=cleanup.step)
            step(cleanup)
            self._done.add(cleanup.id)
        self._conductor.debt_paid(self._host.name, cleanup.id)
        del self._open[cleanup.id]
        self._done.discard(cleanup.id)
        LOG.info("cleanup %d (%s) is done", cleanup.id, cleanup.step, extra={"server": cleanup.server_uuid})

    def _destroy(self, cleanup: PendingCleanup) -> None:
        with self._orders.alone(cleanup.server_uuid):
            if self._fences.known(cleanup.server_uuid).built > cleanup.epoch:
                LOG.info("the guest was rebuilt after cleanup %d was recorded; skipping the cleanup", cleanup.id,
                         extra={"server": cleanup.server_uuid})
                return
            self._guests.remove(cleanup.server_uuid, keep_disks=cleanup.arguments.get("keep_disks") == "1",
                                operation_id=int(cleanup.arguments.get("operation_id", 0)))
            self._fences.note(cleanup.server_uuid, cleanup.epoch, destroyed=True)

    def _forget(self, cleanup: PendingCleanup) -> None:
        """Remove a confirmed move's source copy, but not a later one's."""
        with self._orders.alone(cleanup.server_uuid):
            if not self._moves.kept_since(cleanup.server_uuid, cleanup.epoch):
                self._guests.forget(cleanup.server_uuid)

    def _restore_source(self, cleanup: PendingCleanup) -> None:
        """Restore the source copy of a move that was given up. The guest is off until its owner starts it."""
        with self._orders.alone(cleanup.server_uuid):
            if not self._moves.kept_since(cleanup.server_uuid, cleanup.epoch):
                self._moves.back(cleanup.server_uuid)

    def _drop_snapshot(self, cleanup: PendingCleanup) -> None:
        """Drop snapshots without waiting for the server's turn: another snapshot of the guest may be uploading for
        hours."""
        given = cleanup.arguments.get("given", "").split()
        for image_id in cleanup.arguments.get("image_id", "").split():
            self._guests.drop_snapshot(cleanup.server_uuid, image_id, image_id in given)
