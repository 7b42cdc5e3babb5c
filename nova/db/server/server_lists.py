"""Pages of servers: every filter and sort order of the API, as conditions of one statement."""

from __future__ import annotations

import datetime
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Connection
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from nova import errors
from nova.db.models.cell import server_metadata, server_tags, servers
from nova.db.server.servers import DETAILS, DetailRow, details, within
from nova.db.sql.engine import codes
from nova.db.sql.statements import TOO_SLOW, regexp, statement_timeout
from nova.db.sql.types import Columns
from nova.model.base import Time
from nova.model.server import states
from nova.model.server.servers import Condition, ServerListQuery

#: The names valid in conditions and sort keys, with their columns. Other names are ignored.
COLUMNS: dict[str, sa.Column[object]] = {
    **{name: servers.c[name] for name in (
        "id", "uuid", "project_id", "user_id", "name", "description", "hostname", "created_at", "updated_at",
        "launched_at", "terminated_at", "vm_state", "task_state", "power_state", "progress", "host", "node",
        "availability_zone", "flavorid", "image_id", "kernel_id", "ramdisk_id", "root_device_name", "config_drive",
        "disk_config", "key_name", "reservation_id", "launch_index", "access_ip_v4", "access_ip_v6", "locked_by",
        "deleted", "deleted_at", "pinned_availability_zone")},
}


#: Error codes of MariaDB, PostgreSQL and SQLite for an invalid regular expression.
BAD_REGEX = (1139, "2201B", "user-defined function raised exception")
MATCHING_S = 10  # timeout in seconds of a page filtered by regular expressions
NO_NUMBER = -(2**15)  # fits the smallest integer columns, too


class ListedServer(NamedTuple):
    """A server in a list without details, and its values of the sort columns."""

    uuid: str
    name: str
    values: tuple[object, ...] = ()


class Marker(NamedTuple):
    """The beginning of a page: after a server with these values of the sort columns. ``key``: the server's own in this
    cell. None: the server is in another cell, and ``ties`` tells whether this cell's rows with the same values come
    after it."""

    values: tuple[object, ...]
    key: int | None = None
    ties: bool = False


def select(tx: Connection, query: ServerListQuery, limit: int) -> list[DetailRow]:
    """Return the rows of one page. Raises api.PageMarkerNotFound, api.PageBadRegex."""
    return DETAILS.of(_page(tx, query, limit, details()))


def names(tx: Connection, query: ServerListQuery, limit: int, marker: Marker | None = None) -> list[ListedServer]:
    """Return the names and the sort values of one page, as :func:`select`. ``marker``: the page's own, from another
    cell."""
    columns = [column.label(f"c{n}") for n, (column, _) in enumerate(_sorted_by(query))]
    found = _page(tx, query, limit, sa.select(servers.c.uuid, servers.c.name, *columns), marker)
    return [ListedServer(uuid, name, tuple(values)) for uuid, name, *values in found]


def of(tx: Connection, uuids: Sequence[str]) -> list[DetailRow]:
    """Return the rows of these servers, deleted ones included."""
    return DETAILS.of(tx.execute(details().where(servers.c.uuid.in_(uuids))))


def descending(query: ServerListQuery) -> tuple[bool, ...]:
    """Return the direction of each sort column. NULL is the lowest value."""
    return tuple(down for _column, down in _sorted_by(query))


def marker_of(tx: Connection, query: ServerListQuery) -> Marker:
    """Return the query's marker, a server of this cell. Raises api.PageMarkerNotFound if the cell does not have it."""
    chosen = within(sa.select(*[column.label(f"c{n}") for n, (column, _) in enumerate(_order(query))])
                    .where(servers.c.uuid == query.page.marker), query.scope)
    row = tx.execute(chosen).one_or_none()
    if row is None:
        raise errors.api.PageMarkerNotFound(marker=query.page.marker)
    *values, key = row
    return Marker(tuple(values), key)


def _page(tx: Connection, query: ServerListQuery, limit: int, whole: sa.Select[*Columns],
          marker: Marker | None = None) -> list[sa.Row[*Columns]]:
    """Return the rows of ``whole`` on one page.

    The page is selected by keys, which an index has in order, and only its rows are read completely. A page from the
    middle of 100,000 servers takes 10 ms on MariaDB this way, and 1 s otherwise.
    """
    wanted = within(sa.select(servers.c.id).where(*_clauses(query)), query.scope)
    order = _order(query)
    if query.page.marker:
        wanted = wanted.where(_after(marker or marker_of(tx, query), order))
    ordering = [_ordered(tx, column, down) for column, down in order]
    page = wanted.order_by(*ordering).limit(limit).subquery("page")
    chosen = whole.join(page, page.c.id == servers.c.id).order_by(*ordering)
    return _matching(tx, chosen) if has_patterns(query) else list(tx.execute(chosen))


def has_patterns(query: ServerListQuery) -> bool:
    """Return whether any filter is a regular expression."""
    return (query.ip_regex is not None or query.ip6_regex is not None
            or any(condition.op == "regex" for condition in query.conditions))


def _matching(tx: Connection, chosen: sa.Select[*Columns]) -> list[sa.Row[*Columns]]:
    """Execute the statement with a timeout. Raises api.PageBadRegex if an expression is invalid or keeps the database
    busy: some need a second for a single name."""
    try:
        with statement_timeout(tx, MATCHING_S):
            return list(tx.execute(chosen))
    except exc.DBAPIError as error:
        if not codes(error).isdisjoint(TOO_SLOW):
            raise errors.api.PageBadRegex(reason=f"the query took more than {MATCHING_S} seconds") from None
        if codes(error).isdisjoint(BAD_REGEX):
            raise
        raise errors.api.PageBadRegex(reason=str(error.orig)[:200]) from None


def _clauses(query: ServerListQuery) -> list[sa.ColumnElement[bool]]:
    clauses = _liveness(query)
    clauses += [_condition(condition) for condition in query.conditions]
    if query.statuses:
        clauses.append(sa.or_(*[_status(name) for name in query.statuses]))
    for key, value in query.metadata.items():
        clauses.append(_has_metadata(key, value))
    for pattern, version in ((query.ip_regex, 4), (query.ip6_regex, 6)):
        if pattern is not None:
            clauses.append(shows_address(servers.c.interfaces, sa.literal(pattern), sa.literal(version == 6)))
    clauses += _tag_clauses(query)
    clauses += _change_clauses(query)
    if query.locked is not None:
        clauses.append(servers.c.locked_by.is_not(None) if query.locked else servers.c.locked_by.is_(None))
    return clauses


def _liveness(query: ServerListQuery) -> list[sa.ColumnElement[bool]]:
    """Return the conditions on deletion; archived servers are never listed. Soft-deleted servers are listed only for
    queries that name their state."""
    soft = servers.c.vm_state == states.VmState.SOFT_DELETED.value
    named = (query.soft_deleted or any(name.upper() == "SOFT_DELETED" for name in query.statuses)
             or any(condition.column == "vm_state" for condition in query.conditions))
    if query.deleted == "live":
        return [servers.c.deleted == 0] if named else [servers.c.deleted == 0, sa.not_(soft)]
    kept = servers.c.archived_at.is_(None)
    if query.deleted == "deleted":
        gone = servers.c.deleted != 0
        return [kept, sa.or_(gone, soft) if query.soft_deleted else gone]
    return [kept]


def _change_clauses(query: ServerListQuery) -> list[sa.ColumnElement[bool]]:
    """Return the conditions on the last change (for unchanged servers, the creation). Each column has its own
    condition, so that its index is used: a coalesce of both would read all servers."""
    clauses = []
    for bound, compare in ((query.changes_since, operator.ge), (query.changes_before, operator.le)):
        if bound is not None:
            clauses.append(sa.or_(compare(servers.c.updated_at, bound),
                                  sa.and_(servers.c.updated_at.is_(None), compare(servers.c.created_at, bound))))
    return clauses


def _condition(condition: Condition) -> sa.ColumnElement[bool]:
    column = COLUMNS.get(condition.column)
    if column is None:
        return sa.true()
    value: Any = condition.value
    if condition.op == "is_null":
        return column.is_(None)
    if condition.op in ("in", "not_in"):
        values = [_typed(column, one) for one in condition.values]
        return column.in_(values) if condition.op == "in" else sa.or_(column.not_in(values), column.is_(None))
    if condition.op == "regex":
        return regexp(column, value or "")
    typed = _typed(column, value)
    if condition.op == "ge":
        return column >= typed
    if condition.op == "le":
        return column <= typed
    return column.is_(None) if typed is None else column == typed


def _typed(column: sa.Column[object], value: str | None) -> str | int | Time | None:
    """Convert text to the column's type; a value that the type cannot hold matches no row."""
    if value is None:
        return None
    kind = column.type.python_type
    if kind is bool:
        return value.lower() in ("true", "1", "yes", "on", "t", "y")
    if kind is int:
        return _number(value, 2**15 if isinstance(column.type, sa.SmallInteger) else 2**31)
    if kind is datetime.datetime:
        return datetime.datetime.fromisoformat(value)
    return value


def _number(text: str, limit: int) -> int:
    """Parse a number in the column's range; otherwise return ``NO_NUMBER``, which no key or state has."""
    try:
        number = int(text)
    except ValueError:
        return NO_NUMBER
    return number if abs(number) < limit else NO_NUMBER


def _status(name: str) -> sa.ColumnElement[bool]:
    vm_states, task_states = states.states_of(name)
    if not vm_states:
        return sa.false()
    parts = []
    for vm_state in vm_states:
        row = states.STATUS[vm_state]
        mine = [task.value for task, shown in row.items() if task is not None and shown == name.upper()]
        others = [task.value for task, shown in row.items() if task is not None and shown != name.upper()]
        if row[None] == name.upper():
            tasks = sa.or_(servers.c.task_state.is_(None), servers.c.task_state.not_in(others))
        else:
            tasks = servers.c.task_state.in_(mine)
        parts.append(sa.and_(servers.c.vm_state == vm_state.value, tasks))
    return sa.or_(*parts)


def _has_metadata(key: str, value: str) -> sa.ColumnElement[bool]:
    return servers.c.uuid.in_(sa.select(server_metadata.c.server_uuid).where(
        server_metadata.c.key == key, server_metadata.c.value == value))


def _tag_clauses(query: ServerListQuery) -> list[sa.ColumnElement[bool]]:
    def having(tags: tuple[str, ...], count: int) -> sa.ColumnElement[bool]:
        return servers.c.uuid.in_(sa.select(server_tags.c.server_uuid).where(server_tags.c.tag.in_(tags))
                                  .group_by(server_tags.c.server_uuid).having(sa.func.count() >= count))
    clauses = []
    if query.tags_all:
        clauses.append(having(query.tags_all, len(set(query.tags_all))))
    if query.tags_any:
        clauses.append(having(query.tags_any, 1))
    if query.not_tags_all:
        clauses.append(sa.not_(having(query.not_tags_all, len(set(query.not_tags_all)))))
    if query.not_tags_any:
        clauses.append(sa.not_(having(query.not_tags_any, 1)))
    return clauses


def _sorted_by(query: ServerListQuery) -> list[tuple[sa.Column[object], bool]]:
    """Return the query's sort columns as (column, descending) pairs. A repeated column does not affect the order, but
    would make a page's cost quadratic."""
    first: dict[str, bool] = {}
    for name, direction in query.sort or (("created_at", "desc"),):
        if name in COLUMNS:
            first.setdefault(name, direction != "asc")
    return [(COLUMNS[name], down) for name, down in first.items()]


def _order(query: ServerListQuery) -> list[tuple[sa.Column[object], bool]]:
    """Return (column, descending) pairs; the last is the unique id, so that pages never overlap."""
    order = _sorted_by(query)
    return [*order, (servers.c.id, order[-1][1] if order else True)]


def _ordered(tx: Connection, column: sa.Column[object], descending: bool) -> sa.ColumnElement[object]:
    """Order by the column with NULL lowest: the default of MariaDB and SQLite, explicit on PostgreSQL."""
    explicit = column.nullable and tx.dialect.name == "postgresql"
    if descending:
        return column.desc().nulls_last() if explicit else column.desc()
    return column.asc().nulls_first() if explicit else column.asc()


def _after(marker: Marker, order: list[tuple[sa.Column[object], bool]]) -> sa.ColumnElement[bool]:
    """Return the condition for rows after the marker in this order; NULL sorts first in ascending order on all
    databases."""
    alternatives: list[sa.ColumnElement[bool]] = []
    equal: list[sa.ColumnElement[bool]] = []
    bounds: list[sa.ColumnElement[bool]] = []
    values = marker.values if marker.key is None else (*marker.values, marker.key)
    for (column, down), value in zip(order, values, strict=marker.key is not None):
        typed = None if value is None else sa.literal(value, column.type)  # typed, so that booleans compare, too
        alternatives.append(sa.and_(*equal, _beyond(column, typed, down)))
        equal.append(column.is_(None) if typed is None else column == typed)
        bounds = bounds or [_bound(column, down, typed)]
    if marker.ties:
        alternatives.append(sa.and_(sa.true(), *equal))
    # The bound is redundant, but lets the scan begin in the middle of the index instead of at its start.
    return sa.and_(sa.true(), *bounds, sa.or_(sa.false(), *alternatives))


def _bound(column: sa.Column[object], descending: bool, value: sa.ColumnElement[object] | None
           ) -> sa.ColumnElement[bool]:
    """Return the condition that the first column is not before the marker's, which all rows from the marker on meet."""
    if value is None:
        return column.is_(None) if descending else sa.true()
    if descending:
        return sa.or_(column <= value, column.is_(None)) if column.nullable else column <= value
    return column >= value


def _beyond(column: sa.Column[object], value: sa.ColumnElement[object] | None, descending: bool
            ) -> sa.ColumnElement[bool]:
    if descending:
        if value is None:
            return sa.false()
        return sa.or_(column < value, column.is_(None)) if column.nullable else column < value
    return column.is_not(None) if value is None else column > value


class shows_address(FunctionElement[bool]):
    """The condition that a fixed address of an IP version in a column of interfaces matches a pattern. Arguments:
    ``column, pattern, colons``, where ``colons`` is true for IPv6."""

    type = sa.Boolean()
    inherit_cache = True


@compiles(shows_address)
def _shows(element: shows_address, compiler: SQLCompiler, **kw: object) -> str:
    column, pattern, colons = (compiler.process(part, **kw) for part in element.clauses)
    return (f"EXISTS (SELECT 1 FROM JSON_TABLE({column}, '$[*].addresses[*]' "
            "COLUMNS (address VARCHAR(64) PATH '$.address')) AS held "
            f"WHERE held.address REGEXP {pattern} AND (LOCATE(':', held.address) > 0) = {colons})")


@compiles(shows_address, "postgresql")
def _shows_postgresql(element: shows_address, compiler: SQLCompiler, **kw: object) -> str:
    column, pattern, colons = (compiler.process(part, **kw) for part in element.clauses)
    address = "(held.address #>> '{}')"
    return (f"EXISTS (SELECT 1 FROM jsonb_path_query(CAST({column} AS jsonb), '$[*].addresses[*].address') "
            f"AS held(address) WHERE {address} ~ {pattern} AND (strpos({address}, ':') > 0) = {colons})")


@compiles(shows_address, "sqlite")
def _shows_sqlite(element: shows_address, compiler: SQLCompiler, **kw: object) -> str:
    column, pattern, colons = (compiler.process(part, **kw) for part in element.clauses)
    return (f"EXISTS (SELECT 1 FROM json_tree({column}) AS held WHERE held.key = 'address' "
            f"AND instr(held.path, '].addresses[') > 0 AND held.value REGEXP {pattern} "
            f"AND (instr(held.value, ':') > 0) = {colons})")


__all__ = ["shows_address"]
