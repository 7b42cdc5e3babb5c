"""The libvirt driver on a real libvirtd, in a room of its own: each case of ``libvirt_cases.py`` is a test here."""

from __future__ import annotations

import functools

import pytest

from tests.machine import cases

CASES = "tests/machine/libvirt_cases.py"
MODES = ("eventlet", "threads")  # as the daemons run by default, and by the switch


@pytest.fixture(scope="module")
def results_of(tmp_path_factory):
    """From a mode to what became of each case."""
    return functools.cache(lambda mode: cases.run(CASES, mode, tmp_path_factory.mktemp("room") / "report.xml"))


@pytest.mark.parametrize("name", cases.names(CASES))
@pytest.mark.parametrize("mode", [MODES[0], pytest.param(MODES[1], marks=pytest.mark.long)])
def test_libvirt(results_of, mode, name):
    cases.show(results_of(mode), name)
