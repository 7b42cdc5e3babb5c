"""Actions that start with only their name: this module determines their arguments."""

from __future__ import annotations

from nova import errors
from nova.conductor.actions.delete import Restore
from nova.conductor.actions.resize_ends import ENDINGS
from nova.conductor.engine.begin import begin, locked
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Arguments
from nova.db.server import states
from nova.db.server.server_row import ServerRow
from nova.db.sql.engine import Connection
from nova.model.server.servers import ServerMemo, ServerOrder
from nova.model.server.states import TaskState, VmState

#: Actions that have an RPC call of their own and cannot be started by name.
OWN_CALLS = frozenset({"create", "rebuild", "createImage", "create_image_stopped", "createBackup", "rescue",
                       "changePassword", "shelve", "unshelve", "attach_interface", "detach_interface"})


def begin_order(deps: Deps, tx: Connection, order: ServerOrder) -> states.Entry:
    """Start the ordered action; a delete may become a soft delete, and a restore returns to the deleted state."""
    if order.action in OWN_CALLS:
        raise errors.server.HasOwnCall(action=order.action)
    if order.action in ("delete", "force_delete"):
        return _begin_delete(deps, tx, order)
    if order.action == "restore":
        return begin(deps, tx, "restore", order.uuid, _restoring(locked(tx, order.uuid)))
    entry = begin(deps, tx, order.action, order.uuid, Arguments())
    return ENDINGS[order.action](deps, tx, entry) if order.action in ENDINGS else entry


def _begin_delete(deps: Deps, tx: Connection, order: ServerOrder) -> states.Entry:
    """Start a delete, or a soft delete if deleted servers are kept for a while.

    The delete is immediate if soft delete is off, if it is forced, if the server never ran, or if it was deleted
    before.
    """
    force = order.action == "force_delete" or order.arguments.get("force") == "true"
    if force or deps.settings.reclaim_instance_interval <= 0:
        return begin(deps, tx, "delete", order.uuid, Arguments())
    row = locked(tx, order.uuid)
    begun = row.memo is not None and row.memo.destroying
    going = row.vm_state == VmState.SOFT_DELETED.value or row.task_state == TaskState.DELETING.value or begun
    soft = row.launched_at is not None and not going
    return begin(deps, tx, "soft_delete" if soft else "delete", order.uuid, Arguments())


def _restoring(row: ServerRow) -> Restore:
    """Return how to restore a server. A shelved server becomes shelved again, unless a delete overtook its unshelve: it
    has a guest then."""
    was = (row.memo or ServerMemo()).deleted_from
    if was == VmState.SHELVED.value or (was == VmState.SHELVED_OFFLOADED.value and row.host is None):
        return Restore(becomes=was)
    return Restore(start=True, becomes=was if was == VmState.RESIZED.value else VmState.ACTIVE.value)
