"""Settling of held cleanups that are out of date, after a restore of an older database.

A held cleanup records the guest that a move to another cell set aside (:mod:`nova.conductor.steps.cell_moves`). The end
of the move settles it in the cell of the guest's host. Only a restore of one of the databases loses that.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Mapping

from nova import errors
from nova.conductor.engine.deps import Deps
from nova.db.host import host_cleanups
from nova.db.host.host_cleanups import HeldCleanup
from nova.db.placement import audits
from nova.db.quota import server_cells
from nova.db.quota.server_cells import Home
from nova.db.sql.engine import Connection

LOG = logging.getLogger(__name__)

OLD_S, PAGE = 600, 200

Change = Callable[..., None]  # of nova.db.host.host_cleanups: (transaction, server's UUID)


def run(deps: Deps) -> int:
    """Run one turn for a cell, and return the number of settled cleanups."""
    if not deps.cells.several:
        return 0
    with deps.cell.reading() as tx:
        held = host_cleanups.held_for_long(tx, OLD_S, PAGE)
    with deps.api.reading() as tx:
        homes = server_cells.homes(tx, [one.server_uuid for one in held]) if held else {}
    return sum(_settle(deps, one, homes) for one in held)


def _settle(deps: Deps, one: HeldCleanup, homes: Mapping[str, Home]) -> bool:
    """Settle a cleanup; return False if it still waits, or if the server's cell does not answer."""
    home = homes.get(one.server_uuid)
    if home is None:  # without a record, nothing is destroyed: the host reports the guest as an orphan
        return _changed(deps, one, host_cleanups.drop_held, "its server is unknown, and the guest stays")
    if home.closed:
        return _changed(deps, one, host_cleanups.make_due, "its server was deleted")
    if home.cell == deps.cell_uuid:
        return _changed(deps, one, host_cleanups.drop_held, "its server is back in this cell")
    with contextlib.suppress(errors.Unavailable), deps.cells.named(home.cell).cell.reading() as tx:
        if _has_ended(tx, one):
            return _changed(deps, one, host_cleanups.make_due, "its server's move has ended")
    return False


def _has_ended(tx: Connection, one: HeldCleanup) -> bool:
    """Return whether the server is idle in its cell, whose database is ``tx``, without a move from the host."""
    rows = audits.rows(tx, [one.server_uuid])
    waits = any(move.source_compute == one.host for move in rows.moves.get(one.server_uuid, ()))
    return one.server_uuid in rows.servers and one.server_uuid not in rows.busy and not waits


def _changed(deps: Deps, one: HeldCleanup, change: Change, why: str) -> bool:
    deps.cell.transact(functools.partial(change, server_uuid=one.server_uuid))
    LOG.warning("settled a held cleanup of host %s: %s", one.host, why, extra={"server": one.server_uuid})
    return True
