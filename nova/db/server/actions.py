"""The journal as the API shows it: instance actions and their events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova import errors
from nova.db.models.cell import operations, servers
from nova.db.sql.types import new_key, utc_now
from nova.model.server.actions import ActionEvent, ActionQuery, InstanceAction
from nova.model.server.states import API_NAMES


def _value(row: sa.Row[*tuple[object, ...]]) -> InstanceAction:
    return InstanceAction(
        id=row.id, action=API_NAMES.get(row.action, row.action), server_uuid=row.server_uuid,
        request_id=row.request_id, user_id=row.user_id, project_id=row.project_id, started_at=row.started_at,
        updated_at=row.updated_at, finished_at=row.finished_at, fault=row.fault,
        message="Error" if row.outcome == "error" else None, events=row.history or ())


def _check_server(tx: Connection, query: ActionQuery) -> None:
    chosen = sa.select(servers.c.deleted).where(servers.c.uuid == query.server_uuid, servers.c.archived_at.is_(None))
    if query.project_id is not None:
        chosen = chosen.where(servers.c.project_id == query.project_id)
    deleted = tx.execute(chosen).scalar_one_or_none()
    if deleted is None or (deleted and not query.with_deleted):
        raise errors.server.NotFound(server=query.server_uuid)


def select(tx: Connection, query: ActionQuery, limit: int) -> tuple[InstanceAction, ...]:
    """Return a page of a server's actions, newest first. Raises server.NotFound, api.PageMarkerNotFound."""
    _check_server(tx, query)
    chosen = sa.select(operations).where(operations.c.server_uuid == query.server_uuid)
    if query.changes_since is not None:
        chosen = chosen.where(operations.c.updated_at >= query.changes_since)
    if query.changes_before is not None:
        chosen = chosen.where(operations.c.updated_at <= query.changes_before)
    if query.marker:
        key = tx.execute(sa.select(sa.func.min(operations.c.id)).where(
            operations.c.server_uuid == query.server_uuid, operations.c.request_id == query.marker)).scalar()
        if key is None:
            raise errors.api.PageMarkerNotFound(marker=query.marker)
        chosen = chosen.where(operations.c.id < key)
    return tuple(_value(row) for row in tx.execute(chosen.order_by(operations.c.id.desc()).limit(limit)))


def get(tx: Connection, query: ActionQuery) -> InstanceAction:
    """Return the newest action of that request on the server, with its events. Raises server.NotFound,
    server.ActionNotFound."""
    _check_server(tx, query)
    row = tx.execute(sa.select(operations).where(operations.c.server_uuid == query.server_uuid,
                                                 operations.c.request_id == query.request_id)
                     .order_by(operations.c.id.desc()).limit(1)).one_or_none()
    if row is None:
        raise errors.server.ActionNotFound(request_id=query.request_id, server=query.server_uuid)
    return _value(row)


class JournalRow(NamedTuple):
    """The parts of a journal row that explain a placement."""

    server_uuid: str
    request_id: str
    arguments: Mapping[str, Any]
    data: Mapping[str, Any]


def of_request(tx: Connection, name: str) -> list[tuple[InstanceAction, JournalRow]]:
    """Return the operations that a request began, or that were begun on a server (by its UUID), oldest first, with
    their journal rows."""
    asked = sa.or_(operations.c.request_id == name, operations.c.server_uuid == name)
    rows = tx.execute(sa.select(operations).where(asked).order_by(operations.c.id))
    return [(_value(row), JournalRow(row.server_uuid, row.request_id, row.arguments, row.data)) for row in rows]


def any_since(tx: Connection, server_uuid: str, action: str, key: int) -> bool:
    """Return whether this action succeeded on the server after the operation with this key began."""
    return tx.execute(sa.select(operations.c.id).where(
        operations.c.server_uuid == server_uuid, operations.c.id > key, operations.c.action == action,
        operations.c.outcome == "success").limit(1)).first() is not None


def amend(tx: Connection, key: int, history: Sequence[ActionEvent], fault: str | None) -> None:
    """Record the result of an action whose row was inserted at the time of the request."""
    tx.execute(sa.update(operations).where(operations.c.id == key).values(
        history=tuple(history), fault=fault, outcome="error" if fault else "success", updated_at=utc_now(),
        finished_at=utc_now()))


def record(tx: Connection, server_uuid: str, action: str, who: tuple[str, str | None, str | None]) -> int:
    """Insert a completed action without a workflow (lock, unlock); return its key. ``who``: request id, user,
    project."""
    request_id, user_id, project_id = who
    made = tx.execute(sa.insert(operations).values(
        server_uuid=server_uuid, action=action, epoch=0, runner_id=0, arguments={}, data={}, history=(),
        request_id=request_id, user_id=user_id, project_id=project_id, started_at=utc_now(), updated_at=utc_now(),
        finished_at=utc_now(), outcome="success"))
    return new_key(made)
