"""Idempotent schema migration steps: each is applied only if it was not applied yet.

MariaDB commits each step: a sync that dies half-way leaves tables that its revision does not cover, and the next sync
continues from there. Migrations import it instead of alembic's: ``from nova.db.schema.resumable import op``.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.schema import SchemaItem

from alembic import op as alembic_op


class Resumable:
    """A wrapper of ``alembic.op``; operations not defined here are already repeatable."""

    def __getattr__(self, name: str) -> object:
        return getattr(alembic_op, name)

    def create_table(self, name: str, *columns: SchemaItem, **options: bool) -> None:
        """Create a table, unless one of that name exists, with any columns."""
        if not _found().has_table(name):
            alembic_op.create_table(name, *columns, **options)

    def create_index(self, name: str, table: str, columns: list[str]) -> None:
        """Create an index, unless the table has one of that name."""
        if not _found().has_index(table, name):
            alembic_op.create_index(name, table, columns)

    def drop_index(self, name: str, table: str) -> None:
        """Drop an index, if the table has one of that name."""
        if _found().has_index(table, name):
            alembic_op.drop_index(name, table)

    def add_column(self, table: str, column: sa.Column[object]) -> None:
        """Add a column, unless the table has one of that name."""
        if column.name not in {one["name"] for one in _found().get_columns(table)}:
            alembic_op.add_column(table, column)


def _found() -> sa.Inspector:
    """Return an inspector of the current schema."""
    return sa.inspect(alembic_op.get_bind())


op = Resumable()
