"""Turns of parts, and the table of when each passed last: ``tests/turns.csv``.

A part has cycles of several lengths, which go round independently. So a turn is a part, the length of a cycle (``of``),
and a ``place`` in it. The run whose seed modulo ``of`` is ``place`` has it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

FILE = "tests/turns.csv"
COLUMNS = ("part", "of", "turn", "number", "commit")
LIMIT = 300  # commits within which each turn must pass


class Place(NamedTuple):
    of: int
    place: int

    def __str__(self) -> str:
        return f"{self.place} of {self.of}"


class Turn(NamedTuple):
    part: str
    of: int
    place: int

    def __str__(self) -> str:
        return f"{self.part}, turn {self.place} of {self.of}"


class Passed(NamedTuple):
    """The commit, by its place in the history and by name. Of a turn that never passed: ``number`` is the commit at
    which it became known, and there is no name."""

    number: int
    commit: str = ""


Table = dict[Turn, Passed]


def places(of: int, seed: int, every: bool) -> tuple[Place, ...]:
    """Those of a cycle that a run with this seed has, or that one with everything has."""
    return tuple(Place(of, place) for place in (range(of) if every else [seed % of]))


def place_of(text: str) -> Place:
    """``5:1`` -> Place(5, 1)."""
    of, _, place = text.partition(":")
    return Place(int(of), int(place))


def read(path: Path) -> Table:
    """Empty where there is no file."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {Turn(row["part"], int(row["of"]), int(row["turn"])): Passed(int(row["number"]), row["commit"])
                for row in csv.DictReader(file)}


def write(path: Path, table: Table) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows((*turn, *table[turn]) for turn in sorted(table))


def stale(table: Mapping[Turn, Passed], number: int, within: int) -> list[Turn]:
    """Those that did not pass within so many commits before this one; what never passed is given as long."""
    return [turn for turn, passed in sorted(table.items()) if number - passed.number > within]


class Round(NamedTuple):
    """A run that has some of the turns that are wanted: those of these cycles."""

    seed: int
    cycles: tuple[int, ...]


def rounds(wanted: Iterable[Place], first: int) -> list[Round]:
    """Few runs that together have each turn once; seeds from ``first`` on."""
    left, found = set(wanted), []
    while left:
        seeds = range(first, first + max(one.of for one in left))
        seed = max(seeds, key=lambda seed: (sum(seed % one.of == one.place for one in left), -seed))
        had = {one for one in left if seed % one.of == one.place}
        found.append(Round(seed, tuple(sorted({one.of for one in had}))))
        left -= had
    return found
