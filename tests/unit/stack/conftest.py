"""bin/ is not a package: what is behind bin/stack and bin/test is imported from its folder."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "bin"))

from stacklib.layout import Choices, Layout
from stacklib.secrets import Secrets


@pytest.fixture
def short_path():
    """A directory whose path leaves room for the names of sockets."""
    with tempfile.TemporaryDirectory(prefix="st-", dir="/tmp") as path:
        yield Path(path)


@pytest.fixture
def secrets(tmp_path: Path) -> Secrets:
    return Secrets(tmp_path / "secrets.json")


@pytest.fixture
def make_layout(monkeypatch: pytest.MonkeyPatch):
    """A layout at a short path that nothing is written to."""
    monkeypatch.setenv("NOVA_STACK_VENVS", "/opt/venvs")
    return lambda **choices: Layout(Path("/s"), Choices(**choices))
