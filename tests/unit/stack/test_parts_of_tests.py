"""What `bin/test` is made of: which process has which files, in which mode, and what a part may cost."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from testlib import budgets, reports, shares
from testlib.parts import GREEN_NATIVE_IN, GREEN_WORKERS, PARTS, Part
from testlib.shares import GREEN, NATIVE

TOP = Path(__file__).resolve().parents[3]
UNIT = PARTS["unit"]


def test_files_of_the_unit_part_when_shared_then_each_has_one_process_but_for_the_sample() -> None:
    every = {str(path.relative_to(TOP)) for folder in UNIT.folders for path in (TOP / folder).rglob("test_*.py")}
    found = shares.shares_of(UNIT, TOP, 5, long=False)
    assert [one.mode for one in found] == [NATIVE] * (UNIT.workers + 2) + [GREEN] * (GREEN_WORKERS + 1)
    natively, green = files_of(found, NATIVE), files_of(found, GREEN)
    assert {*natively, *green} == every and len({*natively}) == len(natively) and len({*green}) == len(green)
    both = {*natively} & {*green}
    assert len(both) in (len(green) // GREEN_NATIVE_IN, len(green) // GREEN_NATIVE_IN + 1)


def test_files_of_the_core_when_shared_then_their_processes_have_no_others_but_for_the_sample() -> None:
    found = shares.shares_of(UNIT, TOP, 5, long=False)
    core = {file for one in found if one.core for file in one.files}
    assert all(map(shares.is_of_core, core))
    every = {str(path.relative_to(TOP)) for path in (TOP / "tests/unit").rglob("test_*.py")}
    assert core == {*filter(shares.is_of_core, every)} and len(core) > len(every) / 2


def files_of(found: list[shares.Share], mode: str) -> list[str]:
    return [file for one in found if one.mode == mode for file in one.files]


def test_green_files_when_seeds_follow_each_other_then_all_have_run_natively() -> None:
    green = {*files_of(shares.shares_of(UNIT, TOP, 0, long=False), GREEN)}
    seen: set[str] = set()
    for seed in range(100, 100 + GREEN_NATIVE_IN):
        seen |= {*files_of(shares.shares_of(UNIT, TOP, seed, long=False), NATIVE)}
    assert green <= seen
    assert green <= {*files_of(shares.shares_of(UNIT, TOP, 1, long=True), NATIVE)}


def test_green_places_when_looked_for_then_they_are_there() -> None:
    assert [place for place in UNIT.green if not (TOP / place).exists()] == []


def test_part_with_files_beside_when_shared_then_those_have_their_own_process(tmp_path: Path) -> None:
    for name in ("a", "b", "c", "d"):
        (tmp_path / f"test_{name}.py").touch()
    part = Part((".",), (), beside=(("test_c.py", "test_gone.py"), ("test_d.py",)))
    assert [one.files for one in shares.shares_of(part, tmp_path, 1, False)] == [["test_a.py", "test_b.py"],
                                                                                ["test_c.py"], ["test_d.py"]]


@pytest.mark.parametrize("part", [name for name, part in PARTS.items() if part.beside])
def test_files_beside_when_looked_for_then_they_are_there_once(part: str) -> None:
    files = [file for group in PARTS[part].beside for file in group]
    assert len({*files}) == len(files) and not [file for file in files if not (TOP / file).exists()]


def test_seed_when_there_is_a_history_then_its_length_else_one(tmp_path: Path) -> None:
    assert shares.seed_of(tmp_path) == 1
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@example.org", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q"], check=True)
    for _ in range(3):
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "m"], check=True)
    assert shares.seed_of(tmp_path) == 3
    far = tmp_path / "far"
    subprocess.run([*git[:-2], "clone", "-q", "--depth=1", f"file://{tmp_path}", str(far)], check=True)
    assert shares.seed_of(far) > 20_000  # days: its history is cut off


@pytest.mark.parametrize(("used", "slower", "kept", "said"), [
    (100.0, 1.0, True, False), (124.0, 1.0, True, False), (126.0, 1.0, True, True), (201.0, 1.0, False, True),
    (240.0, 2.0, True, False), (260.0, 2.0, True, True), (401.0, 2.0, False, True)])
def test_budget_when_a_part_uses_a_quarter_more_then_it_is_said_and_twice_as_much_fails(
        used: float, slower: float, kept: bool, said: bool) -> None:
    answer, line = budgets.verdict("unit", used, 100.0, slower)
    assert answer is kept and line.startswith("-- unit:") and ("BUDGETS_S" in line) is said


def test_what_a_process_told_when_it_died_before_then_nothing(tmp_path: Path) -> None:
    path = tmp_path / "told"
    assert reports.told(path) == ([], {}, {})
    path.write_text(json.dumps({"failed": ["x"], "left_out": {"3": 2}, "turns": {"known": ["3:1"]}}))
    assert reports.told(path) == (["x"], {"3": 2}, {"known": ["3:1"]})


def test_words_when_something_is_left_out_then_they_say_how_much_and_how_long() -> None:
    assert reports.in_words(Counter()) == ""
    assert reports.in_words(Counter({"3": 5, "10": 2, "0": 7})) == (
        "not run: 7 cases, all of which have their turn in 10 runs with successive seeds; 7 only in `bin/test long`")
    assert reports.in_words(Counter({"0": 7})) == "not run: 7 only in `bin/test long`"


def test_change_when_the_branch_left_main_then_all_since_then_else_the_last_commit(tmp_path: Path) -> None:
    assert shares.changed_in(tmp_path) == []
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@example.org", "-C", str(tmp_path)]

    def commit(name: str) -> None:
        (tmp_path / name).write_text(name)
        subprocess.run([*git, "add", name], check=True)
        subprocess.run([*git, "commit", "-q", "-m", name], check=True)

    subprocess.run([*git, "init", "-q"], check=True)
    for name in ("a", "b"):
        commit(name)
    assert shares.changed_in(tmp_path) == ["b"]
    subprocess.run([*git, "update-ref", "refs/remotes/origin/main", "HEAD"], check=True)
    assert shares.changed_in(tmp_path) == ["b"]
    for name in ("c", "d"):
        commit(name)
    (tmp_path / "a").write_text("not committed")
    assert shares.changed_in(tmp_path) == ["a", "c", "d"]
