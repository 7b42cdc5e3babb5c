"""What became of each wanted test, from the results of a run of tempest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

REASON_CHARS = 500
TURNS = 5  # runs that together have all tests
#: the exception at the end of a traceback: a line with its dotted name, and what follows
ERROR = re.compile(r"^[A-Za-z_][\w.]*(?::.*|$)(?:\n.*)*?(?=\n\S*Traceback|\nDuring |\Z)", re.MULTILINE)
#: tempest logs every request that a test makes: the last one's answer helps to see why the test failed
REQUEST = re.compile(r"Request \(.*?\): (?P<words>\d+ \w+ \S+)")


class Result(TypedDict):
    """One of tempest's: ``status`` is success, fail, skip, xfail, uxsuccess or inprogress."""

    id: str
    status: str
    details: dict[str, str]


@dataclass(frozen=True)
class Outcome:
    """Names of tests, and why those that did not pass did not."""

    passed: tuple[str, ...] = ()
    failed: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def counts(self) -> tuple[int, int, int]:
        return len(self.passed), len(self.failed), len(self.skipped)


def wanted(path: Path) -> list[str]:
    """Names in a list file: a test's, a class's or a module's a line, with or without [tags]; `#` begins a comment."""
    lines = (line.split("#")[0].split("[")[0].strip() for line in path.read_text().splitlines())
    return list(dict.fromkeys(line for line in lines if line))


def of_turn(names: Sequence[str], turn: int, of: int = TURNS) -> list[str]:
    """The tests of every fifth class: a class is set up once for all its tests."""
    classes = dict.fromkeys(name.rpartition(".")[0] for name in names)
    chosen = set(list(classes)[turn % of::of])
    return [name for name in names if name.rpartition(".")[0] in chosen]


def patterns(names: list[str]) -> str:
    """For stestr's list of regular expressions: those tests, and no other whose name only begins alike."""
    return "".join(f"^{re.escape(name)}(\\.|\\[|$)\n" for name in names)


def judge(results: Sequence[Result], names: list[str]) -> Outcome:
    """A test that was named and has no result has failed, or was skipped, with its class; or it does not exist."""
    passed: dict[str, str] = {}
    failed: dict[str, str] = {}
    skipped: dict[str, str] = {}
    classes: dict[str, Result] = {}
    for result in results:
        if fixture := re.fullmatch(r"(?:setUp|tearDown)Class \((.*)\)", result["id"]):
            classes[fixture[1]] = result
            continue
        kind = {"success": passed, "skip": skipped}.get(result["status"], failed)
        kind[result["id"].split("[")[0]] = reason(result)
    for name in names:
        if any(test == name or test.startswith(f"{name}.") for test in (*passed, *failed, *skipped)):
            continue
        whole = classes.get(name) or classes.get(name.rpartition(".")[0])
        kind = skipped if whole and whole["status"] == "skip" else failed
        kind[name] = reason(whole) if whole else "did not run: is there such a test?"
    for name, whole in classes.items():  # taken down badly: it left something behind, though its tests passed
        if whole["status"] == "fail" and not any(test.startswith(f"{name}.") for test in failed):
            failed[name] = reason(whole)
    return Outcome(tuple(passed), failed, skipped)


def reason(result: Result, chars: int | None = REASON_CHARS) -> str:
    """Why it did not pass, on one line: the exception at the end of its traceback, and the last request it made. The
    first so many characters of it."""
    details = result["details"]
    if result["status"] == "success":
        return ""
    if result["status"] == "skip":
        return details.get("reason", "no reason given").strip()
    trace = next((text for name, text in details.items() if name.startswith("traceback")), "")
    told = next(iter(ERROR.findall(trace)[-1:]), "")
    last = [match["words"] for text in details.values() for match in REQUEST.finditer(text)][-1:]
    words = f"{told or result['status']} {' '.join(f'[last request: {word}]' for word in last)}"
    return " ".join(words.split())[:chars]
