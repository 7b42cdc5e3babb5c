"""Each past security bug has tests that fail when its property breaks, or a reason why nothing of it exists yet."""

from __future__ import annotations

import ast

import pytest

from tests.contract import rows
from tests.contract.past_advisories import ADVISORIES
from tests.contract.past_notes import NOTES
from tests.contract.proofs import Proof, built, is_skipped, marks_all, problem

PROOFS = ADVISORIES | NOTES
IDS = sorted({one for proof in PROOFS.values() for one in proof.tests})


@rows.needs_contract
def test_bugs_when_they_are_on_the_shared_list_then_each_has_its_row_and_no_other_is_here() -> None:
    listed = [bug["id"] for bug in (rows.load("past_security_bugs.yaml") or pytest.skip("no such list"))["bugs"]]
    assert sorted(PROOFS) == sorted(listed)


@pytest.mark.parametrize("bug", PROOFS)
def test_bug_when_no_test_is_named_then_a_reason_says_what_brings_it(bug: str) -> None:
    proof = PROOFS[bug]
    assert proof.property.endswith(".") and (proof.tests or proof.not_yet.endswith("."))
    assert len(set(proof.tests)) == len(proof.tests)
    assert not proof.limit or proof.tests and proof.limit.endswith(".")


@pytest.mark.parametrize("bug", [bug for bug, proof in PROOFS.items() if proof.not_yet or proof.absent])
def test_bug_when_something_is_not_yet_there_then_no_name_of_the_tree_has_its_words(bug: str) -> None:
    assert PROOFS[bug].not_yet and PROOFS[bug].absent and built(PROOFS[bug]) == []


@pytest.mark.parametrize(("word", "is_there"), [
    ("objectstore/bundles", True), ("signedtokens", True), ("def_nothing_has_it", False)])
def test_word_when_a_path_a_class_or_none_has_it_then_it_is_there_or_not(word: str, is_there: bool) -> None:
    assert bool(built(Proof("Anything.", absent=(word,)))) is is_there


@pytest.mark.parametrize("name", IDS)
def test_proof_when_it_is_named_then_it_is_a_test_that_runs(name: str) -> None:
    assert problem(name) == ""


@pytest.mark.parametrize(("source", "skipped"), [
    ("def test_a(): pass", False),
    ("@pytest.mark.skip\ndef test_a(): pass", True),
    ("@pytest.mark.skip(reason='later')\ndef test_a(): pass", True),
    ("@pytest.mark.skipif(True, reason='later')\ndef test_a(): pass", True),
    ("@pytest.mark.skipif(os.geteuid() != 0, reason='root')\ndef test_a(): pass", False),
    ("@pytest.mark.xfail(strict=True)\ndef test_a(): pass", True),
    ("def test_a():\n    'About.'\n    pytest.skip('later')", True),
    ("def test_a(path):\n    if not path:\n        pytest.skip('not here')", False),
])
def test_skipped_when_nothing_lets_it_run_then_it_is_seen(source: str, skipped: bool) -> None:
    (node,) = ast.parse(source).body
    assert isinstance(node, ast.FunctionDef) and is_skipped(node) is skipped


@pytest.mark.parametrize(("source", "all_of_them"), [
    ("pytestmark = pytest.mark.skip(reason='later')", True),
    ("pytestmark = [pytest.mark.usefixtures('x'), pytest.mark.skip]", True),
    ("pytestmark = pytest.mark.skipif(not TOOL, reason='no tool')", False),
    ("pytest.skip('later', allow_module_level=True)", True),
    ("mark = pytest.mark.skip", False),
])
def test_module_when_all_of_it_is_skipped_then_it_is_seen(source: str, all_of_them: bool) -> None:
    assert marks_all(ast.parse(source).body[0]) is all_of_them


@pytest.mark.parametrize("name", ["unit/test_names.py::test_nothing_of_this_name", "unit/test_gone.py::test_a",
                                  "contract/rows.py::load", "unit/test_names.py"])
def test_proof_when_there_is_no_such_test_then_it_is_a_problem(name: str) -> None:
    assert problem(name)
