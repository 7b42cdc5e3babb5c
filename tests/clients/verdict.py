"""What a judge's results say: against the list of what is known not to pass, and why."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

NOT_RUN = "- "  # begins the line of a test that is not even tried
NONE_SAID = "no reason given"
PASSES = "passes now: take it out of {list}"


class Known(NamedTuple):
    """A line of a list: a test's name or a pattern of names (``*``), and the comment above it, which is the cause.
    ``tried``: it runs, and must not pass; one that takes minutes until it gives up is not tried."""

    pattern: str
    cause: str
    tried: bool

    def covers(self, name: str) -> bool:
        return fnmatch.fnmatchcase(name, self.pattern)


@dataclass(frozen=True)
class Verdict:
    """Names of tests, and why they did not pass. ``known``: did not pass, as the list says. ``untried``: lines of the
    list whose tests did not run; ``failed`` also has tests that pass though the list says otherwise."""

    passed: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    known: Mapping[str, str] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    untried: tuple[str, ...] = ()

    @property
    def counts(self) -> tuple[int, int, int]:
        """(passed, failed, skipped) as bin/test adds them up: what is known counts as skipped."""
        return len(self.passed), len(self.failed), len(self.known) + len(self.skipped) + len(self.untried)

    def line(self, judge: str, seconds: float) -> str:
        return (f"{judge}: {len(self.passed)} passed, {len(self.failed) + len(self.known)} failed "
                f"({len(self.known)} known), {len(self.skipped)} skipped, {len(self.untried)} not tried "
                f"in {seconds:.0f} s")


class Ran(NamedTuple):
    """One test. ``status``: success, skip, or anything else for a failure; ``reason``: why it did not pass."""

    name: str
    status: str
    reason: str = ""


def known(path: Path) -> list[Known]:
    """Of a list file: comments are the causes of the lines below them; an empty line ends a cause. ValueError for a
    line without a cause."""
    found: list[Known] = []
    cause, fresh = "", True
    for line in path.read_text().splitlines():
        text = line.strip()
        if text.startswith("#"):
            cause, fresh = (text[1:].strip() if fresh else f"{cause} {text[1:].strip()}"), False
            continue
        fresh = True
        if not text:
            cause = ""
            continue
        if not cause:
            raise ValueError(f"{path.name}: {text} has no comment above it that says why")
        found.append(Known(text.removeprefix(NOT_RUN), cause, not text.startswith(NOT_RUN)))
    return found


def verdict(results: Sequence[Ran], listed: Sequence[Known], list_name: str) -> Verdict:
    """Lines that are tried and covered no result failed: their tests have gone."""
    passed: list[str] = []
    failed: dict[str, str] = {}
    expected: dict[str, str] = {}
    skipped: dict[str, str] = {}
    used: set[Known] = set()
    for ran in results:
        line = next((one for one in listed if one.covers(ran.name)), None)
        if line:
            used.add(line)
        if ran.status == "success":
            if line:
                failed[ran.name] = PASSES.format(list=list_name)
            else:
                passed.append(ran.name)
        elif ran.status == "skip":
            skipped[ran.name] = ran.reason or NONE_SAID
        elif line:
            expected[ran.name] = line.cause
        else:
            failed[ran.name] = ran.reason or NONE_SAID
    for line in listed:
        if line.tried and line not in used:
            failed[line.pattern] = f"did not run, and {list_name} has it: is there such a test?"
    untried = tuple(line.pattern for line in listed if not line.tried)
    return Verdict(tuple(passed), failed, expected, skipped, untried)
