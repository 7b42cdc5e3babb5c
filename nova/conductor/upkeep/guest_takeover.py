"""Import of orphaned guests as servers, on an operator's request, after a restore of older databases.

If a guest's server is recorded on another host or on none, its record is moved to the host where the guest was found.
This needs the recorded host's confirmation that it has no such guest. A guest without a record gets one, from the order
that its host stores with it. Cases that cannot be proven so are refused and left unchanged.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from nova import errors, failures
from nova.conductor.engine.deps import Deps
from nova.conductor.upkeep import allocation_audit, orphans
from nova.db.host import aggregates
from nova.db.quota import ledger, server_cells
from nova.db.schema import api_rebuild
from nova.db.server import guest_takeovers, servers
from nova.db.server.guest_takeovers import GuestLocation
from nova.db.server.server_row import ServerRow
from nova.db.sql.engine import Connection
from nova.db.upkeep import orphans as rows
from nova.db.upkeep.orphans import OrphanRow
from nova.model.guest.orders import BuildOrder
from nova.model.guest.orphans import GuestTakeover, OrphanKind
from nova.model.server.states import PowerState, VmState

LOG = logging.getLogger(__name__)

#: power state of the found guest -> vm_state of its server from then on. An operator must first check a guest in any
#: other state.
STATES = {PowerState.RUNNING: VmState.ACTIVE, PowerState.PAUSED: VmState.PAUSED,
          PowerState.SUSPENDED: VmState.SUSPENDED, PowerState.SHUTDOWN: VmState.STOPPED}


class _Found(NamedTuple):
    """An orphan and the facts for its import. ``server``: its row; None if it has no record."""

    row: OrphanRow
    order: BuildOrder
    place: GuestLocation
    server: ServerRow | None
    epoch: int  # newer than all epochs that the host has seen


class GuestTakeovers:
    """The RPC call that imports orphaned guests."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def adopt_stranger(self, stranger_id: int, change: bool) -> GuestTakeover:
        """Import an orphaned guest, or only show the result if ``change`` is false. A refusal changes nothing. Raises
        orphan.NotFound, Known, NotAdoptable; network.AddressTaken."""
        with self.deps.cell.reading() as tx:
            row = rows.get(tx, stranger_id)
        found = self._found(row, self._server(row))
        notes = self._take_over(found) if change else ()
        return GuestTakeover(
            orphan=orphans.shown(row), name=found.order.name, project_id=found.order.project_id,
            user_id=found.order.user_id, flavor=found.order.flavor.name, vm_state=found.place.vm_state,
            addresses=tuple(one.address for each in found.order.interfaces for one in each.addresses),
            former_host=found.server.host if found.server else None, is_new=found.server is None, notes=notes)

    # -- checks

    def _server(self, row: OrphanRow) -> ServerRow | None:
        """Return the row of the guest's live server, or None if it has no record. Raises orphan.NotAdoptable,
        Known."""
        if row.kind != OrphanKind.GUEST.value or row.what == orphans.NO_DOMAIN:
            raise _refused(row, "it is not a guest")
        verdict = orphans.verdicts(self.deps, [row]).get(row.id)
        if verdict is None:
            raise errors.orphan.Known(id=row.id, why="a record explains it, or an operation works on its server")
        if verdict.host:
            self._check_gone(row, verdict.host)
        with self.deps.cell.reading() as tx:
            server = servers.rows_of(tx, [row.server_uuid], with_deleted=True).get(row.server_uuid)
        if server is not None and server.deleted:
            raise _refused(row, "its server was deleted")
        return server

    def _check_gone(self, row: OrphanRow, host: str) -> None:
        """Check that the recorded host confirms that it has no such guest; otherwise the guest would exist twice."""
        try:
            self.deps.compute.device_places(host, row.server_uuid)
        except errors.NotFound:
            return
        except errors.NovaError as error:
            raise _refused(row, f"{host}, the host of its record, does not answer ({error.message})") from None
        raise _refused(row, f"{host}, the host of its record, also has this guest")

    def _found(self, row: OrphanRow, server: ServerRow | None) -> _Found:
        with failures.replaced(errors.NovaError,
                lambda error: _refused(row, f"{row.host} did not return its order ({error.message})")):
            kept = self.deps.compute.kept_guest(row.host, row.server_uuid)
        order = kept.order
        if order.server_uuid != row.server_uuid:
            raise _refused(row, f"{row.host} reports it as another server's guest")
        if kept.power_state not in STATES:
            raise _refused(row, f"its power state is {kept.power_state.name.lower()}: start it or shut it down on "
                                f"{row.host}")
        with self.deps.cell.reading() as tx:
            node = guest_takeovers.node_of(tx, row.host, order.node)
            taken = server is None and guest_takeovers.number_taken(tx, order.id)
        if node is None:
            raise _refused(row, f"{row.host} has reported no node {order.node or 'yet'}")
        if taken:
            raise _refused(row, f"another server has its number, {order.id}, and therefore the name "
                                f"{order.instance_name}")
        with self.deps.api.reading() as tx:
            zone = aggregates.zones(tx, [row.host]).get(row.host, self.deps.settings.default_availability_zone)
        place = GuestLocation(row.host, *node, zone, STATES[kept.power_state], kept.power_state)
        return _Found(row, order, place, server, 1 + max(row.epoch, order.fence.epoch, server.epoch if server else 0))

    # -- import

    def _take_over(self, found: _Found) -> tuple[str, ...]:
        """Write the import, the cell's records first: after a crash the continuous audit finds the missing parts."""
        self.deps.cell.transact(lambda tx: self._write(tx, found))
        self._count(found)
        stores = allocation_audit.stores_of(self.deps)
        audited = allocation_audit.audit(stores, found.order.server_uuid, allocation_audit.ALL)
        self.deps.networking.taken_over(found.order, found.row.host)
        for host in {found.row.host, *([found.server.host] if found.server and found.server.host else [])}:
            self.deps.feed.host_changed(host)
        LOG.warning("orphan %d on host %s was imported on operator request: %s", found.row.id, found.row.host,
                    "its server had no record" if found.server is None else
                    f"its record placed it on {found.server.host or 'no host'}",
                    extra={"server": found.order.server_uuid})
        return (f"Its allocation on host {found.row.host} is unknown: "
                f"{audited.failed.message}",) if audited.failed else ()

    def _write(self, tx: Connection, found: _Found) -> None:
        if found.server is None:
            guest_takeovers.insert(tx, found.order, found.place, found.epoch)
        elif not guest_takeovers.move(tx, found.server, found.place, found.epoch):
            raise errors.orphan.Known(id=found.row.id, why="an operation works on its server")
        self.deps.networking.take_over(tx, found.order, found.row.host, found.server is not None)
        rows.take_over(tx, found.row.id)

    def _count(self, found: _Found) -> None:
        """Ensure that the server has an open ledger row with this epoch. Without a record in the cell the row may have
        been closed meanwhile; it does not exist if the api database is older too."""
        with self.deps.cell.reading() as cell:
            [row] = api_rebuild.proofs(cell, [found.order.server_uuid])

        def work(tx: Connection) -> None:
            if api_rebuild.without_ledger_row(tx, [row]):
                api_rebuild.open_rows(tx, [row], self.deps.cell_uuid)
            server_cells.reopen(tx, [row.uuid], self.deps.cell_uuid)
            ledger.raise_epochs(tx, {row.uuid: found.epoch})
        self.deps.api.transact(work)


def _refused(row: OrphanRow, why: str) -> errors.NovaError:
    return errors.orphan.NotAdoptable(id=row.id, why=why)
