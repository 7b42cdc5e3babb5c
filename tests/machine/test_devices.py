"""Devices and firmware of real guests, in a room of their own: each case of ``device_cases.py`` is a test here."""

from __future__ import annotations

import pytest

from tests.machine import cases

pytestmark = pytest.mark.in_turn(4, 5)

CASES = "tests/machine/device_cases.py"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return cases.run(CASES, "threads", tmp_path_factory.mktemp("room") / "report.xml", timeout_s=1800)


@pytest.mark.parametrize("name", cases.names(CASES))
def test_device(results, name):
    cases.show(results, name)
