"""Moves of servers: written by workflows as they go, read by the API while they run and when they are over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from nova import errors
from nova.db.models.cell import migrations
from nova.db.server_lists import NoSuchMarker
from nova.db.statements import insert_ignoring
from nova.db.types import utc_now
from nova.model.migrations import LIVE_MIGRATION, LIVE_STATUSES, Migration, MigrationQuery, NewMigration

#: Fields of a query that ask for equality, and the column of each.
_EQUAL = (("server_uuid", "server_uuid"), ("source_compute", "source_compute"), ("status", "status"),
          ("type", "type"), ("user_id", "user_id"), ("project_id", "project_id"))
_changed_at = sa.func.coalesce(migrations.c.updated_at, migrations.c.created_at)


class NoSuchMigration(errors.NotFound):
    code, message = "migration.not_found", "Migration {migration} not found for server {server}."


# -- what workflows write

def insert(tx: Connection, move: NewMigration) -> int:
    """The move's key. A repeated step finds the row that it made."""
    insert_ignoring(tx, migrations, [{**msgspec.structs.asdict(move), "progress": None, "created_at": utc_now()}])
    return int(tx.execute(sa.select(migrations.c.id).where(migrations.c.uuid == move.uuid)).scalar_one())


def update(tx: Connection, key: int, **changes: Any) -> None:
    """New values of columns: ``status``, ``progress``, the ``dest_*`` once they are known. NoSuchMigration."""
    changed = tx.execute(sa.update(migrations).where(migrations.c.id == key)
                         .values(**changes, updated_at=utc_now())).rowcount
    if not changed:
        raise NoSuchMigration(migration=key, server="any")


def latest(tx: Connection, server_uuid: str, types: Sequence[str], statuses: Sequence[str]) -> Migration | None:
    """The newest move of a server of such a type and status: what a confirm, a revert or an abort is about."""
    row = tx.execute(sa.select(migrations).where(
        migrations.c.server_uuid == server_uuid, migrations.c.type.in_(types), migrations.c.status.in_(statuses))
        .order_by(migrations.c.id.desc()).limit(1)).one_or_none()
    return _value(row) if row else None


# -- what the API reads

def select(tx: Connection, query: MigrationQuery, limit: int) -> tuple[Migration, ...]:
    """A page of moves, newest first. NoSuchMarker."""
    chosen = sa.select(migrations)
    for field, column in _EQUAL:
        value = getattr(query, field)
        if value is not None:
            chosen = chosen.where(migrations.c[column] == value)
    if query.host is not None:
        chosen = chosen.where(sa.or_(migrations.c.source_compute == query.host,
                                     migrations.c.dest_compute == query.host))
    if query.changes_since is not None:
        chosen = chosen.where(_changed_at >= query.changes_since)
    if query.changes_before is not None:
        chosen = chosen.where(_changed_at <= query.changes_before)
    if query.page.marker is not None:
        chosen = chosen.where(_after(tx, query.page.marker))
    rows = tx.execute(chosen.order_by(migrations.c.created_at.desc(), migrations.c.id.desc()).limit(limit))
    return tuple(_value(row) for row in rows)


def _after(tx: Connection, marker: str) -> Any:
    row = tx.execute(sa.select(migrations.c.created_at, migrations.c.id)
                     .where(migrations.c.uuid == marker)).one_or_none()
    if row is None:
        raise NoSuchMarker(marker=marker)
    return sa.or_(migrations.c.created_at < row.created_at,
                  sa.and_(migrations.c.created_at == row.created_at, migrations.c.id < row.id))


def live_of(tx: Connection, server_uuid: str) -> tuple[Migration, ...]:
    """A server's live migrations that are under way, the oldest first."""
    rows = tx.execute(sa.select(migrations).where(
        migrations.c.server_uuid == server_uuid, migrations.c.type == LIVE_MIGRATION,
        migrations.c.status.in_(LIVE_STATUSES)).order_by(migrations.c.id))
    return tuple(_value(row) for row in rows)


def get(tx: Connection, server_uuid: str, key: int) -> Migration:
    row = tx.execute(sa.select(migrations).where(migrations.c.id == key, migrations.c.server_uuid == server_uuid)
                     ).one_or_none()
    if row is None:
        raise NoSuchMigration(migration=key, server=server_uuid)
    return _value(row)


def _value(row: Row[Any]) -> Migration:
    return Migration(**{name: row._mapping[name] for name in Migration.__struct_fields__})
