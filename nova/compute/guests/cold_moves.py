"""Cold migration and resize of guests that are off: leave, fetch and finish; restore or forget the source.

At any moment, the guest's data is complete in one place that this module does not touch: the source copy, which is kept
until the conductor allows its removal.
"""

from __future__ import annotations

import logging

import msgspec

from nova import concurrency, failures
from nova.compute.abilities import able
from nova.compute.guests.build import BuildTools, cache_images, images_of
from nova.compute.guests.lifecycle import Guests
from nova.compute.orders.orders import Work
from nova.compute.orders.permission import BatchPermission
from nova.model.guest.orders import BuildOrder, GuestOrder, MoveOrder, Outcome
from nova.model.server.states import PowerState
from nova.virt.interface import ColdMoves

LOG = logging.getLogger(__name__)


class Moves:
    def __init__(self, tools: BuildTools, guests: Guests) -> None:
        self._tools, self._driver, self._guests = tools, tools.driver, guests

    # --- at the source

    def leave(self, order: GuestOrder, work: Work, permission: BatchPermission) -> Outcome:
        """Shut down and unplug the guest, and keep it as a source copy. A failure before the last step restarts the
        guest, if it was running."""
        moves, uuid = self._able(), order.server_uuid
        state = self._driver.lifecycle.power_state(uuid)
        if state is not None:
            permission.pass_(uuid)
            work.check()
            self._forget_older(moves, order)
        self._tools.source_marks.set(order)

        def undo() -> None:
            if uuid not in moves.kept_sources():
                self._tools.source_marks.clear(uuid)
            self._run_on(order, state, work, permission)
        with failures.on_failure(undo):
            if state is not None:
                self._driver.lifecycle.shut_down(uuid, order.timeout_s)
                work.check()
                self._driver.interfaces.unplug(uuid, order.build)
            source = moves.leave(uuid)
            self._tools.guard.drop(uuid)
            self._tools.volumes.disconnect(uuid)
        return Outcome(server_uuid=uuid, power_state=PowerState.SHUTDOWN,
                       source=msgspec.structs.replace(source, host=source.host or self._tools.host))

    def _forget_older(self, moves: ColdMoves, order: GuestOrder) -> None:
        """Remove the source copy of an earlier move; that move is over, because the guest is here again."""
        mark = self._tools.source_marks.get(order.server_uuid)
        if mark is not None and mark.operation_id != order.fence.operation_id \
                and order.server_uuid in moves.kept_sources():
            LOG.warning("removing the source copy that operation %d kept", mark.operation_id,
                        extra={"server": order.server_uuid})
            moves.forget(order.server_uuid)

    def _run_on(self, order: GuestOrder, state: PowerState | None, work: Work, permission: BatchPermission) -> None:
        """Restart a guest that could not leave. Does nothing if a newer order has the server: ``start`` checks that."""
        uuid = order.server_uuid
        if state != PowerState.RUNNING or self._driver.lifecycle.power_state(uuid) in (None, PowerState.RUNNING):
            return
        with failures.keep_running(LOG, "guest %s could not leave, and could not be restarted: %s", order.instance_name,
                level=logging.WARNING, extra={"server": uuid}):
            self._guests.start(order, work, permission)

    def restore_source(self, order: MoveOrder, work: Work, permission: BatchPermission) -> PowerState:
        """Restore the guest from its source copy. A guest that is here next to the copy was made by the same move, and
        is removed."""
        self._able()
        uuid = order.server_uuid
        permission.pass_(uuid)
        work.check()
        self.back(uuid, order.build)
        state = self._driver.lifecycle.power_state(uuid)
        if state != PowerState.RUNNING:
            self._tools.volumes.connect(order.build)
        if not order.start:
            return self._driver.lifecycle.define(order.build) if state is None else state
        if state == PowerState.RUNNING:
            return state
        self._driver.interfaces.plug(order.build)
        permission.pass_(uuid)
        work.check()
        return self._tools.starter.new(order.build, work)

    def back(self, server_uuid: str, build: BuildOrder | None = None) -> None:
        """Restore the source copy as the guest, without asking the conductor and without starting it. A guest that the
        same move made here is removed. Any other guest stays; the source copy then belongs to an older move."""
        moves = self._driver.cold_moves
        if moves is None or server_uuid not in moves.kept_sources():
            return
        mark = self._tools.source_marks.get(server_uuid)
        if self._driver.lifecycle.power_state(server_uuid) is not None and not (mark is not None and mark.beside):
            LOG.error("the guest is here next to disks that an older move kept: not restoring the disks",
                      extra={"server": server_uuid})
            return
        self._driver.lifecycle.destroy(server_uuid)
        self._tools.volumes.disconnect(server_uuid)
        self._driver.interfaces.unplug(server_uuid, build)
        moves.restore_source(server_uuid)
        self._tools.source_marks.clear(server_uuid)

    def kept_since(self, server_uuid: str, epoch: int) -> bool:
        """True if the source copy was kept by an operation that is newer than ``epoch``."""
        mark = self._tools.source_marks.get(server_uuid)
        return mark is not None and mark.epoch > epoch

    def forget(self, order: GuestOrder, work: Work, permission: BatchPermission) -> PowerState:
        self._able()
        permission.pass_(order.server_uuid)
        work.check()
        self._guests.forget(order.server_uuid)
        return self._driver.lifecycle.power_state(order.server_uuid) or PowerState.NOSTATE

    # --- at the destination

    def fetch(self, order: MoveOrder, work: Work, permission: BatchPermission) -> PowerState:
        """Copy the guest's disks to this host. After a failure, partial disks are removed, except those of a move
        within this host, which restoring handles."""
        moves, uuid = self._able(), order.server_uuid
        work.check()
        if order.source is not None:
            self._tools.markers.set(order.build, order.fence)
        elif self._tools.source_marks.has(uuid):
            self._tools.source_marks.set(order.build, order.fence, beside=True)

        def undo() -> None:
            if order.source is not None:
                self._clear_away(uuid)
        with failures.on_failure(undo):
            cache_what_there_is(self._tools, order.build)
            work.check()
            with concurrency.cancellable(work.check):
                moves.fetch(order, self._tools.images)
            work.check()
        return PowerState.SHUTDOWN

    def _clear_away(self, server_uuid: str) -> None:
        with failures.keep_running(LOG, "partially copied disks could not be removed; the guest stays marked as half "
                "built: %s", level=logging.WARNING, extra={"server": server_uuid}):
            self._driver.disks.remove_disks(server_uuid)
            self._tools.markers.clear(server_uuid)

    def finish(self, order: MoveOrder, work: Work, permission: BatchPermission) -> PowerState:
        """Define the guest here, and start it if ordered. A guest that could not be started is undefined again: it must
        not run here while it runs at its source."""
        self._able()
        uuid, build = order.server_uuid, order.build
        state = self._driver.lifecycle.power_state(uuid)
        if state is not None and (state == PowerState.RUNNING or not order.start):
            self._tools.markers.clear(uuid)
            return state
        permission.pass_(uuid)
        work.check()
        with failures.on_failure(lambda: self._driver.interfaces.unplug(uuid, build), quiet=True), \
                failures.on_failure(lambda: self._tools.volumes.disconnect(uuid), quiet=True), \
                failures.on_failure(lambda: self._driver.lifecycle.destroy(uuid), quiet=True):
            self._driver.interfaces.plug(build)
            self._tools.volumes.connect(build)
            self._tools.drives.renew(build)
            state = self._tools.starter.new(build, work) if order.start else self._driver.lifecycle.define(build)
        self._tools.markers.clear(uuid)
        return state

    def _able(self) -> ColdMoves:
        return able(self._driver.cold_moves, self._tools.host, "move guests")


def cache_what_there_is(tools: BuildTools, build: BuildOrder) -> None:
    """Fetch the base images of a guest's disks, as far as possible. An image that the image service no longer has, or
    cannot provide now, does not stop a move: the source has it too."""
    for image in images_of(build):
        with failures.best_effort(LOG, "could not fetch an image of an incoming guest: %s",
                extra={"server": build.server_uuid}):
            cache_images(tools, (image,))
