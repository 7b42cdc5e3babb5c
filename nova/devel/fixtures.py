"""pytest's fixtures: in a conftest.py, ``from nova.devel import cloud`` (or ``session_cloud``)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nova.devel.running import RunningCloud


@pytest.fixture
def cloud() -> Iterator[RunningCloud]:
    """A new cloud for each test, which takes it about two seconds."""
    with RunningCloud() as running:
        yield running


@pytest.fixture(scope="session")
def session_cloud() -> Iterator[RunningCloud]:
    """One cloud for all tests of a run. What a test leaves in it, the next one finds."""
    with RunningCloud() as running:
        yield running
