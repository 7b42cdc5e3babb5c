"""Settling of held cleanups that are out of date, after a restore of an older database.

A held cleanup records the guest that a move to another cell set aside (:mod:`nova.conductor.steps.cell_moves`). The end
of the move settles it in the cell of the guest's host. A restore of one of the databases loses that.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping

from nova import errors
from nova.conductor.engine.deps import Deps
from nova.db.host import host_cleanups
from nova.db.host.host_cleanups import HeldCleanup
from nova.db.placement import audits
from nova.db.quota import server_cells
from nova.db.quota.server_cells import Home
from nova.db.server import migrations
from nova.db.sql.engine import Connection
from nova.model.server.migrations import CONFIRMED
from nova.model.server.states import VmState

LOG = logging.getLogger(__name__)

OLD_S, PAGE = 600, 200

class HeldCleanups:
    """The job of a cell: a page of its held cleanups each turn."""

    def __init__(self) -> None:
        self._after = 0  # key of the last one of the previous page

    def __call__(self, deps: Deps) -> int:
        """Run one turn, and return the number of settled cleanups."""
        if not deps.cells.several:
            return 0
        with deps.cell.reading() as tx:
            held = host_cleanups.held_for_long(tx, OLD_S, self._after, PAGE)
        self._after = held[-1].id if len(held) == PAGE else 0
        with deps.api.reading() as tx:
            homes = server_cells.homes(tx, [one.server_uuid for one in held]) if held else {}
        return sum(_settle(deps, one, homes) for one in held)


def _settle(deps: Deps, one: HeldCleanup, homes: Mapping[str, Home]) -> bool:
    """Settle a cleanup; return False if it still waits, or if the server's cell does not answer."""
    home = homes.get(one.server_uuid)
    if home is None:  # without a record, nothing is destroyed: the host reports the guest as an orphan
        return _drop(deps, one, "its server is unknown, and the guest stays")
    if home.closed:
        return _make_due(deps, one, "its server was deleted")
    if home.cell == deps.cell_uuid:
        return _drop(deps, one, "its server is back in this cell")
    with contextlib.suppress(errors.Unavailable), deps.cells.named(home.cell).cell.reading() as tx:
        if _was_confirmed(tx, one):
            return _make_due(deps, one, "its server's move was confirmed")
    return False


def _was_confirmed(tx: Connection, one: HeldCleanup) -> bool:
    """Return whether the server is well on a host of its cell, whose database is ``tx``, and its newest move from the
    host was confirmed. After any other end the host may have the only disks."""
    rows = audits.rows(tx, [one.server_uuid])
    server = rows.servers.get(one.server_uuid)
    if server is None or one.server_uuid in rows.busy or server.vm_state == VmState.ERROR.value:
        return False
    at_home = server.host is not None and audits.has_node(tx, server.host)
    return at_home and migrations.newest_from(tx, one.server_uuid, one.host) == CONFIRMED


def _drop(deps: Deps, one: HeldCleanup, why: str) -> bool:
    deps.cell.transact(lambda tx: host_cleanups.drop_held(tx, one.server_uuid))
    return _tell(one, why)


def _make_due(deps: Deps, one: HeldCleanup, why: str) -> bool:
    deps.cell.transact(lambda tx: host_cleanups.make_due(tx, one.server_uuid, one.host))
    return _tell(one, why)


def _tell(one: HeldCleanup, why: str) -> bool:
    LOG.warning("settled a held cleanup of host %s: %s", one.host, why, extra={"server": one.server_uuid})
    return True
