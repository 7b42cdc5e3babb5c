"""Guests on Open vSwitch's userspace datapath: each case of ``ovs_cases.py`` is a test here."""

from __future__ import annotations

import functools

import pytest

from tests.machine import cases, open_vswitch

pytestmark = pytest.mark.in_turn(8, 10)

CASES = "tests/machine/ovs_cases.py"
MODES = ("eventlet", "threads")


@pytest.fixture(scope="module")
def results_of(tmp_path_factory):
    """From a mode to what became of each case."""
    if reason := open_vswitch.unable():
        pytest.skip(f"no Open vSwitch here: {reason}")
    return functools.cache(lambda mode: cases.run(CASES, mode, tmp_path_factory.mktemp("room") / "report.xml"))


@pytest.mark.parametrize("name", cases.names(CASES))
@pytest.mark.parametrize("mode", [MODES[0], pytest.param(MODES[1], marks=pytest.mark.long)])
def test_ovs_guest(results_of, mode, name):
    cases.show(results_of(mode), name)
