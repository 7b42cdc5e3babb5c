"""The api database's side of hosts' calls: the capacity of their nodes, the claims that their cleanups release, and
facts of their guests. Here it is done at once; :mod:`nova.conductor.cells.cell_parts` has that of a cell conductor."""

from __future__ import annotations

import contextlib
import logging

from nova import errors
from nova.conductor import ec2_numbers
from nova.conductor.engine.deps import Deps
from nova.conductor.steps.guests import topology_claim_at
from nova.db.host import host_cleanups, reports
from nova.db.quota import ledger
from nova.db.server import migrations, servers
from nova.db.server.server_row import ServerRow
from nova.db.sql.engine import Connection
from nova.model.base import HostName
from nova.model.guest.guest_devices import dedicated_cpus
from nova.model.guest.guests import ApiFacts
from nova.model.host.hosts import Inventory
from nova.model.placement.accepted_capacity import Capacities
from nova.model.server.states import TaskState

LOG = logging.getLogger(__name__)


class DirectApiSide:
    """Direct use of the api database (:class:`nova.conductor.engine.deps.ApiSide`)."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def apply_inventory(self, inventory: Inventory, limits: Capacities) -> None:
        """Write the providers of a report, and send the host's state to the schedulers. Raises host.NodeNotYours;
        Unavailable if a cell that does not answer may have the node."""
        if self._deps.cells.several:
            self._refuse_other_cells_nodes(inventory)
        self._deps.api.transact(lambda tx: reports.write_providers(tx, inventory, limits))
        self._deps.feed.host_changed(inventory.host)

    def _refuse_other_cells_nodes(self, inventory: Inventory) -> None:
        """Check that no host of another cell has one of the nodes. Hosts are renamed, so a provider follows its host
        id; but a host can take any id that no other host of its own cell has."""
        with self._deps.api.reading() as tx:
            owners = reports.owners(tx, [node.uuid for node in inventory.nodes])
        for uuid, owner in owners.items():
            if owner == inventory.host:
                continue
            with contextlib.suppress(errors.host.NotFound):  # renamed, or gone
                if self._deps.cells.of_host(owner).cell_uuid != self._deps.cell_uuid:
                    raise errors.host.NodeNotYours(host=inventory.host, uuid=uuid)

    def complete_cleanup(self, host: HostName, cleanup_id: int) -> None:
        """Complete a cleanup that its host has done. The claim is released first: after a crash in between the call is
        repeated, as the cleanup's row is still there."""
        with self._deps.cell.reading() as tx:
            found = host_cleanups.find(tx, host, cleanup_id)
            row = servers.rows_of(tx, [found[0]]).get(found[0]) if found else None
            move = host_cleanups.arguments(tx, host, cleanup_id).get("move", "")
        if found is None:
            return
        uuid, last = found
        going = row is not None and row.task_state == TaskState.DELETING.value
        here = row is not None and not going and row.host == host  # the server still needs its own claim
        if last and (move or not here):
            self._deps.feed.after_release(self._deps.api.transact(
                lambda tx: ledger.release_on(tx, uuid, host, move if here else "")))

        def drop(tx: Connection) -> None:
            host_cleanups.drop(tx, host, cleanup_id)
            if move:
                migrations.complete(tx, move)
        self._deps.cell.transact(drop)
        LOG.info("host %s completed its pending cleanup", host, extra={"server": uuid})

    def guest_facts(self, row: ServerRow) -> ApiFacts:
        """Return the facts of a guest in the api database: two statements, more at first."""
        packing = topology_claim_at(self._deps, row, row.host) if row.host else None
        return ApiFacts(ec2_numbers=ec2_numbers.of_guest(self._deps, row), dedicated_cpus=dedicated_cpus(packing))
