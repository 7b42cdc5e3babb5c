"""The journal as the API shows it: instance actions and their events."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from nova import errors
from nova.db.models.cell import operations, servers
from nova.db.server_lists import NoSuchMarker
from nova.db.states import NoSuchServer
from nova.db.types import utc_now
from nova.model.actions import ActionQuery, InstanceAction
from nova.model.states import API_NAMES


class NoSuchAction(errors.NotFound):
    code, message = "action.not_found", "Action for request_id {request_id} on instance {server} not found"


def _value(row: Row[Any]) -> InstanceAction:
    return InstanceAction(
        id=row.id, action=API_NAMES.get(row.action, row.action), server_uuid=row.server_uuid,
        request_id=row.request_id, user_id=row.user_id, project_id=row.project_id, started_at=row.started_at,
        updated_at=row.updated_at, finished_at=row.finished_at, fault=row.fault,
        message="Error" if row.outcome == "error" else None, events=row.history or ())


def _check_server(tx: Connection, query: ActionQuery) -> None:
    chosen = sa.select(servers.c.deleted).where(servers.c.uuid == query.server_uuid)
    if query.project_id is not None:
        chosen = chosen.where(servers.c.project_id == query.project_id)
    deleted = tx.execute(chosen).scalar_one_or_none()
    if deleted is None or (deleted and not query.with_deleted):
        raise NoSuchServer(server=query.server_uuid)


def select(tx: Connection, query: ActionQuery, limit: int) -> tuple[InstanceAction, ...]:
    """A page of a server's actions, newest first."""
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
            raise NoSuchMarker(marker=query.marker)
        chosen = chosen.where(operations.c.id < key)
    return tuple(_value(row) for row in tx.execute(chosen.order_by(operations.c.id.desc()).limit(limit)))


def get(tx: Connection, query: ActionQuery) -> InstanceAction:
    _check_server(tx, query)
    row = tx.execute(sa.select(operations).where(operations.c.server_uuid == query.server_uuid,
                                                 operations.c.request_id == query.request_id)
                     .order_by(operations.c.id.desc()).limit(1)).one_or_none()
    if row is None:
        raise NoSuchAction(request_id=query.request_id, server=query.server_uuid)
    return _value(row)


def of_request(tx: Connection, request_id: str) -> tuple[InstanceAction, ...]:
    """Every operation one request began, oldest first."""
    rows = tx.execute(sa.select(operations).where(operations.c.request_id == request_id).order_by(operations.c.id))
    return tuple(_value(row) for row in rows)


def record(tx: Connection, server_uuid: str, action: str, who: tuple[str, str | None, str | None]) -> None:
    """An action that is over as soon as it is asked for (lock, unlock). ``who``: request id, user, project."""
    request_id, user_id, project_id = who
    tx.execute(sa.insert(operations).values(
        server_uuid=server_uuid, action=action, epoch=0, runner_id=0, arguments={}, data={}, history=(),
        request_id=request_id, user_id=user_id, project_id=project_id, started_at=utc_now(), updated_at=utc_now(),
        finished_at=utc_now(), outcome="success"))
