"""The one door through which states are written: begin, advance, finish. See `Epochs` in doc/architecture.rst.

Each writes ``… WHERE uuid AND epoch = mine``; no row changed means that a newer epoch owns the server. Who calls them
holds a transaction; the journal row changes in the same one.
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
from nova.db.sql.types import AnyColumn, Clause, later, new_key, utc_now
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
    """What :func:`begin` needs: the action, who asks, and who will run it."""

    action: Action
    server_uuid: str
    arguments: Mapping[str, Any]
    request_id: str
    user_id: str | None
    project_id: str | None
    runner_id: int
    step: str


#: What may overtake a delete, whatever the table allows: for all others the server is as good as gone.
_OVER_A_DELETE = frozenset({"delete", "reset_state"})

ENTRY_COLUMNS = [operations.c[field] for field in Entry.__struct_fields__]


def begin(tx: Connection, what: Begin) -> tuple[Entry, tuple[Entry, ...]]:
    """Take the server over for an action: raise its epoch, say its task, write the journal row.

    Gives the new entry and the open ones it overtook (which it closes). WrongState, NotFound.
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


def remembers(journal: sa.FromClause) -> Clause:
    """Of rows of the journal (or an alias of it): resets of the state, soft deletes, and deletes that failed, which
    overtook others before. They know where those may have left something; a later one knows what earlier ones do."""
    return sa.or_(sa.and_(journal.c.action.in_(("reset_state", "soft_delete")), journal.c.outcome == "success"),
                  sa.and_(journal.c.action == "delete", journal.c.outcome == "error"))


def _overtake(tx: Connection, uuid: str) -> tuple[Entry, ...]:
    """Close the open operations. With them come those that remember others."""
    rows = tx.execute(sa.select(*ENTRY_COLUMNS).where(
        operations.c.server_uuid == uuid, sa.or_(operations.c.finished_at.is_(None), remembers(operations)))).all()
    if rows:
        tx.execute(sa.update(operations).where(operations.c.id.in_([row.id for row in rows]),
                                               operations.c.finished_at.is_(None))
                   .values(finished_at=utc_now(), updated_at=utc_now(), outcome="overtaken"))
    return tuple(Entry(**row._mapping) for row in rows)


def remember(tx: Connection, entry: Entry, overtaken: Sequence[Entry]) -> Entry:
    """Keep in the new entry's arguments where the overtaken operations may have left something: their hosts, and
    ``images`` as [id, whether it stays if it is whole]."""
    hosts = [host for old in overtaken for host in (old.data.get("tried") or [])]
    hosts += [host for old in overtaken for host in (old.arguments.get("hosts") or [])]
    images = [[old.arguments["snapshot_image_id"], old.action != "shelve"] for old in overtaken
              if "snapshot_image_id" in old.arguments]
    images += [one for old in overtaken for one in (old.arguments.get("images") or []) if one not in images]
    arguments = {**entry.arguments, "hosts": list(dict.fromkeys(hosts))}
    if images:
        arguments["images"] = images
    # of those that were to take a guest with its disks: that they do not share the storage where it came from
    apart = [host for old in overtaken for host in [*(old.arguments.get("apart") or []), *_apart(old)]]
    if apart:
        arguments["apart"] = list(dict.fromkeys(apart))
    tx.execute(sa.update(operations).where(operations.c.id == entry.id).values(arguments=arguments))
    return msgspec.structs.replace(entry, arguments=arguments)


def _apart(old: Entry) -> list[str]:
    return [str(old.data["host"])] if old.data.get("shared") is False and old.data.get("host") else []


def argue(tx: Connection, entry: Entry, arguments: Mapping[str, object]) -> Entry:
    """Keep more arguments of an operation that is being begun."""
    merged = {**entry.arguments, **arguments}
    tx.execute(sa.update(operations).where(operations.c.id == entry.id).values(arguments=merged))
    return msgspec.structs.replace(entry, arguments=merged)


def advance(tx: Connection, entries: Sequence[Entry], changes: Mapping[str, object]) -> None:
    """Write the entries' new step, data and history, and ``changes`` (task_state and alike) on their servers.

    Two statements, however many entries. Overtaken when one of them has lost its server (nothing is written then).
    """
    _write_servers(tx, entries, {**changes, "updated_at": utc_now()})
    _write_entries(tx, entries, {})


def finish(tx: Connection, entries: Sequence[Entry], changes: Mapping[str, AnyColumn], outcome: str,
           faults: Mapping[int, str] | None = None) -> None:
    """End the entries' operations: states after it on their servers, outcome and fault text (by entry id) here."""
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


def _write_several(tx: Connection, pairs: Sequence[tuple[str, int]], changes: Mapping[str, AnyColumn]) -> int:
    per_server = {name: by_key(servers.c.uuid, value, servers.c[name]) if isinstance(value, PerServer) else value
                  for name, value in changes.items()}
    epochs = {epoch for _uuid, epoch in pairs}
    if len(epochs) == 1:
        mine = sa.and_(servers.c.uuid.in_([uuid for uuid, _ in pairs]), servers.c.epoch == epochs.pop())
    else:
        mine = sa.tuple_(servers.c.uuid, servers.c.epoch).in_(pairs)
    # microseconds in updated_at make every matched row a changed row, whatever a driver counts
    return tx.execute(sa.update(servers).where(mine, servers.c.deleted == 0).values(**per_server)).rowcount


def _write_entries(tx: Connection, entries: Sequence[Entry], extra: Mapping[str, AnyColumn]) -> None:
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
    """A change that differs from server to server: uuid -> value."""


def at_step(tx: Connection, host: str, ids: Sequence[int], uuids: Sequence[str], step: str) -> tuple[Entry, ...]:
    """Open entries that stand at a step (forwards) for servers of this host, and still own them."""
    rows = tx.execute(sa.select(*ENTRY_COLUMNS).join_from(operations, servers,
                                                          servers.c.uuid == operations.c.server_uuid)
                      .where(operations.c.id.in_(ids), operations.c.server_uuid.in_(uuids), operations.c.step == step,
                             operations.c.direction == "do", operations.c.finished_at.is_(None),
                             operations.c.epoch == servers.c.epoch, servers.c.host == host))
    return tuple(Entry(**row._mapping) for row in rows)


def show_active(tx: Connection, entry: Entry, power_state: int) -> None:
    """A guest of a running batch is up: its server is ACTIVE for all to see; its operation ends with the batch."""
    tx.execute(sa.update(servers).where(servers.c.uuid == entry.server_uuid, servers.c.epoch == entry.epoch,
                                        servers.c.vm_state == "building")
               .values(vm_state="active", task_state=None, launched_at=utc_now(), power_state=power_state,
                       updated_at=utc_now()))


def still_mine(tx: Connection, entries: Sequence[Entry]) -> set[str]:
    """Uuids of those servers whose epoch is still the entry's."""
    rows = tx.execute(sa.select(servers.c.uuid, servers.c.epoch)
                      .where(servers.c.uuid.in_([entry.server_uuid for entry in entries]), servers.c.deleted == 0))
    newest = {row.uuid: row.epoch for row in rows}
    return {entry.server_uuid for entry in entries if newest.get(entry.server_uuid) == entry.epoch}


QUIET_S = 60  # no report is under way for longer: after that one of an older epoch is not a late one


class Power(NamedTuple):
    """What a host says of one guest. ``epoch``: the newest that it had seen when it looked."""

    state: int
    epoch: int
    now: str  # the vm_state that fits; empty when it says nothing about that


#: A server whose guest runs although it should be off -> what is ordered for it.
STRAYS = {"stopped": "stop", "soft-delete": "stop_deleted"}
#: What a guest does by itself -> the states of servers that turn with it. (One that runs although its server is
#: stopped, or deleted, is another thing: it is stopped again.)
_TURNS = {"stopped": ("active", "paused"), "paused": ("active",), "suspended": ("active",),
          "active": ("paused", "suspended")}


def note_power(tx: Connection, host: str, reported: Mapping[str, Power]) -> tuple[str, ...]:
    """Power states a host reported; idle servers turn with guests that changed by themselves. Gives the servers that
    should be off and whose guests run all the same: :func:`set_running` is for them.

    A report that was under way while an operation ended is older than the server's epoch, and counts for nothing.
    What says what is known already changes no row, so that ``updated_at`` tells of changes only.
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
    """Of those whose guests shut down by themselves, the active servers that are to be deleted then. Nobody who locked
    one is overruled."""
    if not reported:
        return ()
    found = tx.execute(sa.select(servers.c.uuid, servers.c.memo).where(
        _reported(host, reported), servers.c.uuid.in_(reported), servers.c.vm_state == "active",
        servers.c.locked_by.is_(None), servers.c.memo.is_not(None)))
    return tuple(row.uuid for row in found if row.memo.shutdown_behavior == TERMINATE)


def set_running(tx: Connection, host: str, uuid: str, power: Power) -> str | None:
    """The guest of a server that should be off runs: the action that stops it. None: not any more.

    A stopped server is active for all to see, so that it can be stopped; a deleted one stays deleted.
    """
    for was, action in STRAYS.items():
        shown = {"vm_state": "active"} if was == "stopped" else {}
        mine = sa.and_(_reported(host, {uuid: power}), servers.c.uuid == uuid, servers.c.vm_state == was)
        if tx.execute(sa.update(servers).where(mine).values(**shown, power_state=power.state, updated_at=utc_now())
                      ).rowcount:
            return action
    return None


def _reported(host: str, reported: Mapping[str, Power]) -> Clause:
    """Idle servers of this host, about which the report is not too old to count."""
    epochs = {uuid: one.epoch for uuid, one in reported.items()}
    current = sa.or_(servers.c.epoch <= by_key(servers.c.uuid, epochs, servers.c.epoch),
                     servers.c.updated_at < later(-QUIET_S))
    return sa.and_(servers.c.host == host, servers.c.deleted == 0, servers.c.task_state.is_(None), current)


def note_progress(tx: Connection, host: str, uuid: str, epoch: int, percent: int) -> bool:
    """How far a server of this host is on its way. False: it is not on its way, or an older operation says so."""
    mine = sa.and_(servers.c.uuid == uuid, servers.c.host == host, servers.c.epoch == epoch, servers.c.deleted == 0,
                   servers.c.task_state == TaskState.MIGRATING.value)
    return tx.execute(sa.update(servers).where(mine).values(
        progress=max(0, min(100, percent)), updated_at=utc_now())).rowcount > 0


# -- runners and their leases

PARKED_S = 10  # a row of ours that nobody runs: younger ones are just being begun


def take_over(tx: Connection, entry: Entry, runner_id: int) -> Entry | None:
    """Make an orphan ours: one more epoch, so that its old runner changes nothing if it wakes. None: too late."""
    taken = tx.execute(sa.update(servers).where(servers.c.uuid == entry.server_uuid, servers.c.epoch == entry.epoch,
                                                servers.c.deleted == 0)
                       .values(epoch=entry.epoch + 1, updated_at=utc_now())).rowcount
    if not taken:
        return None
    moved = tx.execute(sa.update(operations).where(operations.c.id == entry.id, operations.c.finished_at.is_(None),
                                                   operations.c.runner_id == entry.runner_id)
                       .values(runner_id=runner_id, epoch=entry.epoch + 1, updated_at=utc_now())).rowcount
    if not moved:
        raise errors.Overtaken("another runner took it")
    return msgspec.structs.replace(entry, runner_id=runner_id, epoch=entry.epoch + 1)


def close_lost(tx: Connection, entry: Entry) -> None:
    """End a journal row whose server is gone or owned by a newer epoch: there is nothing left to do for it."""
    # of this very epoch: a runner that took it over meanwhile goes on with it
    tx.execute(sa.update(operations).where(operations.c.id == entry.id, operations.c.epoch == entry.epoch,
                                           operations.c.finished_at.is_(None))
               .values(finished_at=utc_now(), updated_at=utc_now(), outcome="overtaken"))


def leave_behind(tx: Connection, entry: Entry) -> Entry:
    """One more epoch for an operation that goes on without a host it has lost: what that host was ordered may not
    proceed any more. Overtaken when the server is not the entry's."""
    newer = msgspec.structs.replace(entry, epoch=entry.epoch + 1)
    _write_servers(tx, [entry], {"epoch": newer.epoch, "updated_at": utc_now()})
    tx.execute(sa.update(operations).where(operations.c.id == entry.id).values(epoch=newer.epoch,
                                                                              updated_at=utc_now()))
    return newer


