"""Which turn of a part passed when: the table, what runs add to it, and what is said of turns that no run had."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from testlib import history, passed, turning, turns
from testlib.covered import Covered
from testlib.parts import CYCLES
from testlib.passed import Run
from testlib.turns import Passed, Place, Turn
from tests.tempest import outcome

OLD, NEW = Passed(100, "a" * 12), Passed(200, "b" * 12)
FIRST, SECOND = Turn("unit", 2, 0), Turn("unit", 2, 1)


def test_table_when_written_then_it_is_sorted_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "turns.csv"
    table = {Turn("unit", 10, 0): OLD, SECOND: Passed(7), FIRST: NEW, Turn("fresh", 3, 1): OLD}
    turns.write(path, table)
    assert path.read_text().splitlines() == [
        "part,of,turn,number,commit", f"fresh,3,1,100,{OLD.commit}", f"unit,2,0,200,{NEW.commit}", "unit,2,1,7,",
        f"unit,10,0,100,{OLD.commit}"]
    assert turns.read(path) == table
    assert turns.read(tmp_path / "none") == {}


@pytest.mark.parametrize(("number", "found"), [(400, []), (401, [FIRST]), (501, [FIRST, SECOND])])
def test_turn_when_more_commits_passed_than_the_limit_then_it_is_stale(number: int, found: list[Turn]) -> None:
    assert turns.stale({FIRST: OLD, SECOND: Passed(200)}, number, 300) == found


def test_rounds_when_cycles_differ_then_few_runs_have_each_turn_once() -> None:
    wanted = {Place(5, place) for place in range(5)} | {Place(8, place) for place in range(8)} | {Place(15, 4)}
    found = turns.rounds(wanted, 1000)
    had = [Place(of, one.seed % of) for one in found for of in one.cycles]
    assert sorted(had) == sorted(wanted) and len(found) == 8
    assert turns.rounds([], 7) == []


def run(number: int, *done: int, known: int = 2, complete: bool = True) -> Run:
    return Run("unit", number, str(number) * 4, [Place(2, one) for one in done],
               [Place(2, one) for one in range(known)], complete)


def test_runs_when_merged_then_the_newest_pass_counts_and_a_new_turn_has_its_first_commit() -> None:
    found = passed.merged({FIRST: NEW}, [run(250, 0), run(150, 0)])
    assert found == {FIRST: Passed(250, "250" * 4), SECOND: Passed(150)}
    assert passed.merged(found, [run(100, 1)])[SECOND] == Passed(100, "100" * 4)  # it passed, if long ago
    assert passed.merged({FIRST: NEW}, [run(150, 0)])[FIRST] == NEW


@pytest.mark.parametrize(("complete", "stays"), [(True, False), (False, True)])
def test_turn_when_a_run_with_all_files_has_it_no_more_then_its_row_goes(complete: bool, stays: bool) -> None:
    table = {FIRST: OLD, Turn("unit", 9, 8): OLD, Turn("fresh", 9, 8): OLD}
    found = passed.merged(table, [run(150, 0, complete=complete)])
    assert (Turn("unit", 9, 8) in found) is stays and Turn("fresh", 9, 8) in found


def test_results_when_of_other_branches_or_cut_off_then_they_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "below" / "turns.jsonl"
    assert passed.read(path, {"100" * 4}) == []
    for one in (run(100, 0), run(200, 1)):
        passed.append(path, one)
    with path.open("a") as file:
        file.write('{"part": "un')
    assert passed.read(path, {"100" * 4}) == [run(100, 0)]


TOLD = {"known": ["2:0", "2:1"], "passed": ["2:0", "2:1"], "failed": {"2:1": ["a", "b"]}, "broken": False,
        "complete": True}


def test_turn_when_tests_of_it_failed_then_it_passed_if_each_did_so_at_its_second_try() -> None:
    covered = Covered()
    covered.add(TOLD)
    assert covered.passed() == [Place(2, 0)] and covered.known == {Place(2, 0), Place(2, 1)}
    covered.excuse(["a"])
    assert covered.passed() == [Place(2, 0)]
    covered.excuse(["b"])
    assert covered.passed() == [Place(2, 0), Place(2, 1)]


def test_turns_when_a_process_died_then_none_passed() -> None:
    covered = Covered()
    covered.add({**TOLD, "failed": {}})
    covered.add({})
    assert covered.passed() == [] and not covered.complete


def test_turn_of_a_whole_run_when_it_failed_then_it_did_not_pass_but_is_known() -> None:
    covered = Covered()
    covered.whole([Place(8, 3)], [])
    covered.whole([Place(5, 3)], None)
    assert covered.passed() == [Place(8, 3)] and len(covered.known) == 13


def test_cycles_of_tempest_then_they_are_those_that_it_goes_by() -> None:
    assert outcome.TURNS in CYCLES["tempest"] and 2 in CYCLES["tempest"]


class Checkout:
    """With so many commits."""

    def __init__(self, folder: Path, commits: int) -> None:
        self.top = folder / "checkout"
        (self.top / "tests").mkdir(parents=True)
        self.git("init", "-q")
        (self.top / "code").write_text("1")
        self.git("add", "code")
        for _ in range(commits):
            self.git("commit", "-q", "--allow-empty", "-m", "m")
        self.record = turning.Record(self.top, folder / "results")

    def git(self, *words: str) -> None:
        subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e@example.org", *words], cwd=self.top, check=True)


def covered(*failed: str) -> Covered:
    found = Covered()
    found.add({**TOLD, "failed": {one: ["a"] for one in failed}})
    return found


def test_record_when_a_run_passed_then_the_table_has_its_commit(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, 3)
    assert "lacks unit, turn 0 of 2; unit, turn 1 of 2" in checkout.record.strange("unit", covered())
    assert checkout.record.keep("unit", covered("2:1")) == "turns that passed: 0 of 2"
    checkout.record.record()
    assert turns.read(checkout.top / turns.FILE) == {FIRST: Passed(3, history.commit(checkout.top)), SECOND: Passed(3)}
    assert checkout.record.strange("unit", covered()) == ""
    assert checkout.record.wanted("unit", {Place(2, 0), Place(2, 1), Place(2, 2)}, 0) == {Place(2, 1), Place(2, 2)}


def test_record_when_files_differ_from_the_commits_then_nothing_is_kept(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, 1)
    (checkout.top / "code").write_text("2")
    assert "files differ" in checkout.record.keep("unit", covered())
    assert checkout.record.now() == {}


def test_check_when_a_turn_is_too_old_then_it_fails_and_says_what_to_run(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(turns, "LIMIT", 2)
    checkout = Checkout(tmp_path, 4)
    turns.write(checkout.record.path, {FIRST: Passed(1, "a" * 12), SECOND: Passed(2)})
    assert checkout.record.check() == 1
    said = capsys.readouterr().out
    assert "unit, turn 0 of 2: passed last at commit 1" in said and "bin/test turns unit" in said
    assert "turn 1 of 2" not in said
    turns.write(checkout.record.path, {FIRST: Passed(2, "a" * 12)})
    assert checkout.record.check() == 0


def test_check_when_the_history_is_cut_off_or_missing_then_it_says_so_and_passes(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkout = Checkout(tmp_path, 3)
    far = tmp_path / "far"
    subprocess.run(["git", "clone", "-q", "--depth=1", f"file://{checkout.top}", str(far)], check=True)
    for top in (far, tmp_path / "nothing"):
        (top / "tests").mkdir(parents=True)
        record = turning.Record(top, tmp_path / "results")
        turns.write(record.path, {FIRST: Passed(-1000)})
        assert record.check() == 0
        assert "not checked" in capsys.readouterr().out
        assert "not recorded" in record.keep("unit", covered())
