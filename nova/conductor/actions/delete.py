"""Delete a server: a delete overtakes any running action and removes everything. A soft delete can be undone for a
while."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from nova import errors
from nova.conductor import steps
from nova.conductor.actions.endings import powered, remembering
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Arguments, Op, Result
from nova.conductor.engine.workflow import Step, Workflow
from nova.conductor.steps.cleanups import clean_up_elsewhere, is_elsewhere
from nova.conductor.steps.guests import ORDERS, add_destroy_cleanup, destroy
from nova.db.host import host_cleanups
from nova.db.models.cell import servers
from nova.db.server import migrations
from nova.db.server.states import PerServer
from nova.db.sql.engine import Connection
from nova.db.sql.types import utc_now
from nova.model.base import utcnow
from nova.model.server.migrations import CANCELLED
from nova.model.server.servers import ServerMemo


class DestroyGuests(Step):
    """Remove the guests from every host where the server was or may have been."""

    uses = (*ORDERS, "journal")
    event = "compute_terminate_instance"

    def within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        """Mark the server as being destroyed: it may be incomplete from here on, so after a failure only another delete
        may act on it."""
        for op in ops:
            memo = msgspec.structs.replace(op.server.memo or ServerMemo(), destroying=True)
            op.see(memo=memo)
            if memo.moved_cells:  # a guest of this cell that an earlier move set aside is destroyed, too
                host_cleanups.drop_held(tx, op.uuid)
        return {"memo": PerServer({op.uuid: op.server.memo for op in ops})}

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        return [self._everywhere(deps, op) for op in ops]

    def _everywhere(self, deps: Deps, op: Op) -> Result:
        """Destroy the guest on each host, also after one fails. The first failure fails the delete and is reported to
        the owner."""
        found = (op.server.host, *(op.asked(Arguments).hosts or ()), *op.progress.claimed)
        hosts = list(dict.fromkeys(filter(None, found)))
        memo = op.server.memo
        own = op.server.host if memo is None or not memo.moved_cells else None  # it has never left its cell
        elsewhere = [host for host in hosts if host != own and is_elsewhere(deps, host)]
        failures = []
        for host in [one for one in hosts if one not in elsewhere]:
            try:
                destroy(deps, host, op)
            except errors.host.NoAnswer as error:
                add_destroy_cleanup(deps, host, op, error)
            except errors.Overtaken as error:
                return error
            except errors.NovaError as error:
                failures.append(error)
        for host in elsewhere:
            clean_up_elsewhere(deps, op, host)
        return failures[0] if failures else {"host": op.server.host}


def gone(ops: Sequence[Op]) -> Mapping[str, object]:
    """Mark the rows as deleted; they stay until the purge."""
    return {"deleted": servers.c.id, "deleted_at": utc_now(), "terminated_at": utc_now(), "power_state": 0}


def closed(tx: Connection, op: Op, error: errors.NovaError | None) -> Mapping[str, object]:
    """Cancel the server's open moves after a successful delete. A failed delete leaves them for the next delete."""
    memo = op.server.memo
    moved = (memo and memo.move) or set(op.progress.claimed) - {op.server.host}
    if error is None and (op.asked(Arguments).hosts is not None or moved):
        migrations.end_open(tx, op.uuid, CANCELLED)
    return {}


DELETE_SERVER = Workflow(
    "delete",
    steps.FenceLedger(),                                      # stop overtaken operations from claiming
    DestroyGuests(),                                          # on each possible host; else a pending cleanup
    steps.DropVolumes(),                                      # attachments, and volumes deleted with the server
    steps.DropImages(),                                       # a shelved disk, incomplete snapshots
    steps.UnbindNetworks(),                                   # return the addresses
    steps.ReleaseResources(),                                 # the claim, then the quota, one time
    again_on=(errors.Unavailable, errors.HostRefused),        # retry: a delete is never undone
    ending=gone,
    closing=closed,
)


class Restore(Arguments):
    """Arguments of a restore. ``becomes``: the vm_state after it; ``start``: the guest runs after it."""

    becomes: str
    start: bool = False


def soft_deleted(ops: Sequence[Op]) -> Mapping[str, object]:
    """Record the soft delete and the vm_state before it. (One server: no request deletes several.)"""
    return {**powered(ops), **remembering(ops, soft_deleted_at=utcnow(), deleted_from=ops[0].server.vm_state)}


def restored(ops: Sequence[Op]) -> Mapping[str, object]:
    """Set the state after a restore: a shelved server becomes shelved again; a stopped one is running."""
    return {**powered(ops), **remembering(ops, soft_deleted_at=None, deleted_from=None),
            "vm_state": PerServer({op.uuid: op.asked(Restore).becomes for op in ops})}


SOFT_DELETE_SERVER = Workflow(
    "soft_delete",
    steps.StopIfThere(event="compute_soft_delete_instance"),  # it keeps its resources until it is reclaimed
    ending=soft_deleted,
)

#: Stops a soft-deleted server whose host was down at the delete, or whose guest was started outside nova.
STOP_DELETED_SERVER = Workflow("stop_deleted", steps.StopGuests(), ending=powered)

RESTORE_SERVER = Workflow(
    "restore",
    steps.StartGuests(when="start", event="compute_restore_instance"),
    ending=restored,
    asks=Restore,
)
