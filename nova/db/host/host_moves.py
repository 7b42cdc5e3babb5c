"""A host's own rows in one cell's database, read and written as they are, to move between cells; and the reasons why a
host cannot move."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.host import host_cleanups
from nova.db.host.services import COMPUTE, MIGRATION_ENDS, host_up
from nova.db.models.cell import enrolments, migrations, nodes, operations, servers, services, vifs

#: Tables with rows of a host -> the columns by which a row that is already there is found.
TABLES: Mapping[sa.Table, tuple[str, ...]] = {
    services: ("host", "binary", "deleted"), nodes: ("uuid",), enrolments: ("host",)}

Row = dict[str, object]


class HostRows(NamedTuple):
    """A host's rows by table name, without keys: each cell has its own."""

    rows: Mapping[str, tuple[Row, ...]]


def read(tx: Connection, host: str) -> HostRows:
    """Lock and return the rows of a host: of all its daemons, its nodes and its enrolment."""
    return HostRows({table.name: tuple(
        {name: value for name, value in row._mapping.items() if name != "id"}
        for row in tx.execute(sa.select(table).where(_of(table, host)).order_by(table.c.id).with_for_update()))
        for table in TABLES})


def _of(table: sa.Table, host: str) -> sa.ColumnElement[bool]:
    return sa.and_(table.c.host == host, *[table.c.deleted == 0] if "deleted" in table.c else [])


def write(tx: Connection, moved: HostRows, enrolled: bool) -> None:
    """Insert the rows of a host, except of rows that are there already. ``enrolled``: also its enrolment, whose secrets
    this cell's conductors can decrypt. May be repeated."""
    for table, same in TABLES.items():
        if table is enrolments and not enrolled:
            continue
        for row in moved.rows[table.name]:
            known = sa.select(table.c.id).where(*[table.c[name] == row[name] for name in same])
            if tx.execute(known).first() is None:
                tx.execute(sa.insert(table).values(row))


def remove(tx: Connection, host: str) -> None:
    """Delete the rows of a host that is in another cell now: it may come back with the same UUIDs. May be repeated."""
    for table in TABLES:
        tx.execute(sa.delete(table).where(_of(table, host)))


# -- reasons to stay

def servers_on(tx: Connection, host: str) -> list[str]:
    """Return the live servers on a host, the oldest first."""
    return list(tx.execute(sa.select(servers.c.uuid).where(servers.c.host == host, servers.c.deleted == 0)
                           .order_by(servers.c.id)).scalars())


def busy_on(tx: Connection, host: str) -> dict[str, str]:
    """Return the servers on a host that have an open operation: UUID -> action."""
    rows = tx.execute(sa.select(operations.c.server_uuid, operations.c.action).join_from(
        operations, servers, servers.c.uuid == operations.c.server_uuid).where(
            servers.c.host == host, servers.c.deleted == 0, operations.c.finished_at.is_(None)))
    return {row.server_uuid: row.action for row in rows}


def obstacles(tx: Connection, host: str, down_after_s: int) -> list[str]:
    """Return why a host cannot leave its cell, with what to do about it; empty if it can."""
    reasons = []
    if host_up(tx, host, down_after_s):
        reasons.append(f"nova-compute runs. Stop it, and wait {down_after_s} seconds: the guests go on running")
    others = set(tx.execute(sa.select(services.c.binary).where(
        services.c.host == host, services.c.binary != COMPUTE, services.c.deleted == 0)).scalars())
    if others:
        reasons.append(f"it has the services {', '.join(sorted(others))}. Delete them: only compute hosts move")
    under_way = set(tx.execute(sa.select(migrations.c.server_uuid).where(
        sa.or_(migrations.c.source_compute == host, migrations.c.dest_compute == host),
        migrations.c.status.not_in(MIGRATION_ENDS))).scalars())
    if under_way:
        reasons.append(f"servers move from or to it, or wait to be confirmed: {_named(under_way)}. Confirm or revert "
                       "them, or wait")
    if cleanups := {one.server_uuid for one in host_cleanups.pending(tx, host, with_held=True)}:
        reasons.append(f"it has pending cleanups of servers: {_named(cleanups)}. Start nova-compute, which does them")
    plugged = set(tx.execute(sa.select(vifs.c.server_uuid).join_from(
        vifs, servers, servers.c.uuid == vifs.c.server_uuid).where(
            servers.c.host == host, servers.c.deleted == 0)).scalars())
    if plugged:
        reasons.append(f"servers are on networks of nova-network: {_named(plugged)}. Such networks are in one cell")
    return reasons


def _named(uuids: set[str], most: int = 3) -> str:
    more = f" and {len(uuids) - most} more" if len(uuids) > most else ""
    return ", ".join(sorted(uuids)[:most]) + more
