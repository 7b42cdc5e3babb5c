"""Errors about what no record explains."""

from __future__ import annotations

from nova.errors import kinds

NotFound = kinds.NotFound.row("stranger.not_found", "There is no stranger {id}, or it is gone already.",
    "`nova-manage stranger list` shows all strangers.")
Known = kinds.Conflict.row("stranger.known", "Stranger {id} is not removed: {why}.",
    "Wait for the operation on its server; `nova-manage stranger list` shows the strangers that stay.")
NotRemovable = kinds.Conflict.row("stranger.not_removable", "Stranger {id} is not removed: {why}.",
    "Of an allocation: `nova-manage placement heal_allocations`. Of a guest: start nova-compute on its server's host.")
NotAdoptable = kinds.Conflict.row("stranger.not_adoptable", "Stranger {id} is not adopted: {why}.",
    "`nova-manage stranger remove` removes what is not wanted any more.")
BadReport = kinds.Invalid.row("stranger.bad_report", "'{host}' reports strangers that can not be: {reason}.")
