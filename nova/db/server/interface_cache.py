"""Servers' interfaces as their rows keep them, refreshed beside whatever runs: only where nothing runs.

An attach has no task state, and its port is in Neutron before the row has it. A row that is refreshed meanwhile has
the port as one of its own, and an attach that is done again after its conductor died would make a second.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.cell import operations, servers
from nova.db.server.server_row import AnyServer
from nova.db.sql.types import AnyRow
from nova.model.network.networks import Interface

_BUSY = sa.or_(servers.c.task_state.is_not(None), sa.exists().where(
    operations.c.server_uuid == servers.c.uuid, operations.c.finished_at.is_(None)))
_COLUMNS = (servers.c.id, servers.c.uuid, servers.c.project_id, servers.c.host, servers.c.epoch, servers.c.interfaces,
            servers.c.requested_networks, servers.c.vm_state, servers.c.task_state, _BUSY.label("busy"))


def page(tx: Connection, after: int, limit: int) -> Sequence[AnyRow]:
    """Live servers at rest, by their keys."""
    return tx.execute(sa.select(*_COLUMNS).where(
        servers.c.id > after, servers.c.deleted == 0, servers.c.host.is_not(None), sa.not_(_BUSY))
        .order_by(servers.c.id).limit(limit)).all()


def read(tx: Connection, uuids: Sequence[str]) -> dict[str, AnyRow]:
    """Live servers, whatever they do; ``busy``: something runs on them."""
    rows = tx.execute(sa.select(*_COLUMNS).where(servers.c.uuid.in_(list(uuids)), servers.c.deleted == 0))
    return {row.uuid: row for row in rows}


def write(tx: Connection, row: AnyServer, interfaces: tuple[Interface, ...]) -> bool:
    """Unless something was begun since the row was read; whether it was written."""
    return bool(tx.execute(sa.update(servers).where(
        servers.c.uuid == row.uuid, servers.c.epoch == row.epoch, servers.c.task_state.is_(None),
        servers.c.deleted == 0).values(interfaces=interfaces)).rowcount)


__all__ = ["page", "read", "write"]
