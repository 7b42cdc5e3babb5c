"""Fixtures for pytest: in a conftest.py, ``from nova.devel import cloud`` (or ``session_cloud``)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nova.devel.running import RunningCloud


@pytest.fixture
def cloud() -> Iterator[RunningCloud]:
    """Start a new cloud for each test, which takes about two seconds."""
    with RunningCloud() as running:
        yield running


@pytest.fixture(scope="session")
def session_cloud() -> Iterator[RunningCloud]:
    """Start one cloud for all tests of a run. Each test sees the remains of the previous ones."""
    with RunningCloud() as running:
        yield running
