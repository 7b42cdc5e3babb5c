"""Pause, suspend, rescue, rebuild, snapshots, passwords, crash dumps of guests that really run: each case of
``action_cases.py`` is a test here."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.machine import cases, room

ROOT = Path(__file__).parents[2]
CASES = "tests/machine/action_cases.py"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    if reason := room.unable():
        pytest.skip(f"no room for a libvirtd here: {reason}")
    cache = Path(os.environ.get("NOVA_TEST_CACHE") or Path.home() / ".cache/nova")
    guest = Path(os.environ.get("NOVA_TEST_GUEST") or cache / "tiny.qcow2")
    subprocess.run([ROOT / "bin/build-guest", "--output", guest, "--cache", cache / "build-guest"], check=True,
                   timeout=600)  # the network ends where the room begins
    return cases.run(CASES, "eventlet", tmp_path_factory.mktemp("room") / "report.xml", timeout_s=1800)


@pytest.mark.parametrize("name", cases.names(CASES))
def test_action(results, name):
    cases.show(results, name)
