"""What a run leaves out has its turn in another, and is counted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

import pytest

from tests import sampling, turns

VALUES = list(range(10))


@pytest.fixture
def left_out(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    monkeypatch.setattr(sampling, "LEFT_OUT", Counter())
    monkeypatch.setattr(sampling, "LONG", False)
    monkeypatch.setattr(sampling, "COLLECTED", False)
    monkeypatch.setattr(turns, "DRAWS", defaultdict(list))
    return sampling.LEFT_OUT


@pytest.mark.parametrize(("choose", "runs"), [
    (sampling.fifth, 5), (lambda values: sampling.drawn(values, 4), 3), (lambda values: sampling.drawn(values, 1), 10),
    (lambda values: sampling.one_in(4, values), 4)])
def test_sample_when_seeds_follow_each_other_then_all_have_their_turn_and_the_rest_is_counted(
        choose: Callable[[list[int]], list[int]], runs: int, left_out: Counter[int],
        monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[int] = set()
    for seed in range(117, 117 + runs):
        monkeypatch.setattr(sampling, "SEED", seed)
        left_out.clear()
        chosen = choose(VALUES)
        seen |= {*chosen}
        assert left_out == {runs: len(VALUES) - len(chosen)}
    assert seen == {*VALUES}
    monkeypatch.setattr(sampling, "LONG", True)
    assert choose(VALUES) == VALUES


def test_spread_that_is_the_same_in_each_run_then_the_rest_is_a_long_runs(left_out: Counter[int]) -> None:
    assert sampling.turn(VALUES, 2, 3) == [6, 7, 8]
    assert left_out == {0: 7}


def test_seeds_when_a_seed_is_asked_for_then_it_is_the_first_that_is_used(monkeypatch) -> None:
    monkeypatch.setattr(sampling, "SEED", 31)
    assert sampling.seeds(1) == [31]
    assert sampling.seeds(2) == [31, 32]


FOLDER = "tests/unit/conductor"


@pytest.mark.parametrize(("changed", "matrix", "whole"), [
    (f"{FOLDER}/actions/test_shelved_images.py", "actions/test_shelved_images", True),  # the matrix itself
    ("nova/conductor/actions/shelve.py", "actions/test_shelved_images", True),  # imported by it
    ("nova/conductor/actions/evacuate.py", "neutron/test_neutron_moves", True),  # imported by name
    ("nova/conductor/actions/evacuate.py", "neutron/test_neutron_moves", True),  # imported by that
    ("nova/conductor/actions/evacuate.py", "actions/test_shelved_images", False),
    ("nova/conductor/actions/evacuate.py", "actions/test_move_kills", True),  # names none: all
    ("nova/conductor/engine/runner.py", "actions/test_shelved_images", True),
    ("doc/contributing.rst", "actions/test_move_kills", False)])
def test_matrix_when_what_it_tries_changed_then_it_runs_whole(
        changed: str, matrix: str, whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (sampling.TOP / changed).exists()
    monkeypatch.setattr(sampling, "CHANGED", frozenset([changed]))
    sampling.touched.cache_clear()
    assert sampling.touched(sampling.TOP / FOLDER / f"{matrix}.py") is whole
    sampling.touched.cache_clear()
