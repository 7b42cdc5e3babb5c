"""Migrations of servers: written by workflows while they run, read by the API during and after."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova import errors
from nova.db.models.cell import migrations
from nova.db.sql.statements import insert_ignoring
from nova.db.sql.types import utc_now
from nova.model.base import Time
from nova.model.server.migrations import (
    CANCELLED,
    COMPLETED,
    DONE,
    FINISHED,
    LIVE_MIGRATION,
    LIVE_STATUSES,
    OVER,
    PREPARING,
    QUEUED,
    RUNNING,
    Migration,
    MigrationProgress,
    MigrationQuery,
    NewMigration,
)

#: Query fields that are compared for equality, with the column of each.
_EQUAL = (("server_uuid", "server_uuid"), ("source_compute", "source_compute"), ("status", "status"),
          ("type", "type"), ("user_id", "user_id"), ("project_id", "project_id"))
_changed_at = sa.func.coalesce(migrations.c.updated_at, migrations.c.created_at)


# -- writes by workflows

def insert(tx: Connection, move: NewMigration) -> int:
    """Insert a migration and return its key. A repeated step finds the row that it inserted before."""
    insert_ignoring(tx, migrations, [{**msgspec.structs.asdict(move), "progress": None, "created_at": utc_now()}])
    return int(tx.execute(sa.select(migrations.c.id).where(migrations.c.uuid == move.uuid)).scalar_one())


def update(tx: Connection, key: int, **changes: object) -> None:
    """Update columns: ``status``, ``progress``, the ``dest_*`` once known. Raises move.MigrationNotFound."""
    changed = tx.execute(sa.update(migrations).where(migrations.c.id == key)
                         .values(**changes, updated_at=utc_now())).rowcount
    if not changed:
        raise errors.move.MigrationNotFound(migration=key, server="any")


def advance(tx: Connection, uuid: str, **changes: object) -> bool:
    """Update a migration that a workflow step works on. False if it was cancelled or does not exist."""
    mine = sa.and_(migrations.c.uuid == uuid, migrations.c.status != CANCELLED)
    return tx.execute(sa.update(migrations).where(mine).values(**changes, updated_at=utc_now())).rowcount > 0


def cancel(tx: Connection, key: int) -> bool:
    """Cancel a live migration that has not begun to send data. False if it has begun."""
    waiting = sa.and_(migrations.c.id == key, migrations.c.status.in_((QUEUED, PREPARING)))
    return tx.execute(sa.update(migrations).where(waiting).values(status=CANCELLED, updated_at=utc_now())
                      ).rowcount > 0


def end_open(tx: Connection, server_uuid: str, status: str, but: str = "", with_finished: bool = True) -> None:
    """End the server's overtaken migrations, except ``but``. ``with_finished``: including migrations that await
    confirmation."""
    kept = OVER if with_finished else (*OVER, FINISHED)
    tx.execute(sa.update(migrations).where(migrations.c.server_uuid == server_uuid, migrations.c.uuid != but,
                                           migrations.c.status.not_in(kept))
               .values(status=status, updated_at=utc_now()))


def complete(tx: Connection, uuid: str) -> None:
    """Mark an evacuation as completed: its old host has removed the server's remains."""
    tx.execute(sa.update(migrations).where(migrations.c.uuid == uuid, migrations.c.status == DONE)
               .values(status=COMPLETED, updated_at=utc_now()))


def report(tx: Connection, server_uuid: str, source: str, progress: MigrationProgress) -> bool:
    """Record the progress of a live migration, as reported by its source host. False if the host sends none for this
    server."""
    sent = sa.and_(migrations.c.server_uuid == server_uuid, migrations.c.source_compute == source,
                   migrations.c.type == LIVE_MIGRATION, migrations.c.status == RUNNING)
    return tx.execute(sa.update(migrations).where(sent).values(progress=progress, updated_at=utc_now())).rowcount > 0


def by_uuid(tx: Connection, uuid: str) -> Migration | None:
    """Return a migration by UUID, or None."""
    row = tx.execute(sa.select(migrations).where(migrations.c.uuid == uuid)).one_or_none()
    return _value(row) if row else None


def types_of(tx: Connection, uuids: Sequence[str]) -> dict[str, str]:
    """Return migration UUID -> type."""
    if not uuids:
        return {}
    return {row.uuid: row.type for row in tx.execute(sa.select(migrations.c.uuid, migrations.c.type)
                                                     .where(migrations.c.uuid.in_(uuids)))}


def latest(tx: Connection, server_uuid: str, types: Sequence[str], statuses: Sequence[str]) -> Migration | None:
    """Return a server's newest migration with one of these types and statuses: the subject of a confirm, revert or
    abort."""
    row = tx.execute(sa.select(migrations).where(
        migrations.c.server_uuid == server_uuid, migrations.c.type.in_(types), migrations.c.status.in_(statuses))
        .order_by(migrations.c.id.desc()).limit(1)).one_or_none()
    return _value(row) if row else None


def newest_from(tx: Connection, server_uuid: str, host: str) -> str | None:
    """Return the status of a server's newest migration from this host; None if there is none."""
    return tx.execute(sa.select(migrations.c.status).where(
        migrations.c.server_uuid == server_uuid, migrations.c.source_compute == host)
        .order_by(migrations.c.id.desc()).limit(1)).scalar_one_or_none()


# -- reads by the API

def moved_by(tx: Connection, host: str, uuids: Sequence[str]) -> set[str]:
    """Return those of the servers that were ever migrated from or to this host."""
    return set(tx.execute(sa.select(migrations.c.server_uuid).distinct().where(
        migrations.c.server_uuid.in_(uuids),
        sa.or_(migrations.c.source_compute == host, migrations.c.dest_compute == host))).scalars())


class MigrationMarker(NamedTuple):
    """The beginning of a page: after this migration. ``id`` None: it is in another cell, and ``ties`` tells whether
    this cell's migrations of the same time come after it."""

    created_at: Time
    id: int | None
    ties: bool = False


def select(tx: Connection, query: MigrationQuery, limit: int, marker: MigrationMarker | None = None
           ) -> tuple[Migration, ...]:
    """Return a page of migrations, newest first. ``marker``: the query's own, from another cell. Raises
    api.PageMarkerNotFound."""
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
        marker = marker or find_marker(tx, query.page.marker)
        if marker is None:
            raise errors.api.PageMarkerNotFound(marker=query.page.marker)
        chosen = chosen.where(_after(marker))
    rows = tx.execute(chosen.order_by(migrations.c.created_at.desc(), migrations.c.id.desc()).limit(limit))
    return tuple(_value(row) for row in rows)


def find_marker(tx: Connection, uuid: str) -> MigrationMarker | None:
    """Return a page's marker; None if this cell does not have the migration."""
    row = tx.execute(sa.select(migrations.c.created_at, migrations.c.id).where(migrations.c.uuid == uuid)).one_or_none()
    return None if row is None else MigrationMarker(row.created_at, row.id)


def _after(marker: MigrationMarker) -> sa.ColumnElement[bool]:
    same = migrations.c.created_at == marker.created_at
    tied = sa.and_(same, migrations.c.id < marker.id) if marker.id is not None else same if marker.ties else sa.false()
    return sa.or_(migrations.c.created_at < marker.created_at, tied)


def live_of(tx: Connection, server_uuid: str) -> tuple[Migration, ...]:
    """Return a server's live migrations in progress, the oldest first."""
    rows = tx.execute(sa.select(migrations).where(
        migrations.c.server_uuid == server_uuid, migrations.c.type == LIVE_MIGRATION,
        migrations.c.status.in_(LIVE_STATUSES)).order_by(migrations.c.id))
    return tuple(_value(row) for row in rows)


def destinations(tx: Connection, server_uuids: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return server UUID -> destination hosts of its live migrations in progress, in one statement."""
    rows = tx.execute(sa.select(migrations.c.server_uuid, migrations.c.dest_compute).where(
        migrations.c.server_uuid.in_(server_uuids), migrations.c.type == LIVE_MIGRATION,
        migrations.c.status.in_(LIVE_STATUSES), migrations.c.dest_compute.is_not(None)).order_by(migrations.c.id))
    found: dict[str, tuple[str, ...]] = {}
    for row in rows:
        found[row.server_uuid] = (*found.get(row.server_uuid, ()), row.dest_compute)
    return found


def get(tx: Connection, server_uuid: str, key: int) -> Migration:
    """Return a server's migration by its id. Raises move.MigrationNotFound."""
    row = tx.execute(sa.select(migrations).where(migrations.c.id == key, migrations.c.server_uuid == server_uuid)
                     ).one_or_none()
    if row is None:
        raise errors.move.MigrationNotFound(migration=key, server=server_uuid)
    return _value(row)


def _value(row: sa.Row[*tuple[object, ...]]) -> Migration:
    return Migration(**{name: row._mapping[name] for name in Migration.__struct_fields__})
