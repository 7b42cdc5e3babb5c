"""Disks that are full, and what the operator is told of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from stacklib import space, up
from stacklib.errors import StackError
from stacklib.layout import Choices, Layout


@pytest.fixture
def layout(short_path: Path) -> Layout:
    return Layout(short_path / "state", Choices())


def test_up_when_the_disk_has_less_than_a_stack_takes_then_refused_with_both_numbers(layout, monkeypatch):
    monkeypatch.setattr(space, "free_mb", lambda place: space.FIRST_MB - 1)
    with pytest.raises(StackError, match=f"{space.FIRST_MB - 1} MB are free, {space.FIRST_MB} MB are needed") as caught:
        space.refuse_little(layout)
    assert "run `bin/stack up` again" in caught.value.hint


def test_up_when_the_stack_is_there_then_little_space_is_enough(layout, monkeypatch):
    layout.path("stamps").mkdir(parents=True)
    monkeypatch.setattr(space, "free_mb", lambda place: space.LEAST_MB)
    space.refuse_little(layout)


def test_failed_step_when_a_disk_is_full_then_that_is_said_and_else_nothing(layout, monkeypatch):
    assert space.none_left(layout) is None
    monkeypatch.setattr(space, "free_mb", lambda place: 3 if place == layout.venvs else 9000)
    assert f"no space left on the disk of {layout.venvs}" in space.none_left(layout).message
    with pytest.raises(StackError, match=f"no space left on the disk of {layout.venvs}") as caught, \
            up._full_disk_said(layout):
        raise StackError("port 5672 is taken", "stop it")
    assert "port 5672 is taken" in caught.value.message and "stop it" in caught.value.message


def test_free_space_when_the_directory_is_not_there_yet_then_that_of_the_disk_it_will_be_on(layout):
    assert space.free_mb(layout.path("a", "b")) == pytest.approx(space.free_mb(Path("/tmp")), abs=500)
