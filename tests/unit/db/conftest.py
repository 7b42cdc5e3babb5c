"""Both schemas, empty, in SQLite files of the test's own: copies of databases that are made once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from nova.db.models import api as api_models
from nova.db.models import cell as cell_models
from nova.db.sql.engine import Database
from tests.fakes.databases import QuickDatabase


@pytest.fixture(scope="session")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the two empty databases."""
    folder = tmp_path_factory.mktemp("schemas")
    for name, models in (("api", api_models), ("cell", cell_models)):
        _create(folder / name, models.metadata)
    return folder


def _create(path: Path, metadata: sa.MetaData) -> None:
    database = QuickDatabase(path)
    metadata.create_all(database.engine)
    with database.reading() as tx:
        tx.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    database.dispose()


def _copied(schemas: Path, name: str, folder: Path) -> Iterator[Database]:
    database = QuickDatabase(shutil.copyfile(schemas / name, folder / name))
    yield database
    database.dispose()


@pytest.fixture
def api(tmp_path: Path, schemas: Path) -> Iterator[Database]:
    yield from _copied(schemas, "api", tmp_path)


@pytest.fixture
def cell(tmp_path: Path, schemas: Path) -> Iterator[Database]:
    yield from _copied(schemas, "cell", tmp_path)
