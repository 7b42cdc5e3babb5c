"""Guests that are found on a host become servers again, as an operator says: after a restore of older databases.

A guest whose server lives, by its record, on another host (or on none) is where it is found, if that other host says
that it has no such guest. A guest of which no record knows gets a record, from the order that its host keeps beside it.
What cannot be proven so is refused, and stays as it is.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from nova import errors
from nova.conductor.engine.deps import Deps
from nova.conductor.upkeep import allocation_audit, strangers
from nova.conductor.upkeep.allocation_audit import Stores
from nova.db.host import aggregates
from nova.db.quota import ledger
from nova.db.schema import lost_api
from nova.db.server import adoptions, servers
from nova.db.server.adoptions import FoundPlace
from nova.db.server.server_row import ServerRow
from nova.db.sql.engine import Connection
from nova.db.sql.types import AnyRow
from nova.db.upkeep import strangers as rows
from nova.model.guest.orders import BuildOrder
from nova.model.guest.strangers import Adoption, StrangerKind
from nova.model.server.states import PowerState, VmState

LOG = logging.getLogger(__name__)

#: How a guest is found -> what its server is from then on. One in any other state is looked at by an operator first.
STATES = {PowerState.RUNNING: VmState.ACTIVE, PowerState.PAUSED: VmState.PAUSED,
          PowerState.SUSPENDED: VmState.SUSPENDED, PowerState.SHUTDOWN: VmState.STOPPED}


class _Found(NamedTuple):
    """``server``: its row; None: no record knows it."""

    row: AnyRow
    order: BuildOrder
    place: FoundPlace
    server: ServerRow | None
    epoch: int  # newer than all that the host has seen


class Adoptions:
    """The call about them."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def adopt_stranger(self, stranger_id: int, change: bool) -> Adoption:
        """stranger.NotFound, Known, NotAdoptable; network.AddressTaken. A refusal leaves everything as it was."""
        with self.deps.cell.reading() as tx:
            row = rows.get(tx, stranger_id)
        found = self._found(row, self._server(row))
        notes = self._adopt(found) if change else ()
        return Adoption(
            stranger=strangers.shown(row), name=found.order.name, project_id=found.order.project_id,
            user_id=found.order.user_id, flavor=found.order.flavor.name, vm_state=found.place.vm_state,
            addresses=tuple(one.address for each in found.order.interfaces for one in each.addresses),
            former_host=found.server.host if found.server else None, is_new=found.server is None, notes=notes)

    # -- whether it may be

    def _server(self, row: AnyRow) -> ServerRow | None:
        """Its living server's row; None: no record knows it."""
        if row.kind != StrangerKind.GUEST.value or row.what == strangers.NO_DOMAIN:
            raise _refused(row, "it is no guest")
        verdict = strangers.verdicts(self.deps, [row]).get(row.id)
        if verdict is None:
            raise errors.stranger.Known(id=row.id, why="a record explains it, or an operation works on its server")
        if verdict.host:
            self._check_gone(row, verdict.host)
        with self.deps.cell.reading() as tx:
            server = servers.rows_of(tx, [row.server_uuid], with_deleted=True).get(row.server_uuid)
        if server is not None and server.deleted:
            raise _refused(row, "its server was deleted")
        return server

    def _check_gone(self, row: AnyRow, host: str) -> None:
        """The host that the record names says that it has no such guest: else there would be two of it."""
        try:
            self.deps.compute.device_places(host, row.server_uuid)
        except errors.NotFound:
            return
        except errors.NovaError as error:
            raise _refused(row, f"{host}, the host of its record, does not answer ({error.message})") from None
        raise _refused(row, f"{host}, the host of its record, has such a guest, too")

    def _found(self, row: AnyRow, server: ServerRow | None) -> _Found:
        try:
            kept = self.deps.compute.kept_guest(row.host, row.server_uuid)
        except errors.NovaError as error:
            raise _refused(row, f"{row.host} does not say what it is ({error.message})") from None
        order = kept.order
        if order.server_uuid != row.server_uuid:
            raise _refused(row, f"{row.host} says that it is another server's")
        if kept.power_state not in STATES:
            raise _refused(row, f"its power state is {kept.power_state.name.lower()}: start it or shut it off on "
                                f"{row.host}")
        with self.deps.cell.reading() as tx:
            node = adoptions.node_of(tx, row.host, order.node)
            taken = server is None and adoptions.number_taken(tx, order.id)
        if node is None:
            raise _refused(row, f"{row.host} has reported no node {order.node or 'yet'}")
        if taken:
            raise _refused(row, f"another server has its number, {order.id}, and so the name {order.instance_name}")
        with self.deps.api.reading() as tx:
            zone = aggregates.zones(tx, [row.host]).get(row.host, self.deps.settings.default_availability_zone)
        place = FoundPlace(row.host, *node, zone, STATES[kept.power_state], kept.power_state)
        return _Found(row, order, place, server, 1 + max(row.epoch, order.fence.epoch, server.epoch if server else 0))

    # -- doing it

    def _adopt(self, found: _Found) -> tuple[str, ...]:
        """Records of the cell first: what is missing elsewhere after a crash, the continuous audit finds."""
        self.deps.cell.transact(lambda tx: self._write(tx, found))
        self._count(found)
        stores = Stores(self.deps.api, self.deps.cell)
        judged = allocation_audit.judge(stores, found.order.server_uuid, allocation_audit.ALL)
        self.deps.networking.adopted(found.order, found.row.host)
        for host in {found.row.host, *([found.server.host] if found.server and found.server.host else [])}:
            self.deps.feed.host_changed(host)
        LOG.warning("stranger %d on %s was adopted, as an operator said: %s", found.row.id, found.row.host,
                    "its server had no record" if found.server is None else
                    f"its record said that it is on {found.server.host or 'no host'}",
                    extra={"server": found.order.server_uuid})
        return (f"What it holds of {found.row.host} is not known: {judged.failed.message}",) if judged.failed else ()

    def _write(self, tx: Connection, found: _Found) -> None:
        if found.server is None:
            adoptions.insert(tx, found.order, found.place, found.epoch)
        elif not adoptions.move(tx, found.server, found.place, found.epoch):
            raise errors.stranger.Known(id=found.row.id, why="an operation works on its server")
        self.deps.networking.adopt(tx, found.order, found.row.host, found.server is not None)
        rows.adopt(tx, found.row.id)

    def _count(self, found: _Found) -> None:
        """Its ledger row: there is one, unless the api database is older, too."""
        with self.deps.cell.reading() as cell:
            [row] = lost_api.proofs(cell, [found.order.server_uuid])

        def work(tx: Connection) -> None:
            if lost_api.without_ledger_row(tx, [row]):
                lost_api.open_rows(tx, [row])
            ledger.raise_epochs(tx, {row.uuid: found.epoch})
        self.deps.api.transact(work)


def _refused(row: AnyRow, why: str) -> errors.NovaError:
    return errors.stranger.NotAdoptable(id=row.id, why=why)
