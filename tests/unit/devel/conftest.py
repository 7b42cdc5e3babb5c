from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.devel.served import FakeCloud, fake_cloud


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[FakeCloud]:
    folder = tmp_path / "images"
    folder.mkdir()
    with fake_cloud(folder) as made:
        yield made
