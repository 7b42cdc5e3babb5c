"""The libvirt driver on a real libvirtd, in a room of its own: each case of ``libvirt_cases.py`` is a test here."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from nova.concurrency import SWITCH
from tests.machine import room

CASES = "tests/machine/libvirt_cases.py"
ROOT = Path(__file__).parents[2]


def _pytest(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", CASES, *arguments]


def _names() -> list[str]:
    listed = subprocess.run(_pytest("--collect-only"), cwd=ROOT, capture_output=True, text=True, check=False,
                            env={**os.environ, "PYTHONPATH": str(ROOT)})
    return [line.split("::", 1)[1] for line in listed.stdout.splitlines() if "::" in line] or ["collection"]


MODES = ("eventlet", "threads")  # as the daemons run by default, and by the switch


@pytest.fixture(scope="module")
def results_of(tmp_path_factory):
    """From a mode to: name of a case -> None, or (what it was: failure, error, skipped; its text)."""
    return functools.cache(lambda mode: _run(mode, tmp_path_factory.mktemp("room") / "report.xml"))


def _run(mode: str, report: Path) -> dict[str, tuple[str, str] | None]:
    reason = room.unable()
    if reason:
        pytest.skip(f"no room for a libvirtd here: {reason}")
    done = subprocess.run(room.command(*_pytest(f"--junitxml={report}")), cwd=ROOT, capture_output=True, text=True,
                          timeout=900, check=False, env={**os.environ, "PYTHONPATH": str(ROOT), SWITCH: mode})
    assert report.exists(), done.stdout + done.stderr
    found = {}
    for case in ET.parse(report).iter("testcase"):
        group = case.get("classname", "").rpartition(".libvirt_cases")[2].lstrip(".")
        name = "::".join(part for part in (group, case.get("name", "")) if part)
        bad = next((child for child in case if child.tag in ("failure", "error", "skipped")), None)
        found[name] = None if bad is None else (bad.tag, f"{bad.get('message')}\n{bad.text}")
    return found


@pytest.mark.parametrize("name", _names())
@pytest.mark.parametrize("mode", [MODES[0], pytest.param(MODES[1], marks=pytest.mark.long)])
def test_libvirt(results_of, mode, name):
    results = results_of(mode)
    assert name in results, f"was not run; there are {sorted(results)}"
    if (bad := results[name]) is not None:
        kind, text = bad
        if kind == "skipped":
            pytest.skip(text)
        pytest.fail(f"{kind}: {text}", pytrace=False)
