"""Delete a server: it overtakes whatever runs, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nova import errors
from nova.conductor import steps
from nova.conductor.engine.workflow import Op, Workflow
from nova.db import migrations
from nova.db.engine import Connection
from nova.db.models.cell import servers
from nova.db.types import utc_now
from nova.model.migrations import CANCELLED


def gone(ops: Sequence[Op]) -> Mapping[str, Any]:
    return {"deleted": servers.c.id, "deleted_at": utc_now(), "terminated_at": utc_now(), "power_state": 0}


def closed(tx: Connection, op: Op, error: errors.NovaError | None) -> Mapping[str, Any]:
    """Its moves are over with the server itself: a delete that failed leaves them as they are, for the next one."""
    memo = op.server.memo
    moved = (memo and memo.move) or set(op.data.get("claimed", ())) - {op.server.host}
    if error is None and ("hosts" in op.entry.arguments or moved):
        migrations.end_open(tx, op.uuid, CANCELLED)
    return {}


DELETE_SERVER = Workflow(
    "delete",
    steps.FenceLedger(),                                      # what was overtaken claims nothing any more
    steps.DestroyGuests(),                                    # on each host it was or may be on; or that host owes it
    steps.DropImages(),                                       # a shelved disk, snapshots that never got whole
    steps.UnbindNetworks(),                                   # addresses go back
    steps.ReleaseResources(),                                 # the claim, then the quota, once
    again_on=(errors.Unavailable, errors.HostRefused),        # nothing is undone: it is tried again
    ending=gone,
    closing=closed,
)
