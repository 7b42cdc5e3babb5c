"""Live migration of guests between hosts."""

from __future__ import annotations

import logging

from nova import errors, failures
from nova.compute.abilities import able
from nova.compute.guests.build import BuildTools
from nova.compute.guests.cold_moves import cache_what_there_is
from nova.compute.guests.live_progress import LiveProgress, ProgressWatch
from nova.compute.host import Host, checked_uuid
from nova.compute.orders.fences import Fences
from nova.compute.orders.orders import Orders, Work
from nova.compute.orders.permission import BatchPermission
from nova.model.guest.orders import GuestOrder, LiveOrder, MoveOrder, Outcome
from nova.model.server.states import PowerState
from nova.rpc.contracts.conductor_host import ConductorHostRPC
from nova.virt.interface import LiveMoves

LOG = logging.getLogger(__name__)


class LiveGuests:
    def __init__(self, tools: BuildTools, orders: Orders, fences: Fences, conductor: ConductorHostRPC,
                 host: Host) -> None:
        self._tools, self._driver, self._orders, self._fences = tools, tools.driver, orders, fences
        self._conductor, self._host = conductor, host

    # --- at the source

    def describe(self, order: GuestOrder, work: Work, permission: BatchPermission) -> Outcome:
        moves = self._able()
        work.check()
        source = moves.describe(order.server_uuid)
        return Outcome(server_uuid=order.server_uuid, source=source,
                       power_state=self._driver.lifecycle.power_state(order.server_uuid) or source.power_state)

    def migrate(self, order: LiveOrder, work: Work, permission: BatchPermission) -> PowerState:
        """Migrate the guest; return when it runs at its destination. A newer order or an abort ends the migration, and
        the guest stays here."""
        moves = self._able()
        permission.pass_(order.server_uuid)
        work.check()
        if work.aborted:  # while the order waited for its turn
            raise errors.move.MigrationAborted(uuid=order.server_uuid)
        watch = ProgressWatch(self._conductor, self._host, self._fences, order.server_uuid)
        progress = LiveProgress(self._conductor, self._host, order.server_uuid, order.fence.epoch, watch.refresh)
        progress.start()
        try:
            moves.migrate(order, progress.note,
                           lambda: work.aborted or watch.lost or work.stopped_error() is not None)
        except Exception as error:  # an abort makes the hypervisor's call fail in any way
            if work.aborted:
                raise errors.move.MigrationAborted(uuid=order.server_uuid) from error
            if watch.lost:
                raise errors.host.OrderNotGranted(uuid=order.server_uuid, epoch=order.fence.epoch) from error
            raise
        finally:
            progress.end()
        self._let_volumes_go(order)
        return PowerState.NOSTATE

    def _let_volumes_go(self, order: LiveOrder) -> None:
        """Disconnect the volumes here. The guest runs at the destination even if this fails; an error would say that it
        runs here. Leftovers are removed when the guest is destroyed here."""
        with failures.keep_running(LOG, "could not disconnect the volumes of guest %s after it left: %s",
                order.instance_name, level=logging.WARNING, extra={"server": order.server_uuid}):
            self._tools.volumes.disconnect(order.server_uuid)

    def abort(self, server_uuid: str, epoch: int) -> None:
        """Abort the live migration. Raises host.OrderOvertaken if a newer operation has the server; Conflict if no
        migration is in progress."""
        moves, work = self._under_way(server_uuid, epoch)
        if work is not None:
            work.aborted = True
        try:
            moves.abort(server_uuid)
        except errors.Conflict:
            if work is None:
                raise
            LOG.info("the migration had not begun yet, and was cancelled", extra={"server": server_uuid})

    def force(self, server_uuid: str, epoch: int) -> None:
        moves, _work = self._under_way(server_uuid, epoch)
        moves.force(server_uuid)

    def _under_way(self, server_uuid: str, epoch: int) -> tuple[LiveMoves, Work | None]:
        moves = self._able()
        self._fences.check(checked_uuid(server_uuid), epoch)
        return moves, self._orders.migrating(server_uuid)

    # --- at the destination

    def prepare(self, order: MoveOrder, work: Work, permission: BatchPermission) -> Outcome:
        """Prepare this host for an incoming guest. A failure removes the taps; the driver handles the disks, which may
        be the guest's own, shared."""
        moves, uuid = self._able(), order.server_uuid
        work.check()
        self._tools.volumes.check(order.build)
        self._tools.markers.set(order.build, order.fence)

        def undo() -> None:
            self._tools.volumes.disconnect(uuid)
            self._driver.interfaces.unplug(uuid, order.build)
            self._tools.markers.clear(uuid)
        with failures.on_failure(undo, quiet=True):
            cache_what_there_is(self._tools, order.build)
            work.check()
            arrival = moves.prepare_arrival(order, self._tools.images)
            self._tools.markers.set(order.build, order.fence, own_disks=not arrival.shared, live=True)
        self._tools.starter.wait_for_arrival(order.build, work)  # after a failure, the mark tells whose disks are here
        return Outcome(server_uuid=uuid, arrival=arrival)

    def finish_arrival(self, order: MoveOrder, work: Work, permission: BatchPermission) -> PowerState:
        state = self._able().finish_arrival(order)
        self._tools.markers.clear(order.server_uuid)
        return state

    def _able(self) -> LiveMoves:
        return able(self._driver.live_moves, self._tools.host, "move running guests")
