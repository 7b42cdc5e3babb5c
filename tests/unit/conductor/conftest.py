"""A small cloud for each test, on copies of databases that are made once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.small_cloud import SmallCloud, make_templates


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_templates(tmp_path_factory.mktemp("schemas"))


@pytest.fixture
def cloud(tmp_path: Path, templates: Path) -> Iterator[SmallCloud]:
    made = SmallCloud(tmp_path, templates)
    yield made
    made.close()
