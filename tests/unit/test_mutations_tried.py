"""What ``bin/test mutations`` makes of a mutation, with a small checkout of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutations import copies
from tests.mutations.copies import Case, Copy, Ran
from tests.mutations.form import Mutation
from tests.mutations.trials import Trial, Verdict, judged, outcome

CODE = "def allowed(name):\n    return name == 'root'\n\n\ndef shown(name):\n    return name.upper()\n"
TESTED = """from thing import allowed, shown


def test_allowed_when_nobody_then_not():
    assert not allowed('nobody')


def test_allowed_when_root_then_so():
    assert allowed('root')


class TestShown:
    def test_shown(self):
        assert shown('a') == 'A'
"""
FILE = "unit/test_thing.py"
NOBODY, ROOT, SHOWN = (f"{FILE}::{name}" for name in (
    "test_allowed_when_nobody_then_not", "test_allowed_when_root_then_so", "TestShown::test_shown"))


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    top = tmp_path / "main"
    (top / "tests" / "unit").mkdir(parents=True)
    (top / "thing.py").write_text(CODE)
    (top / "tests" / FILE).write_text(TESTED)
    monkeypatch.setattr(copies, "TOP", top)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # half of the time
    return top


@pytest.mark.parametrize(("old", "new", "verdict", "why"), [
    ("return name == 'root'", "return True", Verdict.CAUGHT, ""),
    ("return name == 'root'", "return name != 'root'", Verdict.TOO_BROAD, "test_allowed_when_root_then_so failed"),
    ("def shown(name):\n    return name", "def shown(name):\n    return allowed(name) and name", Verdict.SURVIVED,
     f"{SHOWN} failed"),
    ("return name == 'root'", "return (", Verdict.BROKEN, "pytest ended with 2"),
    ("return name", "return True", Verdict.NO_APPLICATION, "2 times")])
def test_mutation_when_it_is_tried_then_the_verdict_is_told_and_the_checkout_is_as_before(
        checkout: Path, tmp_path: Path, old: str, new: str, verdict: Verdict, why: str) -> None:
    (tmp_path / "copy").mkdir()
    copy = Copy(tmp_path / "copy")
    found = outcome(Trial("ROW", Mutation("thing.py", old, new), (NOBODY,)), copy)
    assert (found.row, found.verdict) == ("ROW", verdict) and why in found.why
    assert (checkout / "thing.py").read_text() == (copy.top / "thing.py").read_text() == CODE


def test_neighbour_when_it_fails_but_once_then_it_is_not_the_mutations(checkout: Path, tmp_path: Path) -> None:
    (checkout / "tests" / FILE).write_text(TESTED.replace("assert allowed('root')", f"""import pathlib
    tried = pathlib.Path({str(tmp_path / 'tried')!r})
    assert tried.exists() or tried.touch()"""))
    (tmp_path / "copy").mkdir()
    found = outcome(Trial("ROW", Mutation("thing.py", "name == 'root'", "True"), (NOBODY,)), Copy(tmp_path / "copy"))
    assert found.verdict is Verdict.CAUGHT


def test_mutation_when_the_test_fails_anyway_then_it_is_not_caught(checkout: Path, tmp_path: Path) -> None:
    (checkout / "tests" / FILE).write_text(TESTED.replace("assert not allowed('nobody')", "assert allowed('nobody')"))
    (tmp_path / "copy").mkdir()
    found = outcome(Trial("ROW", Mutation("thing.py", ".upper()", ".title()"), (NOBODY,)), Copy(tmp_path / "copy"))
    assert (found.verdict, found.why) == (Verdict.UNSTEADY, f"fail without it, too: {NOBODY}")


@pytest.mark.parametrize(("failed", "skipped", "spreads", "verdict"), [
    ([NOBODY], [], [], Verdict.CAUGHT), ([NOBODY, ROOT], [], [ROOT], Verdict.CAUGHT),
    ([NOBODY], [], [ROOT], Verdict.TOO_BROAD), ([NOBODY, ROOT, SHOWN], [], [ROOT], Verdict.TOO_BROAD),
    ([SHOWN], [], [], Verdict.SURVIVED), ([], [], [], Verdict.SURVIVED), ([], [NOBODY], [], Verdict.SKIPPED)])
def test_verdict_when_a_mutation_spreads_then_only_as_it_says(failed: list[str], skipped: list[str],
                                                              spreads: list[str], verdict: Verdict) -> None:
    cases = [Case(name, "failed" if name in failed else "skipped" if name in skipped else "passed")
             for name in (NOBODY, ROOT, SHOWN)]
    asked = Trial("ROW", Mutation("thing.py", "a", "b", tuple(spreads), "It must."), (NOBODY,))
    assert judged(asked, Ran(cases))[0] is verdict


@pytest.mark.parametrize(("outcome_", "said", "verdict"), [
    ("failed", "NameError: name 'nothing' is not defined", Verdict.BROKEN), ("error", "E", Verdict.BROKEN),
    ("failed", "KeyError: 'a'", Verdict.CAUGHT)])
def test_verdict_when_the_mutation_is_no_code_then_it_is_broken(outcome_: str, said: str, verdict: Verdict) -> None:
    asked = Trial("ROW", Mutation("thing.py", "a", "b"), (NOBODY,))
    assert judged(asked, Ran([Case(NOBODY, outcome_, said)]))[0] is verdict
