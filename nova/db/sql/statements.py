"""Small pieces of SQL that several query modules share.

A statement is built once and executed with parameters wherever its shape repeats: building one costs the process more
than running it.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.sql.types import AnyColumn, Clause, utc_now


def by_key(column: sa.Column[AnyColumn], values: Mapping[AnyColumn, AnyColumn], target: sa.Column[AnyColumn]) -> Clause:
    """``CASE column WHEN key THEN value ... END`` for ``target``: many rows, each its own value, one statement."""
    if len(values) == 1:
        return sa.literal(next(iter(values.values())), target.type)
    pairs = {key: sa.literal(value, target.type) for key, value in values.items()}
    return sa.case(pairs, value=column, else_=target)


def insert_ignoring(tx: Connection, table: sa.Table, rows: Sequence[Mapping[str, object]]) -> int:
    """Insert what is not there yet, in one statement; a row whose unique key exists is left as it is. How many came."""
    name = tx.dialect.name
    if name in ("mysql", "mariadb"):
        return tx.execute(sa.insert(table).prefix_with("IGNORE").values(list(rows))).rowcount
    if name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert

        made = insert(table).values(list(rows)).on_conflict_do_nothing()
        return len(tx.execute(made.returning(sa.literal(1))).all())  # its rowcount is -1
    from sqlalchemy.dialects.sqlite import insert as sqlite_insert

    return tx.execute(sqlite_insert(table).values(list(rows)).on_conflict_do_nothing()).rowcount


class Shape(NamedTuple):
    """The names of what a row or a change binds, and what it computes: (name, column or function of no arguments)."""

    bound: tuple[str, ...]
    computed: tuple[tuple[str, Any], ...]


def split(values: Mapping[str, object]) -> tuple[Shape, dict[str, AnyColumn]] | None:
    """A mapping's shape and the parameters to bind; None when something in it is computed in a way of its own."""
    bound: dict[str, Any] = {}
    computed: list[tuple[str, object]] = []
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
    """Columns -> what they become. A parameter is named ``new_NAME``: an UPDATE's own names are taken."""
    bound = {name: sa.bindparam(f"new_{name}", type_=table.c[name].type) for name in shape.bound}
    return bound | {name: what() if what is utc_now else what for name, what in shape.computed}


@functools.cache
def _update(table: sa.Table, keys: tuple[str, ...], shape: Shape) -> sa.Update:
    mine = [table.c[name] == sa.bindparam(f"is_{name}", type_=table.c[name].type) for name in keys]
    return sa.update(table).where(*mine).values(**_assignments(table, shape))


def update_where(tx: Connection, table: sa.Table, equal: Mapping[str, object], changes: Mapping[str, object]) -> int:
    """UPDATE rows whose columns are equal to these values; how many were found."""
    parts = split(changes)
    if parts is None:
        where = [table.c[name] == value for name, value in equal.items()]
        return tx.execute(sa.update(table).where(*where).values(**changes)).rowcount
    shape, bound = parts
    parameters = {f"is_{name}": value for name, value in equal.items()}
    parameters |= {f"new_{name}": value for name, value in bound.items()}
    return tx.execute(_update(table, tuple(equal), shape), parameters).rowcount


@functools.cache
def _insert(table: sa.Table, shape: Shape) -> sa.Insert:
    return sa.insert(table).values(**_assignments(table, shape))


def insert_all(tx: Connection, table: sa.Table, rows: Sequence[Mapping[str, object]]) -> None:
    """Insert rows of one shape; the driver makes as few INSERTs of them as it can. None for none.

    Values that are computed (``utc_now()``) are the first row's.
    """
    if not rows:
        return
    complete = [_complete(table, row) for row in rows]
    parts = split(complete[0])
    assert parts is not None, f"a row of {table.name} has a value that cannot be inserted"
    shape, _bound = parts
    tx.execute(_insert(table, shape), [{f"new_{name}": row[name] for name in shape.bound} for row in complete])


def _complete(table: sa.Table, row: Mapping[str, object]) -> dict[str, object]:
    """Column defaults filled in, so that rows that leave some out have one shape."""
    return {**_defaults(table), **row}


def delete_keys(tx: Connection, table: sa.Table, keys: Sequence[int]) -> int:
    """DELETE rows by their keys, which locks these rows alone; how many there were still."""
    return tx.execute(sa.delete(table).where(table.c.id.in_(keys))).rowcount if keys else 0


def delete_some(tx: Connection, table: sa.Table, old: Clause, limit: int) -> int:
    """DELETE up to ``limit`` of the rows that are ``old``; how many went. Found without a lock, then taken by key: two
    that do so side by side hinder each other for a batch at most, and nobody else."""
    return delete_keys(tx, table, list(tx.execute(sa.select(table.c.id).where(old).limit(limit)).scalars()))


@functools.cache
def _defaults(table: sa.Table) -> dict[str, object]:
    return {column.name: column.default.arg for column in table.columns
            if isinstance(column.default, sa.ColumnDefault) and column.default.is_scalar}


#: Dialect -> what gives the statements of a session so many seconds, and what takes that back.
_PATIENCE = {"mariadb": ("SET max_statement_time = {seconds}", "SET max_statement_time = DEFAULT"),
             "mysql": ("SET max_execution_time = {seconds}000", "SET max_execution_time = DEFAULT"),
             "postgresql": ("SET statement_timeout = '{seconds}s'", "SET statement_timeout = DEFAULT")}


@contextlib.contextmanager
def hurried(tx: Connection, seconds: int) -> Iterator[None]:
    """The server breaks off each statement in it after so many seconds (:data:`TOO_SLOW`): for what a client wrote,
    and may have made as slow as it likes. (Files have no such limit; their expressions need none.)"""
    dialect: Any = tx.dialect
    limits = _PATIENCE.get("mariadb" if getattr(dialect, "is_mariadb", False) else dialect.name)
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
    """Lifted, or else closed: whoever has the connection next must not be hurried."""
    try:
        tx.exec_driver_sql(statement)
    except Exception:
        tx.invalidate()


#: How MariaDB, MySQL and PostgreSQL say that they broke off a statement.
TOO_SLOW = (1969, 3024, "57014")


def regexp(column: AnyColumn, pattern: str) -> Clause:
    """Whether the column's text has a match of ``pattern`` anywhere."""
    return sa.cast(column, sa.String).regexp_match(pattern)
