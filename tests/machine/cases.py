"""Tests that run in a room: a file of cases is run there once, and each of its cases is shown as a test here."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from nova.concurrency import SWITCH
from tests import sampling, turns
from tests.machine import room

ROOT = Path(__file__).parents[2]

Results = dict[str, tuple[str, str] | None]


def _pytest(file: str, *arguments: str) -> list[str]:
    """With the same choice of cases as ours."""
    chosen = [f"--nova-seed={sampling.SEED}", *(["--long"] if sampling.LONG else []),
              *(["--in-turn"] if sampling.IN_TURN else [])]
    return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", file, *chosen, *arguments]


@functools.cache
def build_guest() -> None:
    """The guest's image and its parts, where cases look for them: the network ends where a room begins."""
    cache = Path(os.environ.get("NOVA_TEST_CACHE") or Path.home() / ".cache/nova")
    guest = Path(os.environ.get("NOVA_TEST_GUEST") or cache / "tiny.qcow2")
    outputs = {"--output": guest, "--kernel": guest.with_name("tiny-vmlinuz"),
               "--initrd": guest.with_name("tiny-initrd"), "--root": guest.with_name("tiny-root.qcow2")}
    words = [str(word) for flag, path in outputs.items() for word in (flag, path)]
    subprocess.run([str(ROOT / "bin/build-guest"), *words, "--cache", str(cache / "build-guest")], check=True,
                   timeout=600)


def names(file: str) -> list[str]:
    """Of the cases in ``file`` (a path below the root), whose turns are those of the file that asks."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder, "told")
        listed = subprocess.run(_pytest(file, "--collect-only", f"--told-to={told}"), cwd=ROOT, capture_output=True,
                                text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)})
        if told.exists():
            turns.also(sys._getframe(1).f_code.co_filename, json.loads(told.read_text())["turns"]["known"])
    return [line.split("::", 1)[1] for line in listed.stdout.splitlines() if "::" in line] or ["collection"]


def run(file: str, mode: str, report: Path, timeout_s: float = 900) -> Results:
    """Name of a case -> None, or (what it was: failure, error, skipped; its text). ``mode``: eventlet or threads."""
    if reason := room.unable():
        pytest.skip(f"no room for a libvirtd here: {reason}")
    build_guest()
    done = subprocess.run(room.command(*_pytest(file, f"--junitxml={report}")), cwd=ROOT, capture_output=True,
                          text=True, timeout=timeout_s, check=False,
                          env={**os.environ, "PYTHONPATH": str(ROOT), SWITCH: mode})
    assert report.exists(), done.stdout + done.stderr
    found: Results = {}
    module = Path(file).stem
    for case in ET.parse(report).iter("testcase"):
        group = case.get("classname", "").rpartition(f".{module}")[2].lstrip(".")
        name = "::".join(part for part in (group, case.get("name", "")) if part)
        bad = next((child for child in case if child.tag in ("failure", "error", "skipped")), None)
        found[name] = None if bad is None else (bad.tag, f"{bad.get('message')}\n{bad.text}")
    return found


def show(results: Results, name: str) -> None:
    """What became of the case, as this test's own end."""
    assert name in results, f"was not run; there are {sorted(results)}"
    if (bad := results[name]) is not None:
        kind, text = bad
        if kind == "skipped":
            pytest.skip(text)
        pytest.fail(f"{kind}: {text}", pytrace=False)
