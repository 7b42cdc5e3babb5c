"""Reports in a cell's database that super conductors carry into the api database: versions of services and nodes,
heartbeats, and cleanups that are done."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.host.host_cleanups import DONE, PENDING
from nova.db.host.services import COMPUTE, as_time
from nova.db.models.api import providers
from nova.db.models.cell import cleanups, guest_facts, nodes, services
from nova.db.sql.types import utc_now
from nova.model.base import Time

_WANTED = sa.select(sa.func.count()).select_from(guest_facts).where(guest_facts.c.wanted).scalar_subquery()
_COMPUTES = sa.and_(services.c.binary == COMPUTE, services.c.deleted == 0)


class CellStamp(NamedTuple):
    """The version of all compute services of a cell: a registration, a report, a change by an administrator and a
    deletion change it."""

    hosts: int
    newest: int
    changes: int


class Overview(NamedTuple):
    """A cell's state for the carrying. ``now``: the database's time; ``wanted``: the number of guests whose facts are
    wanted."""

    stamp: CellStamp
    now: Time
    wanted: int


def overview(tx: Connection) -> Overview:
    """Return the cell's state, in one statement."""
    row = tx.execute(sa.select(sa.func.count(), sa.func.coalesce(sa.func.max(services.c.id), 0),
                               sa.func.coalesce(sa.func.sum(services.c.version), 0), utc_now().label("clock"),
                               _WANTED.label("wanted")).where(_COMPUTES)).one()
    return Overview(CellStamp(*map(int, row[:3])), as_time(row.clock), row.wanted)


class ServiceVersion(NamedTuple):
    """The version of a compute service; a service that was deleted and registered again has another id."""

    id: int
    version: int


def service_versions(tx: Connection) -> dict[str, ServiceVersion]:
    """Return host -> version of its compute service."""
    rows = tx.execute(sa.select(services.c.host, services.c.id, services.c.version).where(_COMPUTES))
    return {row.host: ServiceVersion(row.id, row.version) for row in rows}


class NodeVersion(NamedTuple):
    """The version of a node: that of its host's last report."""

    uuid: str
    host: str
    name: str
    version: int


def node_versions(tx: Connection, hosts: Collection[str] | None) -> list[NodeVersion]:
    """Return the versions of these hosts' nodes; None: of all."""
    query = sa.select(*[nodes.c[name] for name in NodeVersion._fields]).order_by(nodes.c.id)
    return list(map(NodeVersion._make, tx.execute(
        query if hosts is None else query.where(nodes.c.host.in_(sorted(hosts))))))


def provider_versions(tx: Connection, uuids: Collection[str] | None) -> dict[str, int]:
    """Return node -> the version of the report that its provider has, for those of these nodes (None: of all) that have
    a provider. Reads the api database."""
    query = sa.select(providers.c.uuid, providers.c.inventory_version).where(providers.c.root_id.is_(None))
    rows = tx.execute(query if uuids is None else query.where(providers.c.uuid.in_(sorted(uuids))))
    return {row.uuid: row.inventory_version for row in rows}


class Seen(NamedTuple):
    """The last heartbeat of a host's nova-compute."""

    host: str
    at: Time


class Window(NamedTuple):
    """A span of heartbeat times: after ``since`` up to ``until`` (None: without end)."""

    since: Time
    until: Time | None = None


def seen(tx: Connection, windows: Collection[Window]) -> list[Seen]:
    """Return the compute hosts whose last heartbeat is in one of these windows."""
    at = services.c.last_seen_at
    within = [sa.and_(at > one.since, sa.true() if one.until is None else at <= one.until) for one in windows]
    rows = tx.execute(sa.select(services.c.host, at).where(_COMPUTES, sa.or_(*within)).order_by(services.c.host))
    return [Seen(row.host, as_time(row.last_seen_at)) for row in rows]


# -- cleanups that are done

class DoneCleanup(NamedTuple):
    """A cleanup that its host has done, and whose claim is not released yet."""

    id: int
    host: str


def mark_done(tx: Connection, host: str, key: int) -> bool:
    """Mark a host's cleanup as done; False if it is already, or does not exist. The host is not asked for it again."""
    return tx.execute(sa.update(cleanups).where(cleanups.c.id == key, cleanups.c.host == host, PENDING).values(
        done_at=utc_now())).rowcount > 0


def done_cleanups(tx: Connection, limit: int) -> list[DoneCleanup]:
    """Return the first cleanups that are done."""
    rows = tx.execute(sa.select(cleanups.c.id, cleanups.c.host).where(DONE).order_by(cleanups.c.id)
                      .limit(limit))
    return list(map(DoneCleanup._make, rows))


def cleaned_servers(tx: Connection, host: str) -> set[str]:
    """Return the servers with a cleanup of this host, pending or done: their claims there wait for nothing else."""
    return set(tx.execute(sa.select(cleanups.c.server_uuid).where(cleanups.c.host == host).distinct()).scalars())
