"""Hosts that a benchmark makes up never come into a database that it did not make."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from nova.db.models.cell import services
from nova.db.schema import migrate
from tests.bench.scheduler import fleet
from tests.fakes.databases import QuickDatabase
from tests.functional.backends import SQLite


def hosts_in(database) -> int:
    with database.reading() as tx:
        return len(tx.execute(sa.select(services.c.id)).all())


def test_fill_when_a_database_is_somebodys_then_it_is_refused(tmp_path):
    databases = fleet.Databases(QuickDatabase(tmp_path / "api"), QuickDatabase(tmp_path / "cell"))
    for schema, database in zip(("api", "cell"), databases, strict=True):
        migrate.sync(schema, database)
    with pytest.raises(fleet.NotOurs, match="was not made by this benchmark"):
        fleet.fill(databases, 1)
    assert hosts_in(databases.cell) == 0
    databases.close()


def test_fill_when_it_has_hosts_already_then_it_is_refused(tmp_path):
    databases = fleet.make(SQLite(tmp_path), "twice")
    fleet.fill(databases, 3)
    with pytest.raises(fleet.NotOurs, match="has hosts already"):
        fleet.fill(databases, 1)
    assert hosts_in(databases.cell) == 3
    databases.close()
