"""Whole servers: all rows of a server in one cell's database, read and written as they are, to move between cells.

A server moves with its open operation, which continues in the other cell. The servers of a host that moves are idle.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova import errors
from nova.db.models.cell import (
    console_tokens,
    guest_facts,
    migrations,
    operations,
    runners,
    server_metadata,
    server_tags,
    servers,
    volume_cleanups,
    volume_holders,
)
from nova.db.server.servers import NamedRow, instance_name
from nova.db.server.states import ENTRY_COLUMNS, Entry
from nova.db.sql.types import Columns, utc_now

#: Rows of a server beside its own. Keys that a database assigns are not copied: each cell has its own.
PARTS = (server_metadata, server_tags, volume_holders, operations, migrations, volume_cleanups)
#: Rows that a server does not take along: consoles end, and the other cell asks for the facts again.
LEFT = (console_tokens, guest_facts)

#: Columns of an open operation that its runner may have changed since it wrote them.
CONTINUED = ("step", "direction", "attempt", "arguments", "data", "history")

Row = dict[str, object]


class WholeServer(NamedTuple):
    """A server's own row, and its rows of ``PARTS`` by table name; all without keys."""

    server: Row
    parts: Mapping[str, tuple[Row, ...]]

    @property
    def uuid(self) -> str:
        """The server's UUID."""
        return str(self.server["uuid"])


class Copied(NamedTuple):
    """The open operations as they continue in the copies, by server: with their step, direction and data."""

    runner_id: int
    entries: Mapping[str, Entry]


class Left(NamedTuple):
    """``gone``: servers whose rows the cell no longer has; ``stay``: servers for which a newer operation has begun
    there."""

    gone: frozenset[str]
    stay: frozenset[str]


def read(tx: Connection, entries: Sequence[Entry]) -> list[WholeServer]:
    """Lock and return the live servers of these operations, except of operations that have ended or were overtaken; one
    statement for each table."""
    uuids = [entry.server_uuid for entry in entries]
    found = {str(row["uuid"]): row for row in map(_keyless, tx.execute(
        _ordered(servers).where(servers.c.uuid.in_(uuids), servers.c.deleted == 0).with_for_update()))}
    parts = _parts(tx, list(found))
    live = _open_requests(parts[operations.name], entries)
    return [_whole(found[uuid], parts) for uuid in uuids if uuid in found and uuid in live]


#: Table name -> server -> the table's rows of it.
Parts = Mapping[str, Mapping[str, Sequence[Row]]]


def _parts(tx: Connection, uuids: Sequence[str]) -> Parts:
    parts: dict[str, dict[str, list[Row]]] = {}
    for table in PARTS:
        by_server = parts[table.name] = {}
        for row in map(_keyless, tx.execute(_ordered(table).where(table.c.server_uuid.in_(uuids)))):
            by_server.setdefault(str(row["server_uuid"]), []).append(row)
    return parts


def _whole(server: Row, parts: Parts) -> WholeServer:
    return WholeServer(server, {name: tuple(rows.get(str(server["uuid"]), ())) for name, rows in parts.items()})


def _open_requests(journal: Mapping[str, Sequence[Row]], entries: Sequence[Entry]) -> set[str]:
    """Return the servers whose journal has the operation of these as an open one."""
    return {entry.server_uuid for entry in entries if any(
        row["finished_at"] is None and row["request_id"] == entry.request_id and row["action"] == entry.action
        for row in journal.get(entry.server_uuid, ()))}


def _ordered(table: sa.Table) -> sa.Select[*Columns]:
    """Select the table in the order in which its rows were inserted, which their copies keep."""
    return sa.select(table).order_by(table.c.id) if "id" in table.c else sa.select(table)


def _keyless(row: sa.Row[*Columns]) -> Row:
    return {name: value for name, value in row._mapping.items() if name != "id"}


def write(tx: Connection, whole: Sequence[WholeServer], copied: Copied) -> tuple[Entry, ...]:
    """Insert copies of servers, in place of copies that a dead runner left; return their open operations. Raises
    daemon.WorkflowNotYet if a live runner owns a copy: it decides about the copy."""
    uuids = [one.uuid for one in whole]
    stale = _locked(tx, uuids)
    if _owned(tx, stale, copied.runner_id):
        raise errors.daemon.WorkflowNotYet(what="another conductor, which moves the server between cells")
    forget(tx, stale)
    _insert(tx, servers, [one.server for one in whole])
    for table in PARTS:
        rows = [row for one in whole for row in one.parts[table.name]]
        _insert(tx, table, [_continued(row, copied) if table is operations else row for row in rows])
    tx.execute(sa.update(operations).where(_is_open(uuids)).values(updated_at=utc_now()))  # not parked
    return tuple(Entry(**row._mapping) for row in tx.execute(
        sa.select(*ENTRY_COLUMNS).where(_is_open(uuids)).order_by(operations.c.id)))


def _insert(tx: Connection, table: sa.Table, rows: Sequence[Row]) -> None:
    if rows:
        tx.execute(sa.insert(table), rows)


def _is_open(uuids: Sequence[str]) -> sa.ColumnElement[bool]:
    return sa.and_(operations.c.server_uuid.in_(uuids), operations.c.finished_at.is_(None))


def _continued(row: Row, copied: Copied) -> Row:
    """Return an operation's row as its copy: an open one continues at its step, with the new owner."""
    if row["finished_at"] is not None:
        return row
    entry = copied.entries[str(row["server_uuid"])]
    return {**row, "runner_id": copied.runner_id, **{name: getattr(entry, name) for name in CONTINUED}}


def _locked(tx: Connection, uuids: Sequence[str]) -> list[str]:
    return list(tx.execute(sa.select(servers.c.uuid).where(servers.c.uuid.in_(uuids)).order_by(servers.c.id)
                           .with_for_update()).scalars())


def _owned(tx: Connection, uuids: Sequence[str], mine: int) -> bool:
    """Return whether a live runner other than ``mine`` owns an open operation of these servers."""
    alive = sa.select(runners.c.id).where(runners.c.lease_until > utc_now(), runners.c.id != mine)
    return bool(uuids) and tx.execute(sa.select(operations.c.id).where(
        _is_open(uuids), operations.c.runner_id.in_(alive)).limit(1)).first() is not None


def remove(tx: Connection, entries: Sequence[Entry]) -> None:
    """Delete the copies of these operations, which are open in this cell. A copy that another runner wrote in their
    place stays: it has another operation. May be repeated."""
    _locked(tx, [entry.server_uuid for entry in entries])
    mine = tx.execute(sa.select(operations.c.server_uuid).where(
        operations.c.id.in_([entry.id for entry in entries]), operations.c.finished_at.is_(None)))
    forget(tx, list(mine.scalars()))


def leave(tx: Connection, entries: Sequence[Entry], read: Sequence[WholeServer] | None = None) -> Left:
    """Delete this cell's rows of the servers of these operations, which continue in another cell. Servers that have
    left before are in neither set of the result. May be repeated. ``read``: all rows of them, as this transaction has
    read them."""
    uuids = _locked(tx, [entry.server_uuid for entry in entries])
    journal: dict[str, list[Row]] = {}
    for row in tx.execute(sa.select(operations.c.server_uuid, operations.c.request_id, operations.c.action,
                                    operations.c.finished_at).where(_is_open(uuids))):
        journal.setdefault(row.server_uuid, []).append(dict(row._mapping))
    same = _open_requests(journal, entries)
    forget(tx, sorted(same), PARTS if read is None else _with_rows(read))
    return Left(frozenset(same), frozenset(uuids) - same)


# -- idle servers

def read_idle(tx: Connection, uuids: Sequence[str], template: str) -> list[WholeServer]:
    """Lock and return those of these servers that are live and have no open operation. Each copy has the guest's name,
    which is ``template`` (``[DEFAULT]instance_name_template``) filled with the key that it has here."""
    found = list(map(functools.partial(_named, template), tx.execute(_ordered(servers).where(
        servers.c.uuid.in_(uuids), servers.c.deleted == 0).with_for_update())))
    parts = _parts(tx, [str(row["uuid"]) for row in found])
    return [_whole(row, parts) for row in found
            if all(entry["finished_at"] is not None for entry in parts[operations.name].get(str(row["uuid"]), ()))]


def _named(template: str, row: sa.Row[*Columns]) -> Row:
    return {**_keyless(row), "instance_name": instance_name(template, cast(NamedRow, row))}


#: Tables whose keys hosts remember: guests are named after their server's, and marks on disk name operations.
REMEMBERED = (servers, operations)

#: Table name -> the greatest key in a cell.
LastKeys = Mapping[str, int]


def write_idle(tx: Connection, whole: Sequence[WholeServer], above: LastKeys) -> None:
    """Insert copies of idle servers, in place of copies that an interrupted move left. This cell's new rows of
    ``REMEMBERED`` get keys greater than ``above``, which are the old cell's: for its hosts, a key means one server or
    operation."""
    remove_idle(tx, [one.uuid for one in whole])
    _insert_above(tx, servers, [one.server for one in whole], above)
    for table in PARTS:
        _insert_above(tx, table, [row for one in whole for row in one.parts[table.name]], above)


def _insert_above(tx: Connection, table: sa.Table, rows: Sequence[Row], above: LastKeys) -> None:
    if not rows or table not in REMEMBERED or _last_key(tx, table) > above[table.name]:
        return _insert(tx, table, rows)
    key = above[table.name] + 1
    if tx.dialect.name == "postgresql":  # the other databases count on from a row's key by themselves
        tx.execute(sa.select(sa.func.setval(sa.func.pg_get_serial_sequence(table.name, "id"), key)))
    _insert(tx, table, [{**rows[0], "id": key}])
    _insert(tx, table, rows[1:])


def last_keys(tx: Connection) -> LastKeys:
    """Return this cell's greatest keys of ``REMEMBERED``; 0 without rows."""
    return {table.name: _last_key(tx, table) for table in REMEMBERED}


def _last_key(tx: Connection, table: sa.Table) -> int:
    return int(tx.execute(sa.select(sa.func.max(table.c.id))).scalar() or 0)


def remove_idle(tx: Connection, uuids: Sequence[str]) -> None:
    """Delete all rows of these servers, except of those with an open operation. May be repeated."""
    there = set(_locked(tx, uuids))
    busy = set(tx.execute(sa.select(operations.c.server_uuid).where(_is_open(uuids))).scalars())
    forget(tx, sorted(there - busy))


def _with_rows(whole: Sequence[WholeServer]) -> list[sa.Table]:
    return [table for table in PARTS if any(one.parts[table.name] for one in whole)]


def forget(tx: Connection, uuids: Sequence[str], parts: Sequence[sa.Table] = PARTS) -> None:
    """Delete all rows of these servers, with their operations: another cell has the servers. May be repeated.
    ``parts``: the tables of ``PARTS`` with such rows."""
    if not uuids:
        return
    for table in (*LEFT, *parts):
        tx.execute(sa.delete(table).where(table.c.server_uuid.in_(uuids)))
    tx.execute(sa.delete(servers).where(servers.c.uuid.in_(uuids)))
