"""Errors about orphans: guests and allocations without a record."""

from __future__ import annotations

from nova.errors import kinds

NotFound = kinds.NotFound.row("orphan.not_found", "Orphan {id} does not exist or was removed already.",
    "`nova-manage orphan list` shows all orphans.")
Known = kinds.Conflict.row("orphan.known", "Orphan {id} cannot be removed: {why}.",
    "Wait for the operation on its server; `nova-manage orphan list` shows the remaining orphans.")
SeveralCells = kinds.Conflict.row("orphan.several_cells", "Several cells have an orphan {id}.",
    "Remove it on its host, or delete its server; `nova-manage orphan list` names both.")
NotRemovable = kinds.Conflict.row("orphan.not_removable", "Orphan {id} cannot be removed: {why}.",
    "For an allocation: `nova-manage placement heal_allocations`. For a guest: start nova-compute on its server's "
    "host.")
NotAdoptable = kinds.Conflict.row("orphan.not_adoptable", "Orphan {id} cannot be adopted: {why}.",
    "`nova-manage orphan remove` removes orphans that are not needed any more.")
BadReport = kinds.Invalid.row("orphan.bad_report", "'{host}' sent an invalid report of orphans: {reason}.")
