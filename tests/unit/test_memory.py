"""Memory that workers share, and that a start leaves behind."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator

import pytest

from nova import memory


def test_prepare_sharing_then_the_collector_leaves_what_exists_alone() -> None:
    try:
        memory.prepare_sharing()
        assert gc.get_freeze_count() > 1000
    finally:
        gc.unfreeze()


@pytest.fixture
def collector() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


@pytest.mark.usefixtures("collector")
def test_settle_when_repeated_then_the_collector_searches_new_objects_only_and_seldom() -> None:
    memory.settle()
    memory.settle()
    assert gc.get_freeze_count() > 1000 and gc.get_threshold() == memory.COLLECTIONS


@pytest.mark.usefixtures("collector")
def test_settle_when_the_c_library_cannot_then_the_rest_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: object())  # musl has no malloc_trim
    memory.settle()
    assert gc.get_threshold() == memory.COLLECTIONS
