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
from nova.db.sql.statements import by_key, update_where
from nova.db.sql.types import later, new_key, utc_now
from nova.model.base import Value
from nova.model.server.actions import ActionEvent
from nova.model.server.servers import TERMINATE
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


#: Actions that may overtake a delete, whatever the table of transitions allows: for others, the server counts as
#: deleted.
_OVER_A_DELETE = frozenset({"delete", "reset_state"})

ENTRY_COLUMNS = [operations.c[field] for field in Entry.__struct_fields__]


def begin(tx: Connection, what: Begin) -> tuple[Entry, tuple[Entry, ...]]:
    """Begin an action on a server: raise its epoch, set its task state, write the journal row.

    Returns the new entry and the open entries that it overtook, which it closes. Raises server.WrongState,
    server.NotFound, server.HalfDestroyed or server.HostForcedDown.
    """
    row = _locked(tx, what.server_uuid)
    if row.destroying and what.action.name != "delete" and not _only_to_error(what):
        raise errors.server.HalfDestroyed(server=what.server_uuid)
    why = refusal(what.action, row.vm_state, row.task_state, row.launched_at is not None)
    if why is None and row.task_state is TaskState.DELETING and what.action.name not in _OVER_A_DELETE:
        why = StateConflict("task_state", row.task_state.value)
    if why is not None:
        raise errors.server.WrongState(action=API_NAMES.get(what.action.name, what.action.name),
                                       server=what.server_uuid, attribute=why.attribute, value=why.value)
    if row.host_forced_down and what.action.name in ON_ITS_HOST:
        raise errors.server.HostForcedDown(action=API_NAMES.get(what.action.name, what.action.name),
                                           server=what.server_uuid)
    epoch = row.epoch + 1
    task = what.action.task.value if what.action.task else None
    values = {"epoch": epoch, "task_state": task, "updated_at": utc_now()}
    if what.action.name in ENDS_CONSOLES:
        values["console_epoch"] = epoch
    update_where(tx, servers, {"uuid": what.server_uuid}, values)
    overtaken = _overtake(tx, what.server_uuid)
    fields: dict[str, Any] = {
        "server_uuid": what.server_uuid, "action": what.action.name, "epoch": epoch, "step": what.step,
        "runner_id": what.runner_id, "arguments": what.arguments, "data": {}, "history": (),
        "request_id": what.request_id, "user_id": what.user_id, "project_id": what.project_id}
    key = tx.execute(sa.insert(operations).values(**fields, started_at=utc_now(), updated_at=utc_now()))
    return Entry(id=new_key(key), **fields), overtaken


def _only_to_error(what: Begin) -> bool:
    return what.action.name == "reset_state" and what.arguments.get("state") == VmState.ERROR.value


_FORCED_DOWN = sa.select(sa.func.count()).where(
    services.c.host == servers.c.host, services.c.binary == "nova-compute", services.c.deleted == 0,
    services.c.forced_down == sa.true()).scalar_subquery().label("forced_down")
_LOCKED = (sa.select(servers.c.epoch, servers.c.vm_state, servers.c.task_state, servers.c.launched_at, servers.c.memo,
                     _FORCED_DOWN)
           .where(servers.c.uuid == sa.bindparam("uuid"), servers.c.deleted == 0).with_for_update())


def _locked(tx: Connection, uuid: str) -> _State:
    found = tx.execute(_LOCKED, {"uuid": uuid}).one_or_none()
    if found is None:
        raise errors.server.NotFound(server=uuid)
    task_state = TaskState(found.task_state) if found.task_state else None
    destroying = found.memo is not None and found.memo.destroying
    return _State(found.epoch, VmState(found.vm_state), task_state, found.launched_at, destroying,
                  bool(found.forced_down))


class _State(NamedTuple):
    epoch: int
    vm_state: Any
    task_state: Any
    launched_at: Any
    destroying: bool
    host_forced_down: bool


def remembers(journal: sa.FromClause) -> sa.ColumnElement[bool]:
    """Return the condition for journal rows that carry over data of overtaken operations: successful state resets and
    soft deletes, and failed deletes. They record the hosts that may have leftovers; a later one includes the records of
    earlier ones."""
    return sa.or_(sa.and_(journal.c.action.in_(("reset_state", "soft_delete")), journal.c.outcome == "success"),
                  sa.and_(journal.c.action == "delete", journal.c.outcome == "error"))


def _overtake(tx: Connection, uuid: str) -> tuple[Entry, ...]:
    """Close the server's open operations; return them, and the entries that carry over data of overtaken operations."""
    rows = tx.execute(sa.select(*ENTRY_COLUMNS).where(
        operations.c.server_uuid == uuid, sa.or_(operations.c.finished_at.is_(None), remembers(operations)))).all()
    if rows:
        tx.execute(sa.update(operations).where(operations.c.id.in_([row.id for row in rows]),
                                               operations.c.finished_at.is_(None))
                   .values(finished_at=utc_now(), updated_at=utc_now(), outcome="overtaken"))
    return tuple(Entry(**row._mapping) for row in rows)


def remember(tx: Connection, entry: Entry, overtaken: Sequence[Entry]) -> Entry:
    """Record in the new entry's arguments where overtaken operations may have left data: their hosts, and ``images`` as
    [id, whether a complete image is kept]."""
    hosts = [host for old in overtaken for host in (old.data.get("tried") or [])]
    hosts += [host for old in overtaken for host in (old.arguments.get("hosts") or [])]
    images = [[old.arguments["snapshot_image_id"], old.action != "shelve"] for old in overtaken
              if "snapshot_image_id" in old.arguments]
    images += [one for old in overtaken for one in (old.arguments.get("images") or []) if one not in images]
    arguments = {**entry.arguments, "hosts": list(dict.fromkeys(hosts))}
    if images:
        arguments["images"] = images
    # of overtaken moves of a guest with its disks: hosts that do not share storage with the source
    apart = [host for old in overtaken for host in [*(old.arguments.get("apart") or []), *_apart(old)]]
    if apart:
        arguments["apart"] = list(dict.fromkeys(apart))
    tx.execute(sa.update(operations).where(operations.c.id == entry.id).values(arguments=arguments))
    return msgspec.structs.replace(entry, arguments=arguments)


def _apart(old: Entry) -> list[str]:
    return [str(old.data["host"])] if old.data.get("shared") is False and old.data.get("host") else []


def argue(tx: Connection, entry: Entry, arguments: Mapping[str, object]) -> Entry:
    """Add arguments to an operation that is being begun."""
    merged = {**entry.arguments, **arguments}
    tx.execute(sa.update(operations).where(operations.c.id == entry.id).values(arguments=merged))
    return msgspec.structs.replace(entry, arguments=merged)


def advance(tx: Connection, entries: Sequence[Entry], changes: Mapping[str, object]) -> None:
    """Write the entries' new step, data and history, and ``changes`` (such as task_state) on their servers.

    Two statements for any number of entries. Raises Overtaken, before any entry is written, if one of them no longer
    owns its server.
    """
    _write_servers(tx, entries, {**changes, "updated_at": utc_now()})
    _write_entries(tx, entries, {})


def finish(tx: Connection, entries: Sequence[Entry], changes: Mapping[str, object], outcome: str,
           faults: Mapping[int, str] | None = None) -> None:
    """Finish the entries' operations: write the final states on their servers, and outcome and fault text (by entry id)
    here."""
    _write_servers(tx, entries, {"task_state": None, "progress": 0, **changes, "updated_at": utc_now()})
    extra: dict[str, Any] = {"outcome": outcome, "finished_at": utc_now()}
    if faults:
        extra["fault"] = by_key(operations.c.id, faults, operations.c.fault)
    _write_entries(tx, entries, extra)


def _write_servers(tx: Connection, entries: Sequence[Entry], changes: Mapping[str, object]) -> None:
    pairs = [(entry.server_uuid, entry.epoch) for entry in entries]
    changed = _write_server(tx, entries[0], changes) if len(entries) == 1 else _write_several(tx, pairs, changes)
    if changed != len(pairs):
        raise errors.Overtaken(f"{len(pairs) - changed} of {len(pairs)} servers have a newer owner")


def _write_server(tx: Connection, entry: Entry, changes: Mapping[str, object]) -> int:
    values = {name: value.get(entry.server_uuid, servers.c[name]) if isinstance(value, PerServer) else value
              for name, value in changes.items()}
    return update_where(tx, servers, {"uuid": entry.server_uuid, "epoch": entry.epoch, "deleted": 0}, values)


def _write_several(tx: Connection, pairs: Sequence[tuple[str, int]], changes: Mapping[str, object]) -> int:
    per_server = {name: by_key(servers.c.uuid, value, servers.c[name]) if isinstance(value, PerServer) else value
                  for name, value in changes.items()}
    epochs = {epoch for _uuid, epoch in pairs}
    if len(epochs) == 1:
        mine = sa.and_(servers.c.uuid.in_([uuid for uuid, _ in pairs]), servers.c.epoch == epochs.pop())
    else:
        mine = sa.tuple_(servers.c.uuid, servers.c.epoch).in_(pairs)
    # microseconds in updated_at make every matched row a changed row, in any driver's count
    return tx.execute(sa.update(servers).where(mine, servers.c.deleted == 0).values(**per_server)).rowcount


def _write_entries(tx: Connection, entries: Sequence[Entry], extra: Mapping[str, object]) -> None:
    columns = ("step", "direction", "attempt", "data", "history")
    if len(entries) == 1:
        own = {name: getattr(entries[0], name) for name in columns}
        update_where(tx, operations, {"id": entries[0].id}, {**own, **extra, "updated_at": utc_now()})
        return
    values: dict[str, Any] = {}
    for name in columns:
        by_id = {entry.id: getattr(entry, name) for entry in entries}
        same = len({repr(value) for value in by_id.values()}) == 1
        values[name] = next(iter(by_id.values())) if same else by_key(operations.c.id, by_id, operations.c[name])
    tx.execute(sa.update(operations).where(operations.c.id.in_([entry.id for entry in entries]))
               .values(**values, **extra, updated_at=utc_now()))


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


QUIET_S = 60  # no report is in transit for longer: after this time a report with an older epoch is not a late one


class Power(NamedTuple):
    """A host's report on one guest. ``epoch``: the newest epoch that the host had seen at that time."""

    state: int
    epoch: int
    now: str  # the vm_state that fits the guest; empty if the report implies none


#: vm_state of a server whose guest should be off but runs -> the action that stops it.
STRAYS = {"stopped": "stop", "soft-delete": "stop_deleted"}
#: The state that a guest enters without an operation -> the vm_states of servers that follow it. A running guest of a
#: stopped or deleted server is different: it is stopped again.
_TURNS = {"stopped": ("active", "paused"), "paused": ("active",), "suspended": ("active",),
          "active": ("paused", "suspended")}


def note_power(tx: Connection, host: str, reported: Mapping[str, Power]) -> tuple[str, ...]:
    """Record the power states reported by a host; idle servers follow guests that changed state without an operation.
    Returns the servers whose guests run but should be off: pass them to :func:`set_running`.

    A report that was in transit while an operation ended is older than the server's epoch, and is ignored. Known values
    change no row, so that ``updated_at`` reflects changes only.
    """
    mine = _reported(host, reported)
    power = by_key(servers.c.uuid, {uuid: one.state for uuid, one in reported.items()}, servers.c.power_state)
    for after, before in _TURNS.items():
        turned = [uuid for uuid, one in reported.items() if one.now == after]
        if turned:
            tx.execute(sa.update(servers).where(mine, servers.c.uuid.in_(turned), servers.c.vm_state.in_(before))
                       .values(vm_state=after, power_state=power, updated_at=utc_now()))
    on = [uuid for uuid, one in reported.items() if one.now == "active"]
    strays = sa.select(servers.c.uuid).where(mine, servers.c.uuid.in_(on), servers.c.vm_state.in_(STRAYS))
    found = tuple(tx.execute(strays).scalars()) if on else ()
    rest = [uuid for uuid in reported if uuid not in found]
    if rest:
        tx.execute(sa.update(servers).where(mine, servers.c.uuid.in_(rest), servers.c.power_state != power)
                   .values(power_state=power, updated_at=utc_now()))
    return found


def ending(tx: Connection, host: str, reported: Mapping[str, Power]) -> tuple[str, ...]:
    """Return the active servers to delete because their guests shut themselves down. Locked servers are excluded."""
    if not reported:
        return ()
    found = tx.execute(sa.select(servers.c.uuid, servers.c.memo).where(
        _reported(host, reported), servers.c.uuid.in_(reported), servers.c.vm_state == "active",
        servers.c.locked_by.is_(None), servers.c.memo.is_not(None)))
    return tuple(row.uuid for row in found if row.memo.shutdown_behavior == TERMINATE)


def set_running(tx: Connection, host: str, uuid: str, power: Power) -> str | None:
    """Record that a guest runs although its server should be off; return the action that stops it. None if that is no
    longer the case.

    A stopped server becomes active, so that it can be stopped; a deleted one stays deleted.
    """
    for was, action in STRAYS.items():
        shown = {"vm_state": "active"} if was == "stopped" else {}
        mine = sa.and_(_reported(host, {uuid: power}), servers.c.uuid == uuid, servers.c.vm_state == was)
        if tx.execute(sa.update(servers).where(mine).values(**shown, power_state=power.state, updated_at=utc_now())
                      ).rowcount:
            return action
    return None


def _reported(host: str, reported: Mapping[str, Power]) -> sa.ColumnElement[bool]:
    """Return the condition for idle servers of this host for which the report is recent enough to count."""
    epochs = {uuid: one.epoch for uuid, one in reported.items()}
    current = sa.or_(servers.c.epoch <= by_key(servers.c.uuid, epochs, servers.c.epoch),
                     servers.c.updated_at < later(-QUIET_S))
    return sa.and_(servers.c.host == host, servers.c.deleted == 0, servers.c.task_state.is_(None), current)


def note_progress(tx: Connection, host: str, uuid: str, epoch: int, percent: int) -> bool:
    """Record the progress of a migration to or from this host, in percent. False if the server is not migrating, or has
    another epoch."""
    mine = sa.and_(servers.c.uuid == uuid, servers.c.host == host, servers.c.epoch == epoch, servers.c.deleted == 0,
                   servers.c.task_state == TaskState.MIGRATING.value)
    return tx.execute(sa.update(servers).where(mine).values(
        progress=max(0, min(100, percent)), updated_at=utc_now())).rowcount > 0


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
    _write_servers(tx, [entry], {"epoch": newer.epoch, "updated_at": utc_now()})
    tx.execute(sa.update(operations).where(operations.c.id == entry.id).values(epoch=newer.epoch,
                                                                              updated_at=utc_now()))
    return newer


