"""Errors about cells."""

from __future__ import annotations

from nova.errors import kinds

Busy = kinds.Unavailable.row("cell.busy", "This part of the cloud does not answer. Try again later.",
    "All threads that this conductor has for the cell wait for it: check the cell's database and broker.")
CleanupPending = kinds.HostRefused.row("cell.cleanup_pending",
    "Host {host} is in another cell, and host {pending} has a pending cleanup of the server.",
    "Check nova-compute on {pending}: a server leaves a cell only without pending cleanups.")
Elsewhere = kinds.Overtaken.row("cell.elsewhere", "The operation continues in the cell of the server's host.",
    "No action needed: the journal of that cell has the operation.")
HasHost = kinds.Conflict.row("cell.has_host", "Host {host} is enrolled in cell {cell}.",
    "To move the host to another cell, revoke its enrolment first: nova-manage host revoke {host}")
NotOne = kinds.NotFound.row("cell.not_one", "{count} cells have the name or UUID {cell}.",
    "Use a UUID that 'nova-manage cell_v2 list_cells' shows. A new cell is recorded with create_cell.")
NotServed = kinds.Unavailable.row("cell.not_served", "This part of the cloud is not available yet. Try again later.",
    "Check that the cell is recorded ('nova-manage cell_v2 list_cells'), and the conductor's log for why it cannot "
    "reach the cell.")
SeveralForHosts = kinds.Conflict.row("cell.several_for_hosts",
    "Host {host} is not enrolled, and the cloud has several cells: it is not clear to which one it belongs.",
    "Name its cell: nova-manage host enroll {host} --cell NAME (see nova-manage cell_v2 list_cells).")
