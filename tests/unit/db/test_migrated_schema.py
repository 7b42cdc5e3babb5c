"""Migrations end where the models are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from nova.db.models import api, cell
from nova.db.schema import creation, migrate, revisions
from nova.db.sql.engine import Database

SCHEMAS = {"api": api, "cell": cell}


def described(database: Database) -> dict[str, Any]:
    """Table -> its columns (and whether each may be null), indexes and unique constraints."""
    found = sa.inspect(database.engine)
    return {table: ({column["name"]: column["nullable"] for column in found.get_columns(table)},
                    {index["name"]: index["column_names"] for index in found.get_indexes(table)},
                    sorted(tuple(unique["column_names"]) for unique in found.get_unique_constraints(table)))
            for table in found.get_table_names() if not table.startswith("alembic")}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_schema_when_created_in_one_step_then_as_migrated(schema: str, tmp_path: Path) -> None:
    migrated, made = (Database(f"sqlite:///{tmp_path}/{name}") for name in ("migrated", "made"))
    migrate.sync(schema, migrated)
    for _ in range(2):  # a start after a crash repeats it
        creation.create_or_migrate(schema, made)
    assert described(made) == described(migrated)
    assert revisions.current(schema, made) == revisions.current(schema, migrated) == revisions.known(schema)[-1]
    assert migrate.sync(schema, made) == (revisions.known(schema)[-1],) * 2
    migrated.dispose()
    made.dispose()


@pytest.mark.parametrize("schema", SCHEMAS)
def test_schema_when_of_an_older_release_then_migrated(schema: str, tmp_path: Path) -> None:
    old = Database(f"sqlite:///{tmp_path}/old")
    migrate.sync(schema, old, revisions.known(schema)[-2])
    creation.create_or_migrate(schema, old)
    assert revisions.current(schema, old) == revisions.known(schema)[-1]
    old.dispose()


@pytest.mark.parametrize("schema", SCHEMAS)
def test_schema_when_its_creation_fails_then_nothing_is_left(schema: str, tmp_path: Path, monkeypatch) -> None:
    database = Database(f"sqlite:///{tmp_path}/half")
    monkeypatch.setattr(creation, "version_table", lambda _schema: None)
    with pytest.raises(Exception, match="."):
        creation.create_or_migrate(schema, database)
    assert sa.inspect(database.engine).get_table_names() == []
    database.dispose()


@pytest.mark.parametrize("schema", SCHEMAS)
def test_schema_when_migrated_has_the_models_tables_columns_and_indexes(schema: str, tmp_path: Path) -> None:
    migrated, made = (Database(f"sqlite:///{tmp_path}/{name}") for name in ("migrated", "made"))
    migrate.sync(schema, migrated)
    SCHEMAS[schema].metadata.create_all(made.engine)
    wanted, found = described(made), described(migrated)
    tables = SCHEMAS[schema].metadata.tables
    assert {table: found.get(table) for table in tables} == {table: wanted[table] for table in tables}
    migrated.dispose()
    made.dispose()
