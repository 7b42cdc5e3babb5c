"""The beginning of an operation on one server: fenced, journaled, and with its arguments read from the row it locks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from nova import context, errors
from nova.conductor.admission import promises
from nova.conductor.admission.endings import ENDINGS
from nova.conductor.engine.deps import World
from nova.db import servers, states
from nova.db.engine import Connection
from nova.model.servers import ServerMemo, ServerOrder
from nova.model.states import ACTIONS, TaskState, VmState


class NoHost(errors.Conflict):
    code, message = "server.no_host", "Instance {server} is not ready: it is on no host."


class HasOwnCall(errors.Bug):
    code, message = "server.has_own_call", "'{action}' takes arguments: there is a call for it."


SHELVED = (VmState.SHELVED.value, VmState.SHELVED_OFFLOADED.value)

#: What could begin in the middle of itself, by the states alone, and would only do the same again.
ONCE = frozenset({"confirmResize", "evacuate"})

#: What is not begun by its name alone, but by a call of its own.
OWN_CALLS = frozenset({"create", "rebuild", "createImage", "createBackup", "rescue", "changePassword", "shelve",
                       "unshelve", "attach_interface", "detach_interface"})


def begin(world: World, tx: Connection, action: str, uuid: str, arguments: Mapping[str, Any]) -> states.Entry:
    """Take the server over for an action, as who asks. WrongState, NotFound; NotForThisServer."""
    who = context.current()
    entry, overtaken = states.begin(tx, states.Begin(
        action=ACTIONS[action], server_uuid=uuid, arguments=dict(arguments), request_id=who.request_id,
        user_id=who.user_id, project_id=who.project_id, runner_id=world.runner.journal.runner_id, step=""))
    if action in ONCE and any(old.action == action for old in overtaken):
        raise states.UnderWay(action=action, server=uuid)
    promises.check_kept(tx, action, uuid)
    return states.remember(tx, entry, overtaken) if overtaken else entry


def begin_on_host(world: World, tx: Connection, action: str, uuid: str,
                  arguments: Callable[[Any], Mapping[str, Any]]) -> states.Entry:
    """The same for an action whose arguments come from the server's row, locked. Conflict: it is on no host."""
    row = locked(tx, uuid)
    entry = begin(world, tx, action, uuid, arguments(row))
    if ACTIONS[action].needs_host and row.host is None:
        raise NoHost(server=uuid)
    return entry


def locked(tx: Connection, uuid: str) -> Any:
    """The server's whole row, which nobody else changes before the end of the transaction. NotFound."""
    servers.lock_row(tx, uuid)
    return servers.rows_of(tx, [uuid])[uuid]


def row_of(world: World, uuid: str) -> Any:
    """The server's whole row as it is now. NotFound."""
    with world.cell.reading() as tx:
        row = servers.rows_of(tx, [uuid]).get(uuid)
    if row is None:
        raise states.NoSuchServer(server=uuid)
    return row


# -- actions that are begun by their names


def begin_order(world: World, tx: Connection, order: ServerOrder) -> states.Entry:
    """Begin what is ordered: a delete may be a soft one, and a restore goes back to what was deleted."""
    if order.action in OWN_CALLS:
        raise HasOwnCall(action=order.action)
    if order.action in ("delete", "force_delete"):
        return _begin_delete(world, tx, order)
    if order.action == "restore":
        return begin(world, tx, "restore", order.uuid, _restoring(locked(tx, order.uuid)))
    entry = begin(world, tx, order.action, order.uuid, order.arguments)
    return ENDINGS[order.action](world, tx, entry) if order.action in ENDINGS else entry


def _begin_delete(world: World, tx: Connection, order: ServerOrder) -> states.Entry:
    """For good, where deleted servers are not kept, where it is forced, and where there is nothing to keep: the server
    never ran, or was deleted before."""
    force = order.action == "force_delete" or order.arguments.get("force") == "true"
    arguments = {name: value for name, value in order.arguments.items() if name != "force"}
    if force or world.settings.reclaim_instance_interval <= 0:
        return begin(world, tx, "delete", order.uuid, arguments)
    row = locked(tx, order.uuid)
    begun = row.memo is not None and row.memo.destroying
    going = row.vm_state == VmState.SOFT_DELETED.value or row.task_state == TaskState.DELETING.value or begun
    soft = row.launched_at is not None and not going
    return begin(world, tx, "soft_delete" if soft else "delete", order.uuid, arguments)


def _restoring(row: Any) -> Mapping[str, Any]:
    """``start``: its guest runs after it. ``becomes``: the vm_state after it; a shelved server is shelved again (but
    one whose unshelve was overtaken by its delete has a guest)."""
    was = (row.memo or ServerMemo()).deleted_from
    if was == VmState.SHELVED.value or (was == VmState.SHELVED_OFFLOADED.value and row.host is None):
        return {"start": False, "becomes": was}
    return {"start": True, "becomes": was if was == VmState.RESIZED.value else VmState.ACTIVE.value}


def builtins(value: Any) -> Any:
    """A value as the journal keeps it."""
    return msgspec.to_builtins(value)


__all__ = ["NoHost", "begin", "begin_on_host", "begin_order", "builtins", "locked", "row_of"]
