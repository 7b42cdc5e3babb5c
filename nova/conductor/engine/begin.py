"""Start of an operation on one server: fence it, write its journal row, and read its arguments from the locked row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from nova import context, errors
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Arguments
from nova.db import volumes
from nova.db.server import operation_arguments, servers, states
from nova.db.server.server_row import ServerRow
from nova.db.sql.engine import Connection
from nova.db.volumes import TO_ATTACH, TO_DETACH, Cleanup
from nova.model.server.action_restrictions import RESTRICTED, BuiltWith, restriction
from nova.model.server.states import ACTIONS, VmState

SHELVED = (VmState.SHELVED.value, VmState.SHELVED_OFFLOADED.value)

#: Actions that are repeated after the operation that overtook them.
INTERRUPTED = {"attach_volume": TO_ATTACH, "detach_volume": TO_DETACH}

#: Actions that the state table would allow to overtake themselves, which would only repeat them.
ONCE = frozenset({"confirmResize", "evacuate"})


class WantedAction(NamedTuple):
    """An action that a user requested for a server."""

    action: str
    uuid: str
    arguments: Arguments
    who: context.RequestContext


def begin(deps: Deps, tx: Connection, action: str, uuid: str, arguments: Arguments) -> states.Entry:
    """Start an action on the server, as the requesting user. Raises WrongState, NotFound; server.NotForIt."""
    [begun] = begin_all(deps, tx, [WantedAction(action, uuid, arguments, context.current())])
    if isinstance(begun, errors.NovaError):
        raise begun
    return begun.entry


def begin_all(deps: Deps, tx: Connection, wanted: Sequence[WantedAction]) -> list[states.Begun | errors.NovaError]:
    """Start actions of several requests, each on another server. An action that its server's state refuses changes
    nothing, and its result is the error. Raises other refusals, for which the transaction must be rolled back."""
    found = states.begin_all(tx, [states.Begin(
        action=ACTIONS[one.action], server_uuid=one.uuid, arguments=builtins(one.arguments),
        request_id=one.who.request_id, user_id=one.who.user_id, project_id=one.who.project_id,
        runner_id=deps.journal.runner_id, step="") for one in wanted])
    return [begun if isinstance(begun, errors.NovaError) else _admitted(deps, tx, one, begun)
            for one, begun in zip(wanted, found, strict=True)]


def _admitted(deps: Deps, tx: Connection, one: WantedAction, begun: states.Begun) -> states.Begun:
    """Make the checks that need the locked server, and record what the action overtook."""
    entry, overtaken, server = begun
    check_arrived(deps, one.action, server, overtaken)
    if one.action in ONCE and any(old.action == one.action for old in overtaken):
        raise errors.server.UnderWay(action=one.action, server=one.uuid)
    check_restrictions(deps, one.action, server)
    left = [Cleanup(INTERRUPTED[old.action], old.arguments["volume_id"], one.uuid) for old in overtaken
            if old.action in INTERRUPTED]
    volumes.drop_cleanups(tx, [each._replace(kind=TO_ATTACH) for each in left])  # only the newer cleanup counts
    volumes.add_cleanups(tx, left)
    return begun._replace(entry=operation_arguments.remember(tx, entry, overtaken)) if overtaken else begun


def check_arrived(deps: Deps, action: str, server: ServerRow, overtaken: Sequence[states.Entry]) -> None:
    """Raise move.BetweenCells if the action would overtake a move whose server has left the cell of its host and is on
    no host of this cell yet: its disks are still there. A delete finds them."""
    moves = [old for old in overtaken if old.data.get("to_cell") and old.arguments["source_cell"] != deps.cell_uuid]
    if moves and action != "delete" and server.host == moves[0].arguments["source"]:
        raise errors.move.BetweenCells(server=server.uuid)


def start_operation_on_host(deps: Deps, tx: Connection, action: str, uuid: str,
                            arguments: Callable[[ServerRow], Arguments]) -> states.Entry:
    """Start an action whose arguments come from the server's locked row. Raises Conflict if the server has no host."""
    row = locked(tx, uuid)
    entry = begin(deps, tx, action, uuid, arguments(row))
    if ACTIONS[action].needs_host and row.host is None:
        raise errors.server.NoHost(server=uuid)
    return entry


def locked(tx: Connection, uuid: str) -> ServerRow:
    """Return the server's whole row, locked until the end of the transaction. Raises NotFound."""
    servers.lock_row(tx, uuid)
    return servers.rows_of(tx, [uuid])[uuid]


def row_of(deps: Deps, uuid: str) -> ServerRow:
    """Return the server's whole current row. Raises NotFound."""
    with deps.cell.reading() as tx:
        row = servers.rows_of(tx, [uuid]).get(uuid)
    if row is None:
        raise errors.server.NotFound(server=uuid)
    return row


def metadata_of(tx: Connection, row: ServerRow) -> dict[str, str]:
    """Return the server's metadata, for a config drive that is recreated."""
    return servers.children(tx, [row.uuid])[0].get(row.uuid, {})


def builtins(arguments: Arguments) -> dict[str, object]:
    """Return the arguments as the journal stores them."""
    found: dict[str, Any] = msgspec.to_builtins(arguments)
    return found


def check_restrictions(deps: Deps, action: str, server: ServerRow) -> None:
    """Raise server.NotForIt if the server's properties exclude the action."""
    if action not in RESTRICTED:
        return
    found = restriction(action, BuiltWith(server.image.properties if server.image else {}, server.flavor.extra_specs,
                                          server.interfaces or (), deps.settings.pci_aliases))
    if found is not None:
        raise errors.server.NotForIt(action=action, server=server.uuid, has=found)


__all__ = ["WantedAction", "begin", "begin_all", "builtins", "check_arrived", "locked", "metadata_of", "row_of",
           "start_operation_on_host"]
