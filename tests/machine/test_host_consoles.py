"""Consoles of real guests, in a room of their own: each case of ``console_cases.py`` is a test here."""

from __future__ import annotations

import pytest

from tests.machine import cases

pytestmark = pytest.mark.in_turn(6, 10)

CASES = "tests/machine/console_cases.py"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return cases.run(CASES, "threads", tmp_path_factory.mktemp("room") / "report.xml")


@pytest.mark.parametrize("name", cases.names(CASES))
def test_console(results, name):
    cases.show(results, name)
