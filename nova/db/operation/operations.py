"""The state of operations, for callers that wait for them: one read by key."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa

from nova.db.models.cell import operations
from nova.db.sql.engine import Connection


class OperationState(NamedTuple):
    """The state of an operation. ``outcome`` is None while it runs (with ``direction`` undo: while it rolls back)."""

    outcome: str | None
    direction: str
    data: Mapping[str, Any]
    fault: str | None


def progress(tx: Connection, key: int) -> OperationState | None:
    """Return an operation's state; None if it does not exist (any longer)."""
    columns = operations.c
    row = tx.execute(sa.select(columns.outcome, columns.finished_at, columns.direction, columns.data, columns.fault)
                     .where(columns.id == key)).one_or_none()
    if row is None:
        return None
    ended = (row.outcome or "success") if row.finished_at is not None else None
    return OperationState(ended, row.direction, row.data or {}, row.fault)


def under_way(tx: Connection, server_uuid: str, actions: Collection[str]) -> str | None:
    """Return the direction, do or undo, of an open operation of the server with one of these actions. None if there is
    none."""
    columns = operations.c
    return tx.execute(sa.select(columns.direction).where(
        columns.server_uuid == server_uuid, columns.finished_at.is_(None), columns.action.in_(sorted(actions))).limit(1)
    ).scalar()


def any_open(tx: Connection, server_uuid: str) -> bool:
    """Return whether the server has an open operation."""
    columns = operations.c
    return tx.execute(sa.select(columns.id).where(
        columns.server_uuid == server_uuid, columns.finished_at.is_(None)).limit(1)).first() is not None
