"""Small pieces of SQL that several query modules share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

#: SQLite binds at most 32,766 values a statement, PostgreSQL 65,535.
MOST_VALUES = 30_000


def by_key(column: sa.Column[Any], values: Mapping[Any, Any], target: sa.Column[Any]) -> Any:
    """``CASE column WHEN key THEN value ... END`` for ``target``: many rows, each its own value, one statement."""
    if len(values) == 1:
        return sa.literal(next(iter(values.values())), target.type)
    pairs = {key: sa.literal(value, target.type) for key, value in values.items()}
    return sa.case(pairs, value=column, else_=target)


def insert_ignoring(tx: Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert what is not there yet, in one statement; a row whose unique key exists is left as it is."""
    name = tx.dialect.name
    if name in ("mysql", "mariadb"):
        tx.execute(sa.insert(table).prefix_with("IGNORE").values(list(rows)))
    elif name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert

        tx.execute(insert(table).values(list(rows)).on_conflict_do_nothing())
    else:
        from sqlalchemy.dialects.sqlite import insert as sqlite_insert

        tx.execute(sqlite_insert(table).values(list(rows)).on_conflict_do_nothing())


def insert_all(tx: Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]], most: int = 1000) -> None:
    """As few INSERTs as the databases' limits allow (one for a hundred rows at least; none for none). ``most`` rows go
    into one."""
    each = max(1, min(most, MOST_VALUES // len(table.columns)))
    for start in range(0, len(rows), each):
        tx.execute(sa.insert(table).values([_complete(table, row) for row in rows[start:start + each]]))


def _complete(table: sa.Table, row: Mapping[str, Any]) -> dict[str, Any]:
    """Column defaults filled in: a VALUES list of many rows does not fire them by itself."""
    full = dict(row)
    for column in table.columns:
        if column.name not in full and column.default is not None and column.default.is_scalar:
            full[column.name] = column.default.arg
    return full


def regexp(column: Any, pattern: str) -> Any:
    """Whether the column's text has a match of ``pattern`` anywhere."""
    return sa.cast(column, sa.String).regexp_match(pattern)
