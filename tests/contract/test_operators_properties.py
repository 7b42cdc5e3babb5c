"""Each complaint of operators has a property here with tests that fail when it breaks, or the part that brings it."""

from __future__ import annotations

import re

import pytest

from tests.contract.operators_properties import PROPERTIES
from tests.contract.proofs import built, problem
from tests.contract.rows import SHARED

IDS = sorted({one for proof in PROPERTIES.values() for one in proof.tests})
COMPLAINTS = SHARED.parent / "design" / "operators.md"


def test_complaints_when_they_are_listed_then_each_has_its_row() -> None:
    if not COMPLAINTS.exists():
        pytest.skip("no such list")
    assert sorted(PROPERTIES) == sorted(re.findall(r"^\| ([A-F]\d) \|", COMPLAINTS.read_text(), re.MULTILINE))


@pytest.mark.parametrize("complaint", PROPERTIES)
def test_property_when_no_test_is_named_then_a_reason_says_what_brings_it(complaint: str) -> None:
    proof = PROPERTIES[complaint]
    assert proof.property.endswith(".") and bool(proof.tests) is not proof.not_yet.endswith(".")
    assert bool(proof.not_yet) is bool(proof.absent) and built(proof) == []


@pytest.mark.parametrize("name", IDS)
def test_proof_when_it_is_named_then_it_is_a_test_that_runs(name: str) -> None:
    assert problem(name) == ""
