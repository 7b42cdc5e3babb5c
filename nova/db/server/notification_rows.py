"""The server data of notifications: some columns of their rows, with metadata and tags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.cell import servers
from nova.db.server.servers import children
from nova.db.sql.types import AnyRow
from nova.model.volumes import BlockDevice


class Announced(NamedTuple):
    """A server's row with its metadata and tags."""

    row: AnyRow
    metadata: Mapping[str, str]
    tags: tuple[str, ...]


def read(tx: Connection, uuids: Sequence[str], columns: Sequence[str]) -> dict[str, Announced]:
    """Return servers by UUID, including deleted ones, in two statements for any number of servers."""
    rows = tx.execute(sa.select(*[servers.c[name] for name in columns]).where(servers.c.uuid.in_(uuids))).all()
    metadata, tags = children(tx, [row.uuid for row in rows])
    return {row.uuid: Announced(row, metadata.get(row.uuid, {}), tuple(sorted(tags.get(row.uuid, ()))))
            for row in rows}


class ServerWithVolumes(NamedTuple):
    """A server with its owner, zone and volumes."""

    uuid: str
    user_id: str
    project_id: str
    availability_zone: str | None
    volumes: tuple[BlockDevice, ...] | None


def with_volumes(tx: Connection, host: str, uuids: Sequence[str]) -> dict[str, ServerWithVolumes]:
    """Return the owner, zone and volumes of those servers that are on the host, by UUID."""
    rows = tx.execute(sa.select(*[servers.c[name] for name in ServerWithVolumes._fields]).where(
        servers.c.uuid.in_(uuids), servers.c.host == host, servers.c.deleted == 0))
    return {row.uuid: row for row in map(ServerWithVolumes._make, rows)}


def idle_states(tx: Connection, host: str, uuids: Sequence[str]) -> dict[str, str]:
    """Return UUID -> vm_state of the host's servers that no operation is changing."""
    return {row.uuid: row.vm_state for row in tx.execute(
        sa.select(servers.c.uuid, servers.c.vm_state)
        .where(servers.c.uuid.in_(uuids), servers.c.host == host, servers.c.deleted == 0,
               servers.c.task_state.is_(None)))}
