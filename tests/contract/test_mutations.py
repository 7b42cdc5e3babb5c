"""The mutations of past security bugs fit the table of the bugs, and the source as it is (they are tried by ``bin/test
mutations``)."""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from tests.contract.past_advisories import ADVISORIES
from tests.contract.past_notes import NOTES
from tests.contract.proofs import TESTS, problem
from tests.mutations import MUTATIONS

PROOFS = ADVISORIES | NOTES
PLACES = ("nova/", "etc/", "bin/")


def test_rows_when_they_have_tests_then_each_has_a_mutation_and_no_other_has_one() -> None:
    assert sorted(MUTATIONS) == sorted(row for row, proof in PROOFS.items() if proof.tests)


@pytest.mark.parametrize("row", MUTATIONS)
def test_mutation_when_it_is_to_be_made_then_its_old_text_is_there_once_and_the_new_one_is_code(row: str) -> None:
    mutation = MUTATIONS[row]
    text = (TESTS.parent / mutation.file).read_text()
    assert mutation.file.startswith(PLACES) and mutation.problem(text) == ""
    if mutation.file.endswith(".py"):
        ast.parse(mutation.made(text))


def test_mutations_when_one_spreads_then_it_names_tests_beside_the_rows_and_says_why() -> None:
    for row, mutation in MUTATIONS.items():
        files = {name.partition("::")[0] for name in PROOFS[row].tests}
        assert bool(mutation.spreads) is mutation.why.endswith(".")
        for name in mutation.spreads:
            assert problem(name) == "" and name.partition("::")[0] in files and name not in PROOFS[row].tests


def test_mutations_then_no_two_rows_have_the_same() -> None:
    counts = Counter((one.file, one.old, one.new) for one in MUTATIONS.values())
    assert [place for place, count in counts.items() if count > 1] == []
