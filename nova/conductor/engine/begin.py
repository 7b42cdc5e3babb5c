"""The beginning of an operation on one server: fenced, journaled, and with its arguments read from the row it locks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from nova import context, errors
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Arguments
from nova.db import volumes
from nova.db.server import servers, states
from nova.db.server.server_row import ServerRow
from nova.db.sql.engine import Connection
from nova.db.sql.types import AnyColumn
from nova.db.volumes import TO_ATTACH, TO_DETACH, Cleanup
from nova.model.server.action_restrictions import RESTRICTED, BuiltWith, restriction
from nova.model.server.states import ACTIONS, VmState

SHELVED = (VmState.SHELVED.value, VmState.SHELVED_OFFLOADED.value)

#: What is begun again after the operation that overtook it.
INTERRUPTED = {"attach_volume": TO_ATTACH, "detach_volume": TO_DETACH}

#: What could begin in the middle of itself, by the states alone, and would only do the same again.
ONCE = frozenset({"confirmResize", "evacuate"})


def begin(deps: Deps, tx: Connection, action: str, uuid: str, arguments: Arguments) -> states.Entry:
    """Take the server over for an action, as who asks. WrongState, NotFound; server.NotForIt."""
    who = context.current()
    entry, overtaken = states.begin(tx, states.Begin(
        action=ACTIONS[action], server_uuid=uuid, arguments=builtins(arguments), request_id=who.request_id,
        user_id=who.user_id, project_id=who.project_id, runner_id=deps.journal.runner_id, step=""))
    if action in ONCE and any(old.action == action for old in overtaken):
        raise errors.server.UnderWay(action=action, server=uuid)
    check_restrictions(deps, tx, action, uuid)
    left = [Cleanup(INTERRUPTED[old.action], old.arguments["volume_id"], uuid) for old in overtaken
            if old.action in INTERRUPTED]
    volumes.drop_cleanups(tx, [one._replace(kind=TO_ATTACH) for one in left])  # the newer of both counts
    volumes.add_cleanups(tx, left)
    return states.remember(tx, entry, overtaken) if overtaken else entry


def begin_on_host(deps: Deps, tx: Connection, action: str, uuid: str,
                  arguments: Callable[[ServerRow], Arguments]) -> states.Entry:
    """The same for an action whose arguments come from the server's row, locked. Conflict: it is on no host."""
    row = locked(tx, uuid)
    entry = begin(deps, tx, action, uuid, arguments(row))
    if ACTIONS[action].needs_host and row.host is None:
        raise errors.server.NoHost(server=uuid)
    return entry


def locked(tx: Connection, uuid: str) -> ServerRow:
    """The server's whole row, which nobody else changes before the end of the transaction. NotFound."""
    servers.lock_row(tx, uuid)
    return servers.rows_of(tx, [uuid])[uuid]


def row_of(deps: Deps, uuid: str) -> ServerRow:
    """The server's whole row as it is now. NotFound."""
    with deps.cell.reading() as tx:
        row = servers.rows_of(tx, [uuid]).get(uuid)
    if row is None:
        raise errors.server.NotFound(server=uuid)
    return row


def metadata_of(tx: Connection, row: ServerRow) -> dict[str, str]:
    """For a config drive that is made anew."""
    return servers.children(tx, [row.uuid])[0].get(row.uuid, {})


def builtins(arguments: Arguments) -> dict[str, AnyColumn]:
    """As the journal keeps them."""
    found: dict[str, Any] = msgspec.to_builtins(arguments)
    return found


def check_restrictions(deps: Deps, tx: Connection, action: str, uuid: str) -> None:
    """server.NotForIt. One statement, and none for most actions."""
    if action not in RESTRICTED:
        return
    row = servers.rows_of(tx, [uuid])[uuid]
    found = restriction(action, BuiltWith(row.image.properties if row.image else {}, row.flavor.extra_specs,
                                          row.interfaces or (), deps.settings.pci_aliases))
    if found is not None:
        raise errors.server.NotForIt(action=action, server=uuid, has=found)


__all__ = ["begin", "begin_on_host", "builtins", "locked", "metadata_of", "row_of"]
