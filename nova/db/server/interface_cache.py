"""The cache of servers' interfaces in their rows, refreshed only while no operation runs on the server.

An attach has no task state, and its port exists in Neutron before the row has it. A refresh meanwhile would record that
port as an existing one, and an attach repeated after its conductor died would create a second port.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.cell import operations, servers
from nova.db.server.server_row import ServerRow
from nova.model.network.networks import Interface, RequestedNetwork

_BUSY = sa.or_(servers.c.task_state.is_not(None), sa.exists().where(
    operations.c.server_uuid == servers.c.uuid, operations.c.finished_at.is_(None)))


class CachedServer(NamedTuple):
    """A live server with its recorded interfaces; ``busy``: an operation runs on it."""

    id: int
    uuid: str
    project_id: str
    host: str | None
    epoch: int
    interfaces: tuple[Interface, ...] | None
    requested_networks: tuple[RequestedNetwork, ...] | None
    vm_state: str
    task_state: str | None
    busy: bool


_COLUMNS = (*[servers.c[name] for name in CachedServer._fields[:-1]], _BUSY.label("busy"))


def page(tx: Connection, after: int, limit: int) -> list[CachedServer]:
    """Return a page of live servers on a host without an open operation, by key."""
    rows = tx.execute(sa.select(*_COLUMNS).where(
        servers.c.id > after, servers.c.deleted == 0, servers.c.host.is_not(None), sa.not_(_BUSY))
        .order_by(servers.c.id).limit(limit))
    return list(map(CachedServer._make, rows))


def read(tx: Connection, uuids: Sequence[str]) -> dict[str, CachedServer]:
    """Return live servers by UUID."""
    rows = tx.execute(sa.select(*_COLUMNS).where(servers.c.uuid.in_(list(uuids)), servers.c.deleted == 0))
    return {row.uuid: row for row in map(CachedServer._make, rows)}


def write(tx: Connection, row: ServerRow | CachedServer, interfaces: tuple[Interface, ...]) -> bool:
    """Update the interfaces, unless an operation began since the row was read; return whether the row was updated."""
    return bool(tx.execute(sa.update(servers).where(
        servers.c.uuid == row.uuid, servers.c.epoch == row.epoch, servers.c.task_state.is_(None),
        servers.c.deleted == 0).values(interfaces=interfaces)).rowcount)


__all__ = ["page", "read", "write"]
