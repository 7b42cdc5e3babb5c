"""The only module that writes server states: begin, advance, finish. See `Epochs` in doc/architecture.rst.

Each write has the condition ``uuid AND epoch = mine``; if no row changes, a newer epoch owns the server. Callers
provide a transaction; the journal row changes in the same one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova import errors
from nova.db.models.cell import operations, servers, services
from nova.db.server.server_row import ServerRow
from nova.db.server.servers import SERVER_ROWS
from nova.db.sql.statements import EachRow, insert_all, update_each, update_where
from nova.db.sql.types import utc_now
from nova.model.base import Value
from nova.model.server.actions import ActionEvent
from nova.model.server.states import (
    API_NAMES,
    ENDS_CONSOLES,
    ON_ITS_HOST,
    Action,
    StateConflict,
    TaskState,
    VmState,
    refusal,
)


class Entry(Value):
    """A journal row as the runner holds it: one operation on one server."""

    id: int
    server_uuid: str
    action: str
    epoch: int
    runner_id: int = 0
    step: str = ""
    direction: str = "do"
    attempt: int = 1
    arguments: Mapping[str, Any] = {}
    data: Mapping[str, Any] = {}
    history: tuple[ActionEvent, ...] = ()
    request_id: str = ""
    user_id: str | None = None
    project_id: str | None = None


class Begin(NamedTuple):
    """The input of :func:`begin`: the action, the requester, and the runner."""

    action: Action
    server_uuid: str
    arguments: Mapping[str, Any]
    request_id: str
    user_id: str | None
    project_id: str | None
    runner_id: int
    step: str


#: Actions that may overtake a delete: for others, the server counts as deleted, also if their transition is allowed.
_OVER_A_DELETE = frozenset({"delete", "reset_state"})

ENTRY_COLUMNS = [operations.c[field] for field in Entry.__struct_fields__]


class Begun(NamedTuple):
    """A new operation's entry, the open entries that it overtook, and its server's row with what the begin changed
    (but ``updated_at``)."""

    entry: Entry
    overtaken: tuple[Entry, ...]
    server: ServerRow


def begin(tx: Connection, what: Begin) -> Begun:
    """Begin an action on one server; see :func:`begin_all`. Raises the refusal."""
    [begun] = begin_all(tx, [what])
    if isinstance(begun, errors.NovaError):
        raise begun
    return begun


def begin_all(tx: Connection, wanted: Sequence[Begin]) -> list[Begun | errors.NovaError]:
    """Begin actions on servers, each on another one: raise their epochs, set their task states, write the journal rows,
    and close the open entries that they overtake; with a fixed number of statements for each action.

    A refused action changes nothing. Its result is server.WrongState, server.NotFound, server.HalfDestroyed or
    server.HostForcedDown.
    """
    rows = _locked(tx, [what.server_uuid for what in wanted])
    refused = {what.server_uuid: _refusal(what, rows.get(what.server_uuid)) for what in wanted}
    allowed = [what for what in wanted if refused[what.server_uuid] is None]
    begun: dict[str, Begun] = {}
    if allowed:
        servers_ = {what.server_uuid: _begun_row(what, rows[what.server_uuid].server) for what in allowed}
        epochs = {uuid: server.epoch for uuid, server in servers_.items()}
        _raise_epochs(tx, allowed, epochs)
        overtaken = _overtake(tx, list(epochs))
        begun = {entry.server_uuid: Begun(entry, overtaken.get(entry.server_uuid, ()), servers_[entry.server_uuid])
                 for entry in _write_begun(tx, allowed, epochs)}
    return [refused[what.server_uuid] or begun[what.server_uuid] for what in wanted]


def _refusal(what: Begin, row: _Locked | None) -> errors.NovaError | None:
    if row is None:
        return errors.server.NotFound(server=what.server_uuid)
    server, task = row.server, TaskState(row.server.task_state) if row.server.task_state else None
    destroying = server.memo is not None and server.memo.destroying
    if destroying and what.action.name != "delete" and not _only_to_error(what):
        return errors.server.HalfDestroyed(server=what.server_uuid)
    why = refusal(what.action, VmState(server.vm_state), task, server.launched_at is not None)
    if why is None and task is TaskState.DELETING and what.action.name not in _OVER_A_DELETE:
        why = StateConflict("task_state", task.value)
    name = API_NAMES.get(what.action.name, what.action.name)
    if why is not None:
        return errors.server.WrongState(action=name, server=what.server_uuid, attribute=why.attribute, value=why.value)
    if row.host_forced_down and what.action.name in ON_ITS_HOST:
        return errors.server.HostForcedDown(action=name, server=what.server_uuid)
    return None


def _begun_row(what: Begin, server: ServerRow) -> ServerRow:
    """Return the row as :func:`_raise_epochs` changes it."""
    epoch = server.epoch + 1
    return msgspec.structs.replace(
        server, epoch=epoch, console_epoch=epoch if what.action.name in ENDS_CONSOLES else server.console_epoch,
        task_state=what.action.task.value if what.action.task else None)


def _raise_epochs(tx: Connection, wanted: Sequence[Begin], epochs: Mapping[str, int]) -> None:
    alike: dict[tuple[str | None, bool], list[str]] = {}
    for what in wanted:
        task = what.action.task.value if what.action.task else None
        alike.setdefault((task, what.action.name in ENDS_CONSOLES), []).append(what.server_uuid)
    for (task, ends_consoles), uuids in alike.items():
        names = ("epoch", "console_epoch") if ends_consoles else ("epoch",)
        same = {"task_state": task, "updated_at": utc_now()}
        if len(uuids) == 1:
            update_where(tx, servers, {"uuid": uuids[0]}, {**dict.fromkeys(names, epochs[uuids[0]]), **same})
        else:
            update_each(tx, servers, EachRow("uuid", uuids, {}, {}, same, dict.fromkeys(names, epochs)))


def _write_begun(tx: Connection, wanted: Sequence[Begin], epochs: Mapping[str, int]) -> list[Entry]:
    fields: list[dict[str, Any]] = [
        {"server_uuid": what.server_uuid, "action": what.action.name, "epoch": epochs[what.server_uuid],
         "step": what.step, "runner_id": what.runner_id, "arguments": what.arguments, "data": {}, "history": (),
         "request_id": what.request_id, "user_id": what.user_id, "project_id": what.project_id} for what in wanted]
    keys = insert_journal(tx, [{**one, "direction": "do", "attempt": 1} for one in fields])
    return [Entry(id=keys[one["server_uuid"]], **one) for one in fields]


_NEW = sa.select(operations.c.server_uuid, operations.c.id).where(
    operations.c.server_uuid.in_(sa.bindparam("uuids", expanding=True)), operations.c.finished_at.is_(None))


def insert_journal(tx: Connection, rows: Sequence[Mapping[str, object]]) -> dict[str, int]:
    """Insert open journal rows, each of another server without one; return their keys by the servers' UUIDs."""
    if not rows:
        return {}
    key = insert_all(tx, operations, [{**row, "started_at": utc_now(), "updated_at": utc_now()} for row in rows])
    if key is not None:
        return {str(rows[0]["server_uuid"]): key}
    return {row.server_uuid: row.id for row in tx.execute(_NEW, {"uuids": [one["server_uuid"] for one in rows]})}


def _only_to_error(what: Begin) -> bool:
    return what.action.name == "reset_state" and what.arguments.get("state") == VmState.ERROR.value


_FORCED_DOWN = sa.select(sa.func.count()).where(
    services.c.host == servers.c.host, services.c.binary == "nova-compute", services.c.deleted == 0,
    services.c.forced_down == sa.true()).scalar_subquery()
_LOCKED = (sa.select(SERVER_ROWS.text, _FORCED_DOWN)
           .where(servers.c.uuid.in_(sa.bindparam("uuids", expanding=True)), servers.c.deleted == 0)
           .order_by(servers.c.uuid).with_for_update())


class _Locked(NamedTuple):
    server: ServerRow
    host_forced_down: bool


def _locked(tx: Connection, uuids: Sequence[str]) -> dict[str, _Locked]:
    """Return those of the servers that exist, locked in the order of their UUIDs."""
    found = [_Locked(SERVER_ROWS.value(text), bool(forced_down))
             for text, forced_down in tx.execute(_LOCKED, {"uuids": list(uuids)})]
    return {one.server.uuid: one for one in found}


def remembers(journal: sa.FromClause) -> sa.ColumnElement[bool]:
    """Return the condition for journal rows that carry over data of overtaken operations: successful state resets and
    soft deletes, and failed deletes. They record the hosts that may have leftovers; a later one includes the records of
    earlier ones."""
    return sa.or_(sa.and_(journal.c.action.in_(("reset_state", "soft_delete")), journal.c.outcome == "success"),
                  sa.and_(journal.c.action == "delete", journal.c.outcome == "error"))


_OVERTAKEN = sa.select(*ENTRY_COLUMNS).where(
    operations.c.server_uuid.in_(sa.bindparam("uuids", expanding=True)),
    sa.or_(operations.c.finished_at.is_(None), remembers(operations)))


def _overtake(tx: Connection, uuids: Sequence[str]) -> dict[str, tuple[Entry, ...]]:
    """Close the servers' open operations; return them, and the entries that carry over data of overtaken operations, by
    server."""
    found: dict[str, tuple[Entry, ...]] = {}
    for row in tx.execute(_OVERTAKEN, {"uuids": list(uuids)}):
        found[row.server_uuid] = (*found.get(row.server_uuid, ()), Entry(**row._mapping))
    if found:
        ids = [entry.id for entries in found.values() for entry in entries]
        tx.execute(sa.update(operations).where(operations.c.id.in_(ids), operations.c.finished_at.is_(None))
                   .values(finished_at=utc_now(), updated_at=utc_now(), outcome="overtaken"))
    return found


class StateChange(NamedTuple):
    """A change of operations: their entries with the new step, data and history, and new ``values`` (such as
    task_state) of columns of their servers' rows; a :class:`PerServer` for values that differ."""

    entries: Sequence[Entry]
    values: Mapping[str, object]


def advance(tx: Connection, *changes: StateChange) -> None:
    """Write the progress of operations.

    One statement for all entries, and one for each set of changed columns. Raises Overtaken,
    before any entry is written, if one of them no longer owns its server.
    """
    _write_servers(tx, changes, {"updated_at": utc_now()})
    _write_entries(tx, [entry for change in changes for entry in change.entries], {}, {})


def finish(tx: Connection, changes: Sequence[StateChange], outcome: str, faults: Mapping[int, str] | None = None
           ) -> None:
    """Finish the entries' operations: write the final states on their servers, and outcome and fault text (by entry id)
    here."""
    final = [change._replace(values={"task_state": None, "progress": 0, **change.values}) for change in changes]
    _write_servers(tx, final, {"updated_at": utc_now()})
    extra: dict[str, Any] = {"outcome": outcome, "finished_at": utc_now()}
    _write_entries(tx, [entry for change in changes for entry in change.entries], extra,
                   {"fault": faults} if faults else {})


def _write_servers(tx: Connection, changes: Sequence[StateChange], also: Mapping[str, object]) -> None:
    alike: dict[tuple[str, ...], list[StateChange]] = {}
    for change in changes:
        alike.setdefault(tuple(sorted(change.values)), []).append(change)
    for columns, group in alike.items():
        entries = [entry for change in group for entry in change.entries]
        if len(entries) == 1:
            changed = _write_server(tx, entries[0], {**group[0].values, **also})
        else:
            changed = _write_several(tx, entries, {**{name: _merged(name, group) for name in columns}, **also})
        if changed != len(entries):
            raise errors.Overtaken(f"{len(entries) - changed} of {len(entries)} servers have a newer owner")


def _merged(name: str, changes: Sequence[StateChange]) -> object:
    """Return the value of a column for all changes: their common value, or each server's own."""
    values = [change.values[name] for change in changes]
    if all(_same(value, values[0]) for value in values[1:]):
        return values[0]
    merged = PerServer()
    for change, value in zip(changes, values, strict=True):
        own = value if isinstance(value, PerServer) else {entry.server_uuid: value for entry in change.entries}
        merged.update(own)
    return merged


def _same(value: object, other: object) -> bool:
    if isinstance(value, sa.ClauseElement):
        return value is other or (isinstance(value, utc_now) and isinstance(other, utc_now))
    return not isinstance(value, PerServer) and not isinstance(other, sa.ClauseElement | PerServer) and value == other


def _write_server(tx: Connection, entry: Entry, changes: Mapping[str, object]) -> int:
    values = {name: value.get(entry.server_uuid, servers.c[name]) if isinstance(value, PerServer) else value
              for name, value in changes.items()}
    return update_where(tx, servers, {"uuid": entry.server_uuid, "epoch": entry.epoch, "deleted": 0}, values)


def _write_several(tx: Connection, entries: Sequence[Entry], changes: Mapping[str, object]) -> int:
    uuids = [entry.server_uuid for entry in entries]
    own = {name: value for name, value in changes.items() if isinstance(value, PerServer)}
    # microseconds in updated_at make every matched row a changed row, in any driver's count
    return update_each(tx, servers, EachRow(
        "uuid", uuids, {"deleted": 0}, {"epoch": {entry.server_uuid: entry.epoch for entry in entries}},
        {name: value for name, value in changes.items() if name not in own}, own))


def _write_entries(tx: Connection, entries: Sequence[Entry], same: Mapping[str, object],
                   own: Mapping[str, Mapping[int, object]]) -> None:
    columns = ("step", "direction", "attempt", "data", "history")
    if len(entries) == 1:
        fields = {name: getattr(entries[0], name) for name in columns}
        given = {name: values[entries[0].id] for name, values in own.items()}
        update_where(tx, operations, {"id": entries[0].id}, {**fields, **given, **same, "updated_at": utc_now()})
        return
    common = {name: getattr(entries[0], name) for name in columns[:3]
              if len({getattr(entry, name) for entry in entries}) == 1}
    each = {name: {entry.id: getattr(entry, name) for entry in entries} for name in columns if name not in common}
    update_each(tx, operations, EachRow("id", [entry.id for entry in entries], {}, {},
                                        {**common, **same, "updated_at": utc_now()}, {**each, **own}))


class PerServer(dict[str, Any]):
    """A change with a different value for each server: UUID -> value."""


def at_step(tx: Connection, host: str, ids: Sequence[int], uuids: Sequence[str], step: str) -> tuple[Entry, ...]:
    """Return the open entries at a step (forwards) for servers of this host that still own their servers."""
    rows = tx.execute(sa.select(*ENTRY_COLUMNS).join_from(operations, servers,
                                                          servers.c.uuid == operations.c.server_uuid)
                      .where(operations.c.id.in_(ids), operations.c.server_uuid.in_(uuids), operations.c.step == step,
                             operations.c.direction == "do", operations.c.finished_at.is_(None),
                             operations.c.epoch == servers.c.epoch, servers.c.host == host))
    return tuple(Entry(**row._mapping) for row in rows)


def show_active(tx: Connection, entry: Entry, power_state: int) -> None:
    """Show a server of a running batch as ACTIVE because its guest is up; its operation ends with the batch."""
    tx.execute(sa.update(servers).where(servers.c.uuid == entry.server_uuid, servers.c.epoch == entry.epoch,
                                        servers.c.vm_state == "building")
               .values(vm_state="active", task_state=None, launched_at=utc_now(), power_state=power_state,
                       updated_at=utc_now()))


def still_mine(tx: Connection, entries: Sequence[Entry]) -> set[str]:
    """Return the UUIDs of the servers whose epoch is still the entry's."""
    rows = tx.execute(sa.select(servers.c.uuid, servers.c.epoch)
                      .where(servers.c.uuid.in_([entry.server_uuid for entry in entries]), servers.c.deleted == 0))
    newest = {row.uuid: row.epoch for row in rows}
    return {entry.server_uuid for entry in entries if newest.get(entry.server_uuid) == entry.epoch}


# -- runners and their leases

PARKED_S = 10  # age of an own row without a task that counts as parked: younger ones are being begun


def take_over(tx: Connection, entry: Entry, runner_id: int) -> Entry | None:
    """Take over an orphaned operation with a new epoch, which fences its old runner. None if either changed."""
    taken = tx.execute(sa.update(servers).where(servers.c.uuid == entry.server_uuid, servers.c.epoch == entry.epoch,
                                                servers.c.deleted == 0)
                       .values(epoch=entry.epoch + 1, updated_at=utc_now())).rowcount
    if not taken:
        return None
    moved = tx.execute(sa.update(operations).where(operations.c.id == entry.id, operations.c.finished_at.is_(None),
                                                   operations.c.runner_id == entry.runner_id)
                       .values(runner_id=runner_id, epoch=entry.epoch + 1, updated_at=utc_now())).rowcount
    if not moved:
        raise errors.Overtaken("another runner took over the operation")
    return msgspec.structs.replace(entry, runner_id=runner_id, epoch=entry.epoch + 1)


def close_lost(tx: Connection, entry: Entry) -> None:
    """Close a journal row whose server was deleted or is owned by a newer epoch: no work is left for it."""
    # of this epoch only: a runner that took it over meanwhile continues it
    tx.execute(sa.update(operations).where(operations.c.id == entry.id, operations.c.epoch == entry.epoch,
                                           operations.c.finished_at.is_(None))
               .values(finished_at=utc_now(), updated_at=utc_now(), outcome="overtaken"))


def fence_unreachable_host(tx: Connection, entry: Entry) -> Entry:
    """Raise the epoch of an operation that continues without a lost host, so that orders sent to that host may not
    proceed. Raises Overtaken if the entry no longer owns the server."""
    newer = msgspec.structs.replace(entry, epoch=entry.epoch + 1)
    _write_servers(tx, [StateChange([entry], {"epoch": newer.epoch})], {"updated_at": utc_now()})
    tx.execute(sa.update(operations).where(operations.c.id == entry.id).values(epoch=newer.epoch,
                                                                              updated_at=utc_now()))
    return newer


