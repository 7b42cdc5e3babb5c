"""Turns that passed on this machine: one line of JSON for each run of a part, outside of any checkout."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from testlib import turns
from testlib.turns import Passed, Place, Table, Turn

KEPT = 5_000  # lines


class Run(NamedTuple):
    """One run of a part. ``known``: all turns of the part. ``complete``: no file was skipped because the machine lacks
    a dependency."""

    part: str
    number: int
    commit: str
    passed: list[Place]
    known: list[Place]
    complete: bool


def append(path: Path, run: Run) -> None:
    """Append a run to the file. Raises OSError if it cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(run._asdict()) + "\n")


def read(path: Path, commits: set[str]) -> list[Run]:
    """Return the runs of these commits, oldest first. A truncated line is ignored."""
    found = []
    for line in path.read_text().splitlines()[-KEPT:] if path.exists() else ():
        try:
            said = json.loads(line)
        except ValueError:
            continue
        if said["commit"] in commits:
            listed = {name: [Place(*one) for one in said[name]] for name in ("passed", "known")}
            found.append(Run(**{**said, **listed}))
    return found


def merged(table: Table, runs: Iterable[Run]) -> Table:
    """Return the table with the later commits and the new turns of the runs. Turns that the newest complete run of a
    part does not have are removed."""
    found = dict(table)
    newest: dict[str, Run] = {}
    for run in sorted(runs, key=lambda run: run.number):
        for place in run.known:
            found.setdefault(Turn(run.part, *place), Passed(run.number))
        for place in run.passed:
            turn, passed = Turn(run.part, *place), Passed(run.number, run.commit)
            if not found.get(turn, passed).commit or found[turn].number <= run.number:
                found[turn] = passed
        if run.complete:
            newest[run.part] = run
    return {turn: passed for turn, passed in found.items()
            if turn.part not in newest or (turn.of, turn.place) in newest[turn.part].known}


def unknown(table: Table, part: str, known: Iterable[Place]) -> list[turns.Turn]:
    """Return the turns of a part that the table lacks."""
    return sorted({Turn(part, *place) for place in known} - set(table))
