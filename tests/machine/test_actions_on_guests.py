"""Pause, suspend, rescue, rebuild, snapshots, passwords, crash dumps of guests that really run: each case of
``action_cases.py`` is a test here."""

from __future__ import annotations

import pytest

from tests.machine import cases

pytestmark = pytest.mark.in_turn(3, 10)

CASES = "tests/machine/action_cases.py"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return cases.run(CASES, "eventlet", tmp_path_factory.mktemp("room") / "report.xml", timeout_s=1800)


@pytest.mark.parametrize("name", cases.names(CASES))
def test_action(results, name):
    cases.show(results, name)
