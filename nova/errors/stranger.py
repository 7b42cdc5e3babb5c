"""Errors about what no record explains."""

from __future__ import annotations

from nova.errors import kinds

NotFound = kinds.NotFound.row("stranger.not_found", "There is no orphan {id}, or it is gone already.",
    "`nova-manage orphan list` shows all orphans.")
Known = kinds.Conflict.row("stranger.known", "Orphan {id} is not removed: {why}.",
    "Wait for the operation on its server; `nova-manage orphan list` shows the orphans that stay.")
NotRemovable = kinds.Conflict.row("stranger.not_removable", "Orphan {id} is not removed: {why}.",
    "Of an allocation: `nova-manage placement heal_allocations`. Of a guest: start nova-compute on its server's host.")
NotAdoptable = kinds.Conflict.row("stranger.not_adoptable", "Orphan {id} is not adopted: {why}.",
    "`nova-manage orphan remove` removes what is not wanted any more.")
BadReport = kinds.Invalid.row("stranger.bad_report", "'{host}' reports orphans that cannot be: {reason}.")
