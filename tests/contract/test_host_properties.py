"""The table of doc/security.rst: what holds in which security mode, and that each line has a test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.functional.host_properties import BOUNDED, PROPERTIES, UPSTREAM, Property

TOP = Path(__file__).parents[2]
PAGE = (TOP / "doc" / "security.rst").read_text()


def names() -> set[str]:
    """Of all tests, and of the files that have them."""
    found: set[str] = set()
    for path in (TOP / "tests").rglob("test_*.py"):
        found.add(path.stem)
        found |= set(re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE))
    return found


@pytest.fixture(scope="module")
def tests() -> set[str]:
    return names()


@pytest.mark.parametrize("row", PROPERTIES, ids=lambda row: row.said[:40])
def test_property_when_the_page_is_read_then_it_says_where_it_holds_and_a_test_shows_it(
        row: Property, tests: set[str]) -> None:
    found = re.search(rf"^{re.escape(row.said)} +(yes|no) +(yes|no)$", PAGE, re.MULTILINE)
    assert found, row.said
    assert [word == "yes" for word in found.groups()] == [mode in row.modes for mode in (BOUNDED, UPSTREAM)]
    for name in row.tests:
        assert any(one.startswith(name) for one in tests), name


def test_page_when_it_has_a_table_of_modes_then_it_has_no_other_rows() -> None:
    assert len(re.findall(r"^\S.* +(?:yes|no) +(?:yes|no)$", PAGE, re.MULTILINE)) == len(PROPERTIES)
