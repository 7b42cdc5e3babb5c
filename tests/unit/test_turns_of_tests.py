"""Which turns a test has, by its marks and by what its file draws."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import sampling, turns, turns_told
from tests.turns import Turn

OTHER = str(Path(__file__).with_name("test_sampling.py"))  # no draw of this file


class Item:
    """As much of a test as has to do with turns."""

    def __init__(self, *marks: pytest.MarkDecorator, path: str = __file__, **params: Any) -> None:
        self.path, self.stash, self.marks = Path(path), pytest.Stash(), marks
        self.user_properties: list[tuple[str, str]] = []
        if params:
            self.callspec = SimpleNamespace(params=params)

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return next((one.mark for one in self.marks if one.name == name), None)


@pytest.fixture
def drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests are being collected, and no file has drawn anything."""
    monkeypatch.setattr(turns, "DRAWS", defaultdict(list))
    monkeypatch.setattr(turns, "KNOWN", set())
    monkeypatch.setattr(sampling, "COLLECTED", False)
    monkeypatch.setattr(sampling, "LONG", False)
    monkeypatch.setattr(sampling, "SEED", 848)


def assigned(*items: Item, every: bool = False) -> list[set[Turn]]:
    turns.assign(items, 848, every)  # type: ignore[arg-type]
    return [set(item.stash[turns.TURNS]) for item in items]


IN_TURN, ONE_IN = pytest.mark.in_turn(3, 5), pytest.mark.one_in(2)


def test_marks_when_a_file_has_a_turn_then_its_neighbours_are_counted_in_the_runs_that_have_it(drawing: None) -> None:
    found = assigned(Item(IN_TURN), Item(IN_TURN, ONE_IN), Item(IN_TURN, ONE_IN), Item(IN_TURN, ONE_IN), Item())
    assert found == [{Turn(5, 3)}, {Turn(10, 3)}, {Turn(10, 8)}, {Turn(10, 3)}, set()]
    assert {Turn(5, 3), Turn(10, 3), Turn(10, 8)} == turns.KNOWN


def test_draw_when_a_test_takes_its_values_then_that_test_alone_has_its_turns(drawing: None) -> None:
    [value] = sampling.drawn(["a", "b", "c"], 1)
    found = assigned(Item(name=value), Item(name="z"), Item(), Item(path=OTHER, name=value))
    assert found == [{Turn(3, 0), Turn(3, 1), Turn(3, 2)}, set(), set(), set()]


def test_draw_when_its_values_are_several_parameters_then_the_test_that_has_them_is_found(drawing: None) -> None:
    [value] = sampling.one_in(2, [("x", 1), ("y", 2)])
    [param] = sampling.one_in(3, [pytest.param(name, 3) for name in "opq"])
    assert assigned(Item(a=value[0], b=value[1]), Item(a=value[0]), Item(c=param.values[0], d=3)) == [
        {Turn(2, 0), Turn(2, 1)}, set(), {Turn(3, place) for place in range(3)}]


def test_draw_when_no_test_takes_its_values_then_all_of_the_file_have_its_turns(drawing: None) -> None:
    sampling.drawn(["a", "b"], 1)
    assert assigned(Item(), Item()) == [{Turn(2, 0), Turn(2, 1)}] * 2


def test_draw_when_the_file_has_a_turn_then_only_what_comes_with_it_does(drawing: None) -> None:
    [value] = sampling.drawn(["a", "b"], 1, every=5)
    assert assigned(Item(IN_TURN, name=value)) == [{Turn(5, 3), Turn(10, 3), Turn(10, 8)}]


def test_neighbours_when_they_are_drawn_in_a_cycle_as_long_then_all_have_their_turn_in_its_square(
        drawing: None, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[int] = []
    for seed in range(700, 725):
        monkeypatch.setattr(sampling, "SEED", seed)
        monkeypatch.setattr(turns, "DRAWS", defaultdict(list))
        items = [Item(pytest.mark.one_in(5), number=number) for number in sampling.fifth(list(range(100)))]
        turns.assign(items, seed)  # type: ignore[arg-type]
        ran += [item.callspec.params["number"] for item in items if item.stash[turns.DUE].comes(seed)]
    assert sorted(ran) == list(range(100))
    assert {Turn(25, place) for place in range(25)} <= turns.KNOWN


@pytest.mark.parametrize(("one", "other", "both"), [
    (Turn(5, 4), Turn(4, 0), Turn(20, 4)), (Turn(5, 4), Turn(10, 9), Turn(10, 9)), (Turn(5, 4), Turn(10, 8), None),
    (None, Turn(3, 1), Turn(3, 1))])
def test_turns_when_both_must_come_then_the_joint_one_says_when(one: Turn | None, other: Turn, both: Turn | None,
                                                                ) -> None:
    assert turns.joint(one, other) == both


def test_results_when_told_then_they_have_the_runs_own_turns_and_a_long_run_has_all(drawing: None) -> None:
    item = Item(pytest.mark.in_turn(3, 5), ONE_IN)
    assigned(item)  # 848 is 8 modulo 10
    assert item.user_properties == []
    assigned(other := Item(pytest.mark.in_turn(3, 5)), long := Item(pytest.mark.in_turn(0, 5)))
    assert (other.user_properties, long.user_properties) == ([("turn", "5:3")], [])
    assigned(long, every=True)
    assert long.user_properties == [("turn", "5:0")]


def test_draw_when_tests_run_and_its_file_did_not_say_so_then_it_is_refused(drawing: None,
                                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    turns.rotating(4)
    monkeypatch.setattr(sampling, "COLLECTED", True)
    assert sampling.one_in(4, list(range(8))) == [0, 4]
    with pytest.raises(AssertionError, match="rotating"):
        sampling.one_in(3, list(range(8)))


def test_draw_when_its_turn_comes_again_then_it_is_the_same(drawing: None, monkeypatch: pytest.MonkeyPatch) -> None:
    values = list(range(10))
    for seed in range(30):
        found = []
        for same in (seed, seed + 3, seed + 300):
            monkeypatch.setattr(sampling, "SEED", same)
            found.append(sampling.drawn(values, 4))
        assert found[0] == found[1] == found[2]


def test_cycles_when_some_are_asked_for_then_a_test_is_chosen_if_one_of_them_has_it_now(drawing: None) -> None:
    first, second, always = Item(IN_TURN), Item(pytest.mark.in_turn(8, 10)), Item()
    assigned(first, second, always)
    for cycles, chosen in (([5], [True, False, False]), ([10], [False, True, False]), ([7], [False] * 3)):
        assert [turns_told.has_one_of(one, cycles, 848) for one in (first, second, always)] == chosen  # type: ignore[arg-type]
    assert not turns_told.has_one_of(first, [5], 849)  # type: ignore[arg-type]


def report(when: str, result: str, *found: str) -> Any:
    return SimpleNamespace(when=when, failed=result == "failed", passed=result == "passed", nodeid="a test",
                           user_properties=[("turn", one) for one in found])


def test_verdicts_when_tests_end_then_turns_passed_or_failed_and_a_dead_worker_breaks_them() -> None:
    verdicts = turns_told.Verdicts()
    for when in turns_told.PHASES:
        verdicts.add(report(when, "passed", "5:1", "10:1"))
    verdicts.add(report("setup", "passed", "5:2"))  # and it was skipped
    verdicts.add(report("teardown", "failed", "10:1"))
    shown = verdicts.shown()
    assert (shown["passed"], shown["failed"], shown["broken"]) == (["10:1", "5:1"], {"10:1": ["a test"]}, False)
    verdicts.add(report("???", "failed"))
    assert verdicts.shown()["broken"]
