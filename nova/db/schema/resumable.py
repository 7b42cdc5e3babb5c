"""The steps of a schema's migration, each taken only where it was not taken yet.

MariaDB commits with each of them: a sync that dies half way leaves tables that its revision does not speak of, and the
next one goes on from there. Written for migrations in alembic's stead: ``from nova.db.schema.resumable import op``.
"""

from __future__ import annotations

import sqlalchemy as sa

from alembic import op as alembic_op
from nova.conf.base import Options
from nova.db.sql.types import AnyColumn


class Resumable:
    """``alembic.op``; what is not named here may be repeated as it is."""

    def __getattr__(self, name: str) -> object:
        return getattr(alembic_op, name)

    def create_table(self, name: str, *columns: AnyColumn, **options: Options) -> None:
        """Nothing when there is a table of that name, whatever its columns."""
        if not _found().has_table(name):
            alembic_op.create_table(name, *columns, **options)

    def create_index(self, name: str, table: str, columns: list[str]) -> None:
        """Nothing when the table has an index of that name."""
        if not _found().has_index(table, name):
            alembic_op.create_index(name, table, columns)

    def drop_index(self, name: str, table: str) -> None:
        """Nothing when the table has no index of that name."""
        if _found().has_index(table, name):
            alembic_op.drop_index(name, table)

    def add_column(self, table: str, column: sa.Column[object]) -> None:
        """Nothing when the table has a column of that name."""
        if column.name not in {one["name"] for one in _found().get_columns(table)}:
            alembic_op.add_column(table, column)


def _found() -> sa.Inspector:
    """What is there now."""
    return sa.inspect(alembic_op.get_bind())


op = Resumable()
