"""Guests that change hosts, or sizes, while they are off: left, fetched, finished; restored, or forgotten.

At any moment the guest's data is whole in one place that nothing here touches: the copy that is kept at the source,
until the conductor says that it may be forgotten.
"""

from __future__ import annotations

import contextlib
import logging

import msgspec

from nova import concurrency, errors
from nova.compute.abilities import able
from nova.compute.guests.build import BuildTools, cache_images, images_of
from nova.compute.guests.lifecycle import Guests
from nova.compute.orders.orders import Work
from nova.compute.orders.permission import BatchGate
from nova.model.guest.orders import BuildOrder, GuestOrder, MoveOrder, Outcome
from nova.model.server.states import PowerState
from nova.virt.interface import ColdMoves

LOG = logging.getLogger(__name__)


class Moves:
    def __init__(self, tools: BuildTools, guests: Guests) -> None:
        self._tools, self._driver, self._guests = tools, tools.driver, guests

    # --- at the source

    def leave(self, order: GuestOrder, work: Work, gate: BatchGate) -> Outcome:
        """Off, unplugged, kept as a source copy. What fails before the last starts the guest again, if it ran."""
        moves, uuid = self._able(), order.server_uuid
        state = self._driver.lifecycle.power_state(uuid)
        if state is not None:
            gate.pass_(uuid)
            work.check()
            self._forget_older(moves, order)
        self._tools.source_marks.set(order)
        try:
            if state is not None:
                self._driver.lifecycle.shut_down(uuid, order.timeout_s)
                work.check()
                self._driver.interfaces.unplug(uuid, order.build)
            source = moves.leave(uuid)
            self._tools.guard.drop(uuid)
            self._tools.volumes.disconnect(uuid)
        except Exception:
            if uuid not in moves.kept_sources():
                self._tools.source_marks.clear(uuid)
            self._run_on(order, state, work, gate)
            raise
        return Outcome(server_uuid=uuid, power_state=PowerState.SHUTDOWN,
                       source=msgspec.structs.replace(source, host=source.host or self._tools.host))

    def _forget_older(self, moves: ColdMoves, order: GuestOrder) -> None:
        """An earlier move's source copy goes (that move is over: the guest is here again)."""
        mark = self._tools.source_marks.get(order.server_uuid)
        if mark is not None and mark.operation_id != order.fence.operation_id \
                and order.server_uuid in moves.kept_sources():
            LOG.warning("forgetting what operation %d put aside", mark.operation_id,
                        extra={"server": order.server_uuid})
            moves.forget(order.server_uuid)

    def _run_on(self, order: GuestOrder, state: PowerState | None, work: Work, gate: BatchGate) -> None:
        """Start a guest that could not leave. Whoever ordered it away meanwhile has another use for it."""
        uuid = order.server_uuid
        if state != PowerState.RUNNING or self._driver.lifecycle.power_state(uuid) in (None, PowerState.RUNNING):
            return
        try:
            self._guests.start(order, work, gate)
        except Exception as error:
            LOG.warning("guest %s could not leave, and is not started again: %s", order.instance_name, error,
                        extra={"server": uuid})

    def restore_source(self, order: MoveOrder, work: Work, gate: BatchGate) -> PowerState:
        """A guest that is here beside its source copy is the one that the move made: it goes."""
        self._able()
        uuid = order.server_uuid
        gate.pass_(uuid)
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
        gate.pass_(uuid)
        work.check()
        return self._tools.starter.new(order.build, work)

    def back(self, server_uuid: str, build: BuildOrder | None = None) -> None:
        """The source copy is the guest's again, without asking; it is not started. The guest that the same move
        made here beside it goes; any other guest stays, and the source copy is an older move's."""
        moves = self._driver.cold_moves
        if moves is None or server_uuid not in moves.kept_sources():
            return
        mark = self._tools.source_marks.get(server_uuid)
        if self._driver.lifecycle.power_state(server_uuid) is not None and not (mark is not None and mark.beside):
            LOG.error("the guest is here beside disks that an older move put aside: they are not taken back",
                      extra={"server": server_uuid})
            return
        self._driver.lifecycle.destroy(server_uuid)
        self._tools.volumes.disconnect(server_uuid)
        self._driver.interfaces.unplug(server_uuid, build)
        moves.restore_source(server_uuid)
        self._tools.source_marks.clear(server_uuid)

    def kept_since(self, server_uuid: str, epoch: int) -> bool:
        """Whether its source copy was kept by an operation that is newer than ``epoch``."""
        mark = self._tools.source_marks.get(server_uuid)
        return mark is not None and mark.epoch > epoch

    def forget(self, order: GuestOrder, work: Work, gate: BatchGate) -> PowerState:
        self._able()
        gate.pass_(order.server_uuid)
        work.check()
        self._guests.forget(order.server_uuid)
        return self._driver.lifecycle.power_state(order.server_uuid) or PowerState.NOSTATE

    # --- at the destination

    def fetch(self, order: MoveOrder, work: Work, gate: BatchGate) -> PowerState:
        """Disks that came only in part go again, but not those of a move within this host: restoring knows them."""
        moves, uuid = self._able(), order.server_uuid
        work.check()
        if order.source is not None:
            self._tools.markers.set(order.build, order.fence)
        elif self._tools.source_marks.has(uuid):
            self._tools.source_marks.set(order.build, order.fence, beside=True)
        try:
            cache_what_there_is(self._tools, order.build)
            work.check()
            with concurrency.while_wanted(work.check):
                moves.fetch(order, self._tools.images)
            work.check()
        except Exception:
            if order.source is not None:
                self._clear_away(uuid)
            raise
        return PowerState.SHUTDOWN

    def _clear_away(self, server_uuid: str) -> None:
        try:
            self._driver.disks.remove_disks(server_uuid)
            self._tools.markers.clear(server_uuid)
        except Exception as error:
            LOG.warning("disks that came only in part could not be removed; the guest stays marked as half built: %s",
                        error, extra={"server": server_uuid})

    def finish(self, order: MoveOrder, work: Work, gate: BatchGate) -> PowerState:
        """A guest that could not be started is undefined again: it must not run here when it runs at its source."""
        self._able()
        uuid, build = order.server_uuid, order.build
        state = self._driver.lifecycle.power_state(uuid)
        if state is not None and (state == PowerState.RUNNING or not order.start):
            self._tools.markers.clear(uuid)
            return state
        gate.pass_(uuid)
        work.check()
        try:
            self._driver.interfaces.plug(build)
            self._tools.volumes.connect(build)
            self._tools.drives.renew(build)
            state = self._tools.starter.new(build, work) if order.start else self._driver.lifecycle.define(build)
        except Exception:
            for undo in (lambda: self._driver.lifecycle.destroy(uuid), lambda: self._tools.volumes.disconnect(uuid),
                         lambda: self._driver.interfaces.unplug(uuid, build)):
                with contextlib.suppress(Exception):
                    undo()
            raise
        self._tools.markers.clear(uuid)
        return state

    def _able(self) -> ColdMoves:
        return able(self._driver.cold_moves, self._tools.host, "move guests")


def cache_what_there_is(tools: BuildTools, build: BuildOrder) -> None:
    """The images that a guest's disks show through where they were not written to. One that the image service has not
    got any more (or can't give now) need not stop a move: the source has it, too."""
    for image in images_of(build):
        try:
            cache_images(tools, (image,))
        except errors.NovaError as error:
            LOG.warning("image of a guest that comes here is not to be had: %s", error,
                        extra={"server": build.server_uuid})
