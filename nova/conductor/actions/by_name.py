"""Actions that start with only their name: this module determines their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nova import context, errors
from nova.conductor.actions.delete import Restore
from nova.conductor.actions.resize_ends import ENDINGS
from nova.conductor.engine.begin import WantedAction, begin, begin_all, locked
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


class Requested(NamedTuple):
    """An action that a user requested by its name."""

    order: ServerOrder
    who: context.RequestContext


class Started(NamedTuple):
    """An action that was started. ``server``: its server's row, if only the start has changed it since."""

    entry: states.Entry
    server: ServerRow | None = None


def begin_orders(deps: Deps, tx: Connection, requests: Sequence[Requested]) -> list[Started | errors.NovaError]:
    """Start the ordered actions. Orders that need no more than their names share statements; a server's second
    order is carried out after its first."""
    found: dict[int, Started | errors.NovaError] = {}
    rest = list(enumerate(requests))
    while rest:
        turn: dict[str, tuple[int, Requested]] = {}
        for one in rest:
            turn.setdefault(one[1].order.uuid, one)
        rest = [one for one in rest if turn[one[1].order.uuid] is not one]
        together = [one for one in turn.values() if _needs_no_more(deps, one[1].order)]
        begun = begin_all(deps, tx, [_wanted(request) for _, request in together]) if together else []
        found |= {number: one if isinstance(one, errors.NovaError) else Started(one.entry, one.server)
                  for (number, _), one in zip(together, begun, strict=True)}
        for number, request in turn.values():
            if number not in found:
                with context.entered(request.who):
                    found[number] = Started(begin_order(deps, tx, request.order))
    return [found[number] for number in range(len(requests))]


def _needs_no_more(deps: Deps, order: ServerOrder) -> bool:
    """True if the action starts without another look at its server."""
    if order.action in _DELETES:
        return _deletes_at_once(deps, order)
    return order.action not in OWN_CALLS and order.action not in ENDINGS and order.action != "restore"


def _wanted(request: Requested) -> WantedAction:
    order = request.order
    return WantedAction("delete" if order.action in _DELETES else order.action, order.uuid, Arguments(), request.who)


def begin_order(deps: Deps, tx: Connection, order: ServerOrder) -> states.Entry:
    """Start the ordered action; a delete may become a soft delete, and a restore returns to the deleted state."""
    if order.action in OWN_CALLS:
        raise errors.server.HasOwnCall(action=order.action)
    if order.action in _DELETES:
        return _begin_delete(deps, tx, order)
    if order.action == "restore":
        return begin(deps, tx, "restore", order.uuid, _restoring(locked(tx, order.uuid)))
    entry = begin(deps, tx, order.action, order.uuid, Arguments())
    return ENDINGS[order.action](deps, tx, entry) if order.action in ENDINGS else entry


_DELETES = ("delete", "force_delete")


def _deletes_at_once(deps: Deps, order: ServerOrder) -> bool:
    """True if deleted servers are not kept for a while, or the delete is forced."""
    force = order.action == "force_delete" or order.arguments.get("force") == "true"
    return force or deps.settings.reclaim_instance_interval <= 0


def _begin_delete(deps: Deps, tx: Connection, order: ServerOrder) -> states.Entry:
    """Start a delete, or a soft delete if deleted servers are kept for a while.

    The delete is immediate if soft delete is off, if it is forced, if the server never ran, or if it was deleted
    before.
    """
    if _deletes_at_once(deps, order):
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
