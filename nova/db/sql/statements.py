"""Small pieces of SQL that several query modules share.

Statements of a recurring shape are built once and executed with parameters: building one costs the process more than
running it.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova import failures
from nova.db.sql.types import utc_now

K = TypeVar("K")
V = TypeVar("V")


def by_key(column: sa.Column[K], values: Mapping[K, V], target: sa.Column[V]) -> sa.ColumnElement[V]:
    """Return ``CASE column WHEN key THEN value ... END`` for ``target``: an update of many rows, each with its own
    value, in one statement."""
    if len(values) == 1:
        return sa.literal(next(iter(values.values())), target.type)
    pairs = {key: sa.literal(value, target.type) for key, value in values.items()}
    return sa.case(pairs, value=column, else_=target)


def insert_ignoring(tx: Connection, table: sa.Table, rows: Sequence[Mapping[str, object]]) -> int:
    """Insert the rows whose unique keys do not exist yet, in one statement; return their number. Existing rows stay
    unchanged."""
    name = tx.dialect.name
    if name in ("mysql", "mariadb"):
        return tx.execute(sa.insert(table).prefix_with("IGNORE").values(list(rows))).rowcount
    if name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert

        made = insert(table).values(list(rows)).on_conflict_do_nothing()
        return len(tx.execute(made.returning(sa.literal(1))).all())  # psycopg reports a rowcount of -1
    from sqlalchemy.dialects.sqlite import insert as sqlite_insert

    return tx.execute(sqlite_insert(table).values(list(rows)).on_conflict_do_nothing()).rowcount


class Shape(NamedTuple):
    """The names that a row or a change binds, and its computed values as (name, column or function of no arguments)."""

    bound: tuple[str, ...]
    computed: tuple[tuple[str, type[utc_now] | sa.Column[Any]], ...]


def split(values: Mapping[str, object]) -> tuple[Shape, dict[str, object]] | None:
    """Return a mapping's shape and the parameters to bind. None if a value is any other SQL expression."""
    bound: dict[str, object] = {}
    computed: list[tuple[str, type[utc_now] | sa.Column[Any]]] = []
    for name, value in values.items():
        if isinstance(value, utc_now):
            computed.append((name, utc_now))
        elif isinstance(value, sa.Column):
            computed.append((name, value))
        elif isinstance(value, sa.ClauseElement):
            return None
        else:
            bound[name] = value
    return Shape(tuple(bound), tuple(computed)), bound


def _assignments(table: sa.Table, shape: Shape) -> dict[str, object]:
    """Return column -> new value. Parameters are named ``new_NAME``, because an UPDATE reserves the column names."""
    bound = {name: sa.bindparam(f"new_{name}", type_=table.c[name].type) for name in shape.bound}
    return bound | {name: what if isinstance(what, sa.Column) else what() for name, what in shape.computed}


@functools.cache
def _update(table: sa.Table, keys: tuple[str, ...], shape: Shape) -> sa.Update:
    mine = [table.c[name] == sa.bindparam(f"is_{name}", type_=table.c[name].type) for name in keys]
    return sa.update(table).where(*mine).values(**_assignments(table, shape))


def update_where(tx: Connection, table: sa.Table, equal: Mapping[str, object], changes: Mapping[str, object]) -> int:
    """UPDATE the rows whose columns equal these values; return the number of rows matched."""
    parts = split(changes)
    if parts is None:
        where = [table.c[name] == value for name, value in equal.items()]
        return tx.execute(sa.update(table).where(*where).values(**changes)).rowcount
    shape, bound = parts
    parameters = {f"is_{name}": value for name, value in equal.items()}
    parameters |= {f"new_{name}": value for name, value in bound.items()}
    return tx.execute(_update(table, tuple(equal), shape), parameters).rowcount


class _Each(NamedTuple):
    """The shape of an update of several rows by key. ``size``: the number of keys, filled up by repeating the last one.
    ``own``: the columns with values of each row's own, and whether every row has one."""

    size: int
    equal: tuple[str, ...]
    guards: tuple[str, ...]
    same: Shape
    own: tuple[tuple[str, bool], ...]


@functools.cache
def _update_each(table: sa.Table, key: str, each: _Each) -> sa.Update:
    column = table.c[key]
    keys = [sa.bindparam(f"key_{index}", type_=column.type) for index in range(each.size)]

    def of_row(name: str, kind: str, complete: bool = True) -> sa.ColumnElement[object]:
        of = keys if complete else [sa.bindparam(f"key_{name}_{index}", type_=column.type)
                                    for index in range(each.size)]
        whens = [(column == of[index], sa.bindparam(f"{kind}_{name}_{index}", type_=table.c[name].type))
                 for index in range(each.size)]
        return sa.case(*whens, else_=table.c[name])
    mine = [column.in_(keys), *(table.c[name] == sa.bindparam(f"is_{name}", type_=table.c[name].type)
                                for name in each.equal),
            *(table.c[name] == of_row(name, "is") for name in each.guards)]
    values = {name: of_row(name, "new", complete) for name, complete in each.own}
    return sa.update(table).where(*mine).values(**_assignments(table, each.same), **values)


class EachRow(NamedTuple):
    """An update of several rows by the unique column ``key``. ``equal``: column -> the value that every row must have;
    ``guards``: column -> the value that each row must have, by its key; ``same``: changes of every row; ``own``: column
    -> new values by key, unchanged where there is none."""

    key: str
    keys: Sequence[object]
    equal: Mapping[str, object]
    guards: Mapping[str, Mapping[Any, object]]
    same: Mapping[str, object]
    own: Mapping[str, Mapping[Any, object]]


ROWS_AT_ONCE = 128  # of one UPDATE: it compares each row with as many keys


def update_each(tx: Connection, table: sa.Table, rows: EachRow) -> int:
    """UPDATE some rows, each with values of its own, in one statement of a recurring shape for up to ROWS_AT_ONCE rows;
    return the number of rows matched."""
    return sum(_update_some(tx, table, rows._replace(keys=rows.keys[first:first + ROWS_AT_ONCE]))
               for first in range(0, len(rows.keys), ROWS_AT_ONCE))


def _update_some(tx: Connection, table: sa.Table, rows: EachRow) -> int:
    parts = split(rows.same)
    assert parts is not None, f"a change of {table.name} has a value that is not supported in this UPDATE"
    shape, bound = parts
    size = 1 << (len(rows.keys) - 1).bit_length()
    filled = list(enumerate([*rows.keys, *([rows.keys[-1]] * (size - len(rows.keys)))]))
    parameters: dict[str, object] = {f"new_{name}": value for name, value in bound.items()}
    parameters |= {f"is_{name}": value for name, value in rows.equal.items()}
    parameters |= {f"key_{index}": key for index, key in filled}
    for name, values in rows.guards.items():
        parameters |= {f"is_{name}_{index}": values[key] for index, key in filled}
    own = []
    for name, values in rows.own.items():
        own.append((name, complete := values.keys() >= set(rows.keys)))
        parameters |= {f"new_{name}_{index}": values.get(key) for index, key in filled}
        if not complete:  # no key equals NULL
            parameters |= {f"key_{name}_{index}": key if key in values else None for index, key in filled}
    each = _Each(size, tuple(rows.equal), tuple(rows.guards), shape, tuple(own))
    return tx.execute(_update_each(table, rows.key, each), parameters).rowcount


@functools.cache
def _insert(table: sa.Table, shape: Shape) -> sa.Insert:
    return sa.insert(table).values(**_assignments(table, shape))


def insert_all(tx: Connection, table: sa.Table, rows: Sequence[Mapping[str, object]]) -> int | None:
    """Insert rows of one shape, in as few INSERT statements as the driver can make; none if ``rows`` is empty. Returns
    the key that the database generated for a single row; None for several, or a table without one.

    Computed values (``utc_now()``) are those of the first row.
    """
    if not rows:
        return None
    complete = [_complete(table, row) for row in rows]
    parts = split(complete[0])
    assert parts is not None, f"a row of {table.name} has a value that is not supported in an INSERT"
    assert all(row.keys() == complete[0].keys() for row in complete), f"rows of {table.name} have different columns"
    shape, _bound = parts
    bound = [{f"new_{name}": row[name] for name in shape.bound} for row in complete]
    if len(bound) > 1:
        tx.execute(_insert(table, shape), bound)
        return None
    key = tx.execute(_insert(table, shape), bound[0]).inserted_primary_key
    return int(key[0]) if key and isinstance(key[0], int) else None


def _complete(table: sa.Table, row: Mapping[str, object]) -> dict[str, object]:
    """Return the row with column defaults filled in, so that rows that omit some have the same shape."""
    return {**_defaults(table), **row}


def delete_keys(tx: Connection, table: sa.Table, keys: Sequence[int]) -> int:
    """DELETE rows by key, which locks only these rows; return the number of rows deleted."""
    return tx.execute(sa.delete(table).where(table.c.id.in_(keys))).rowcount if keys else 0


def delete_some(tx: Connection, table: sa.Table, old: sa.ColumnElement[bool], limit: int) -> int:
    """DELETE up to ``limit`` of the rows that are ``old``; return their number. Rows are selected without a lock and
    deleted by key, so that two concurrent purges delay each other by one batch at most, and delay no other statement.
    """
    return delete_keys(tx, table, list(tx.execute(sa.select(table.c.id).where(old).limit(limit)).scalars()))


@functools.cache
def _defaults(table: sa.Table) -> dict[str, object]:
    return {column.name: column.default.arg for column in table.columns
            if isinstance(column.default, sa.ColumnDefault) and column.default.is_scalar}


#: Dialect -> the statements that set and reset a session's statement timeout.
_TIMEOUT_STATEMENTS = {"mariadb": ("SET max_statement_time = {seconds}", "SET max_statement_time = DEFAULT"),
                       "mysql": ("SET max_execution_time = {seconds}000", "SET max_execution_time = DEFAULT"),
                       "postgresql": ("SET statement_timeout = '{seconds}s'", "SET statement_timeout = DEFAULT")}


@contextlib.contextmanager
def statement_timeout(tx: Connection, seconds: int) -> Iterator[None]:
    """Limit each statement inside to ``seconds``; the server then cancels it with one of :data:`TOO_SLOW`. For
    expressions that clients write and may make arbitrarily slow. SQLite has no such limit; its expressions need none.
    """
    dialect: Any = tx.dialect
    limits = _TIMEOUT_STATEMENTS.get("mariadb" if getattr(dialect, "is_mariadb", False) else dialect.name)
    if limits is None:
        yield
        return
    tx.exec_driver_sql(limits[0].format(seconds=seconds))
    try:
        yield
    finally:
        if not tx.invalidated:
            _lift(tx, limits[1])


def _lift(tx: Connection, statement: str) -> None:
    """Reset the limit, or else close the connection: its next user must not inherit the limit."""
    if failures.failure_of(tx.exec_driver_sql, statement):
        tx.invalidate()


#: Error codes of MariaDB, MySQL and PostgreSQL for a statement that exceeded its time limit.
TOO_SLOW = (1969, 3024, "57014")


def regexp(column: sa.ColumnElement[V], pattern: str) -> sa.ColumnElement[bool]:
    """Return the condition that the column's text matches ``pattern`` anywhere."""
    return sa.cast(column, sa.String).regexp_match(pattern)
