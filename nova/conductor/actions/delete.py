"""Delete a server: it overtakes whatever runs, and leaves nothing behind. A soft delete can be undone for a while."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from nova import errors
from nova.conductor import steps
from nova.conductor.actions.endings import powered, remembering
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Arguments, Op, Result
from nova.conductor.engine.workflow import Step, Workflow
from nova.conductor.steps.guests import ORDERS, destroy, leave_destroy
from nova.db.models.cell import servers
from nova.db.server import migrations
from nova.db.server.states import PerServer
from nova.db.sql.engine import Connection
from nova.db.sql.types import AnyColumn, utc_now
from nova.model.base import utcnow
from nova.model.server.migrations import CANCELLED
from nova.model.server.servers import ServerMemo


class DestroyGuests(Step):
    """Leave nothing of the guests, on every host the server was or may have been on."""

    uses = (*ORDERS, "journal")
    event = "compute_terminate_instance"

    def within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, AnyColumn]:
        """From here on it may be whole no more, and only a delete goes on with it, should this one fail."""
        for op in ops:
            op.see(memo=msgspec.structs.replace(op.server.memo or ServerMemo(), destroying=True))
        return {"memo": PerServer({op.uuid: op.server.memo for op in ops})}

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        return [self._everywhere(deps, op) for op in ops]

    def _everywhere(self, deps: Deps, op: Op) -> Result:
        """All hosts are asked, also when one fails. The first failure ends the delete, and the owner learns of it."""
        hosts = dict.fromkeys([op.server.host, *(op.asked(Arguments).hosts or ()), *op.progress.claimed])
        failures = []
        for host in filter(None, hosts):
            try:
                destroy(deps, host, op)
            except errors.host.NoAnswer as error:
                leave_destroy(deps, host, op, error)
            except errors.Overtaken as error:
                return error
            except errors.NovaError as error:
                failures.append(error)
        return failures[0] if failures else {"host": op.server.host}


def gone(ops: Sequence[Op]) -> Mapping[str, object]:
    """The rows stay, marked as deleted, until the purge."""
    return {"deleted": servers.c.id, "deleted_at": utc_now(), "terminated_at": utc_now(), "power_state": 0}


def closed(tx: Connection, op: Op, error: errors.NovaError | None) -> Mapping[str, object]:
    """Its moves are over with the server itself: a delete that failed leaves them as they are, for the next one."""
    memo = op.server.memo
    moved = (memo and memo.move) or set(op.progress.claimed) - {op.server.host}
    if error is None and (op.asked(Arguments).hosts is not None or moved):
        migrations.end_open(tx, op.uuid, CANCELLED)
    return {}


DELETE_SERVER = Workflow(
    "delete",
    steps.FenceLedger(),                                      # what was overtaken claims nothing any more
    DestroyGuests(),                                          # on each host it was or may be on; or that host owes it
    steps.DropVolumes(),                                      # attachments, and volumes that go with it
    steps.DropImages(),                                       # a shelved disk, snapshots that never got whole
    steps.UnbindNetworks(),                                   # addresses go back
    steps.ReleaseResources(),                                 # the claim, then the quota, once
    again_on=(errors.Unavailable, errors.HostRefused),        # nothing is undone: it is tried again
    ending=gone,
    closing=closed,
)


class Restore(Arguments):
    """What a restore is begun with. ``becomes``: the vm_state after it; ``start``: its guest runs then."""

    becomes: str
    start: bool = False


def soft_deleted(ops: Sequence[Op]) -> Mapping[str, object]:
    """(One server: no request deletes several.)"""
    return {**powered(ops), **remembering(ops, soft_deleted_at=utcnow(), deleted_from=ops[0].server.vm_state)}


def restored(ops: Sequence[Op]) -> Mapping[str, object]:
    """A shelved server is shelved again; a stopped one runs."""
    return {**powered(ops), **remembering(ops, soft_deleted_at=None, deleted_from=None),
            "vm_state": PerServer({op.uuid: op.asked(Restore).becomes for op in ops})}


SOFT_DELETE_SERVER = Workflow(
    "soft_delete",
    steps.StopIfThere(event="compute_soft_delete_instance"),  # what it holds it keeps until it is reclaimed
    ending=soft_deleted,
)

#: Its host was away when it was deleted, or somebody started its guest behind the cloud's back.
STOP_DELETED_SERVER = Workflow("stop_deleted", steps.StopGuests(), ending=powered)

RESTORE_SERVER = Workflow(
    "restore",
    steps.StartGuests(when="start", event="compute_restore_instance"),
    ending=restored,
    asks=Restore,
)
