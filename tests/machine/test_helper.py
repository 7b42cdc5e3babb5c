"""The libvirt driver as an ordinary user, with the helper: each case of ``helper_cases.py`` is a test here."""

from __future__ import annotations

import functools

import pytest

from tests.machine import cases

CASES = "tests/machine/helper_cases.py"
MODES = ("eventlet", "threads")  # as the daemons run by default, and by the switch


@pytest.fixture(scope="module")
def results_of(tmp_path_factory):
    """From a mode to what became of each case."""
    return functools.cache(lambda mode: cases.run(CASES, mode, tmp_path_factory.mktemp("room") / "report.xml"))


@pytest.mark.parametrize("name", cases.names(CASES))
@pytest.mark.parametrize("mode", [MODES[0], pytest.param(MODES[1], marks=pytest.mark.long)])
def test_helper(results_of, mode, name):
    cases.show(results_of(mode), name)
