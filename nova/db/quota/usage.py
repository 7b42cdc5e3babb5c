"""Server usage in a period: sums by project in one statement, or single servers, page by page."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import FunctionElement

from nova.db.models.cell import servers
from nova.model.base import Time
from nova.model.flavor.flavors import Flavor
from nova.model.quota.usage import SECONDS_AN_HOUR, ProjectUsage, UsageQuery

#: The end of a server's usage; written together with ``deleted``.
_ended = servers.c.terminated_at


class seconds_between(FunctionElement[float]):
    """Seconds from the first time to the second, with fractions."""

    type = sa.Float()
    inherit_cache = True


@compiles(seconds_between)
def _seconds(element: FunctionElement[float], compiler: SQLCompiler, **kw: object) -> str:
    return f"(TIMESTAMPDIFF(MICROSECOND, {compiler.process(element.clauses, **kw)}) / 1000000e0)"


@compiles(seconds_between, "postgresql")
def _seconds_postgresql(element: FunctionElement[float], compiler: SQLCompiler, **kw: object) -> str:
    first, second = (compiler.process(part, **kw) for part in element.clauses)
    return f"CAST(EXTRACT(EPOCH FROM {second} - {first}) AS DOUBLE PRECISION)"


@compiles(seconds_between, "sqlite")
def _seconds_sqlite(element: FunctionElement[float], compiler: SQLCompiler, **kw: object) -> str:
    first, second = (compiler.process(part, **kw) for part in element.clauses)
    return f"((julianday({second}) - julianday({first})) * 86400.0)"


class json_number(FunctionElement[float]):
    """A numeric member of a JSON object (``column, name``); 0 if absent, because defaults are not stored."""

    type = sa.Float()
    inherit_cache = True


@compiles(json_number)
def _number(element: FunctionElement[float], compiler: SQLCompiler, **kw: object) -> str:
    column, name = (compiler.process(part, **kw) for part in element.clauses)
    return f"COALESCE(CAST(JSON_VALUE({column}, CONCAT('$.', {name})) AS DOUBLE), 0)"


@compiles(json_number, "postgresql")
def _number_postgresql(element: FunctionElement[float], compiler: SQLCompiler, **kw: object) -> str:
    column, name = (compiler.process(part, **kw) for part in element.clauses)
    return f"COALESCE(CAST(CAST({column} AS json) ->> {name} AS DOUBLE PRECISION), 0)"


@compiles(json_number, "sqlite")
def _number_sqlite(element: FunctionElement[float], compiler: SQLCompiler, **kw: object) -> str:
    column, name = (compiler.process(part, **kw) for part in element.clauses)
    return f"COALESCE(json_extract({column}, '$.' || {name}), 0)"


def ran_within(start: Time, end: Time) -> sa.ColumnElement[bool]:
    """Return the condition for servers launched before the end and not ended before the start."""
    return sa.and_(servers.c.launched_at < end, sa.or_(_ended.is_(None), _ended > start))


def sums(tx: Connection, query: UsageQuery) -> tuple[ProjectUsage, ...]:
    """Return each project's usage over all its servers, by project id."""
    start, end = (sa.literal(at, servers.c.launched_at.type) for at in (query.start, query.end))
    begun = sa.case((servers.c.launched_at > start, servers.c.launched_at), else_=start)
    stopped = sa.case((_ended < end, _ended), else_=end)
    hours = seconds_between(begun, stopped) / SECONDS_AN_HOUR

    def flavor(name: str) -> json_number:
        return json_number(servers.c.flavor, sa.literal_column(f"'{name}'"))
    disk = flavor("root_gb") + flavor("ephemeral_gb")
    columns = [sa.func.sum(hours), *(sa.func.sum(hours * amount)
                                     for amount in (disk, flavor("memory_mb"), flavor("vcpus")))]
    chosen = sa.select(servers.c.project_id, *columns).where(ran_within(query.start, query.end))
    if query.project_id is not None:
        chosen = chosen.where(servers.c.project_id == query.project_id)
    return tuple(ProjectUsage(project_id=project, hours=float(total), local_gb_hours=float(disk_total),
                              memory_mb_hours=float(memory), vcpu_hours=float(vcpus))
                 for project, total, disk_total, memory, vcpus in tx.execute(
                     chosen.group_by(servers.c.project_id).order_by(servers.c.project_id)))


class UsedServer(NamedTuple):
    """A server with the columns that its usage is computed from."""

    uuid: str
    name: str
    project_id: str
    flavor: Flavor
    vm_state: str
    launched_at: Time
    ended_at: Time | None


def page(tx: Connection, query: UsageQuery, limit: int, project: str | None = None) -> list[UsedServer]:
    """Return a page of servers by project, then UUID, including deleted ones. ``project``: the marker's
    (:func:`project_of`)."""
    chosen = sa.select(servers.c.uuid, servers.c.name, servers.c.project_id, servers.c.flavor, servers.c.vm_state,
                       servers.c.launched_at, _ended.label("ended_at")).where(ran_within(query.start, query.end))
    if query.project_id is not None:
        chosen = chosen.where(servers.c.project_id == query.project_id)
    if project is not None:
        chosen = chosen.where(sa.or_(servers.c.project_id > project, sa.and_(servers.c.project_id == project,
                                                                             servers.c.uuid > query.page.marker)))
    return list(map(UsedServer._make, tx.execute(chosen.order_by(servers.c.project_id, servers.c.uuid).limit(limit))))


def project_of(tx: Connection, query: UsageQuery) -> str | None:
    """Return the project of the query's marker, a server; None if the cell does not have it, or not in the query's
    project."""
    known = sa.select(servers.c.project_id).where(servers.c.uuid == query.page.marker)
    if query.project_id is not None:
        known = known.where(servers.c.project_id == query.project_id)
    return tx.execute(known).scalar_one_or_none()
