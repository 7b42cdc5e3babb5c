"""Results of a run's turns, reported to the process that started pytest: passed turns, and failed tests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pytest

from tests import turns

PHASES = ("setup", "call", "teardown")


class Verdicts:
    """The results of all processes of a run, collected as they arrive."""

    def __init__(self) -> None:
        self.known: set[str] = set()
        self.passed: set[str] = set()
        self.failed: defaultdict[str, list[str]] = defaultdict(list)  # names of tests
        self.broken = False  # a process died: its other results are unknown
        self.complete = True  # all files were collected, none was skipped as a whole

    def add(self, report: pytest.TestReport) -> None:
        self.broken |= report.when not in PHASES
        for name, value in report.user_properties:
            if name == "turn" and report.failed:
                self.failed[str(value)].append(report.nodeid)
            elif name == "turn" and report.passed and report.when == "call":
                self.passed.add(str(value))

    def collected(self, output: dict[str, Any]) -> None:
        """Add a worker's report of its collection."""
        self.known.update(output["known"])
        self.complete &= output["complete"]

    def own(self) -> dict[str, Any]:
        """Return this process' report of its collection."""
        return {"known": sorted(map(str, turns.KNOWN)), "complete": self.complete}

    def shown(self) -> dict[str, Any]:
        return {**self.own(), "known": sorted(self.known.union(map(str, turns.KNOWN))), "passed": sorted(self.passed),
                "failed": dict(self.failed), "broken": self.broken}


def has_one_of(item: pytest.Item, cycles: Iterable[int], seed: int) -> bool:
    """Return whether the run with this seed is a turn of the test in one of these cycles."""
    return any(one.of in cycles and one.comes(seed) for one in item.stash[turns.TURNS])
