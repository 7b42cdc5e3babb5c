"""Memory that workers share, and that a start leaves behind."""

from __future__ import annotations

import ctypes
import gc

import pytest

from nova import memory


def test_prepare_sharing_then_the_collector_leaves_what_exists_alone() -> None:
    try:
        memory.prepare_sharing()
        assert gc.get_freeze_count() > 1000
    finally:
        gc.unfreeze()


def test_release_when_repeated_then_nothing_happens() -> None:
    memory.release()
    memory.release()


def test_release_when_the_c_library_cannot_then_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: object())  # musl has no malloc_trim
    memory.release()
