"""Fault points: inert without the switch, and just one process is hit with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
SCRIPT = "from nova import faults; faults.reached('create', 'Build', 'before'); print('went on')"


def run(point: str | None) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "NOVA_FAULT_POINT"}
    return subprocess.run([sys.executable, "-c", SCRIPT], cwd=TOP, capture_output=True, text=True, timeout=60,
                          env=env | ({"NOVA_FAULT_POINT": point} if point is not None else {}), check=False)


@pytest.mark.parametrize("point", [None, "", "create:Build:after:kill", "delete:Build:before:kill", "@/no/such/file"])
def test_reached_when_another_point_or_none_is_named_then_nothing_happens(point):
    assert run(point).stdout == "went on\n"


def test_reached_when_its_point_is_named_then_the_process_is_killed():
    assert run("create:Build:before:kill").returncode == -signal.SIGKILL


def test_reached_when_a_file_names_the_point_then_the_first_process_takes_it(tmp_path):
    point = tmp_path / "point"
    point.write_text("create:Build:before:kill\n")
    assert run(f"@{point}").returncode == -signal.SIGKILL
    assert not point.exists()
    assert run(f"@{point}").stdout == "went on\n"
