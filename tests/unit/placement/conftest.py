"""Placement's API before a real conductor over SQLite: a fresh one for each test, or one for a module's refusals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.placement_api import PlacementClient
from tests.fakes.small_cloud import SmallCloud, make_templates


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_templates(tmp_path_factory.mktemp("schemas"))


def _client(folder: Path, templates: Path) -> Iterator[PlacementClient]:
    cloud = SmallCloud(folder, templates, computes=())
    yield PlacementClient(cloud)
    cloud.close()


@pytest.fixture
def client(tmp_path: Path, templates: Path) -> Iterator[PlacementClient]:
    yield from _client(tmp_path, templates)


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory, templates: Path) -> Iterator[PlacementClient]:
    """For requests that change nothing."""
    yield from _client(tmp_path_factory.mktemp("still"), templates)
