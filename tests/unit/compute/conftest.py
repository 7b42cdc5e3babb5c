from __future__ import annotations

from collections.abc import Iterator

import pytest

from nova.compute.orders import permission
from tests.fakes.compute import FakeClock, World


@pytest.fixture(autouse=True)
def impatient(monkeypatch) -> None:
    """A conductor that is away is given up at once: waiting for it has a test of its own."""
    monkeypatch.setattr(permission, "ASK_FOR_S", 0.0)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def world(tmp_path) -> Iterator[World]:
    made = World(tmp_path).start()
    yield made
    made.close()


@pytest.fixture
def make_world(tmp_path) -> Iterator:
    made: list[World] = []

    def make(**settings) -> World:
        made.append(World(tmp_path, **settings))
        return made[-1]
    yield make
    for each in made:
        each.close()
