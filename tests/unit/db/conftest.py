"""Both schemas, empty, in SQLite files of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nova.db.engine import Database
from nova.db.models import api as api_models
from nova.db.models import cell as cell_models


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Database]:
    database = Database(f"sqlite:///{tmp_path}/api")
    api_models.metadata.create_all(database.engine)
    yield database
    database.dispose()


@pytest.fixture
def cell(tmp_path: Path) -> Iterator[Database]:
    database = Database(f"sqlite:///{tmp_path}/cell")
    cell_models.metadata.create_all(database.engine)
    yield database
    database.dispose()
