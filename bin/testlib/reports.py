"""Reports of pytest processes: JUnit reports, and the file that tests/conftest.py writes."""

from __future__ import annotations

import contextlib
import json
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple


class Count(NamedTuple):
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: tuple) -> Count:  # type: ignore[override]
        return Count(*[mine + theirs for mine, theirs in zip(self, other, strict=True)])


class Told(NamedTuple):
    """The report of tests/conftest.py. ``failed``: names of tests. ``left_out``: number of cases that were not run, by
    the number of runs in which all have their turn ("0": only a long run has them). ``turns``: see `testlib.covered`.
    """

    failed: list[str]
    left_out: Counter[str]
    turns: dict[str, Any]


def told(path: Path) -> Told:
    """Read the report; return an empty one if the process ended before it was written."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return Told([], Counter(), {})
    return Told(content["failed"], Counter(content["left_out"]), content["turns"])


def count_of(report: Path) -> Count:
    """Return the counts of a JUnit report; zeros if there is none."""
    try:
        suites = ET.parse(report).getroot().iter("testsuite")
    except (OSError, ET.ParseError):
        return Count()
    total = Count()
    for suite in suites:
        tests, bad, skipped = (int(suite.get(name, 0)) for name in ("tests", "failures", "skipped"))
        bad += int(suite.get("errors", 0))
        total += (tests - bad - skipped, bad, skipped)
    return total


def seconds_by_file(report: Path) -> Counter[str]:
    """Return the time of each file's tests, with their set-up; empty without a report."""
    found: Counter[str] = Counter()
    with contextlib.suppress(OSError, ET.ParseError):
        for case in ET.parse(report).getroot().iter("testcase"):
            module = [part for part in case.get("classname", "").split(".") if part.startswith("test_")]
            found[module[0] if module else "?"] += float(case.get("time", 0))
    return found


def in_words(left_out: Counter[str]) -> str:
    """Return one line about the cases that were not run; empty if there are none."""
    rotating = {int(runs): count for runs, count in left_out.items() if runs != "0" and count}
    words = []
    if rotating:
        words.append(f"{sum(rotating.values())} cases, all of which have their turn in {max(rotating)} runs "
                     "with successive seeds")
    if left_out["0"]:
        words.append(f"{left_out['0']} only in `bin/test long`")
    return f"not run: {'; '.join(words)}" if words else ""
