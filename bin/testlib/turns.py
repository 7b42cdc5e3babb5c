"""Turns of parts, and the table of the commits at which each passed last: ``tests/turns.csv``.

A part has cycles of several lengths, which advance independently. A turn is a part, the length of a cycle (``of``) and
a ``place`` in it. It belongs to the run whose seed modulo ``of`` is ``place``.
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
    """The commit of the last pass, by its number in the history and by name. For a turn that never passed, ``number``
    is the commit at which the turn was added, and the name is empty."""

    number: int
    commit: str = ""


Table = dict[Turn, Passed]


def places(of: int, seed: int, every: bool) -> tuple[Place, ...]:
    """Return the places of a cycle that belong to the run with this seed, or all of them for ``every``."""
    return tuple(Place(of, place) for place in (range(of) if every else [seed % of]))


def place_of(text: str) -> Place:
    """Parse a place: ``5:1`` is Place(5, 1)."""
    of, _, place = text.partition(":")
    return Place(int(of), int(place))


def read(path: Path) -> Table:
    """Read the table; empty if the file does not exist."""
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
    """Return the turns that did not pass within this number of commits. A turn that never passed is given the same
    number of commits since it was added."""
    return [turn for turn, passed in sorted(table.items()) if number - passed.number > within]


class Round(NamedTuple):
    """A run with some of the wanted turns: the ones in these cycles."""

    seed: int
    cycles: tuple[int, ...]


def rounds(wanted: Iterable[Place], first: int) -> list[Round]:
    """Return few runs that together have each turn one time; their seeds start at ``first``."""
    left, found = set(wanted), []
    while left:
        seeds = range(first, first + max(one.of for one in left))
        seed = max(seeds, key=lambda seed: (sum(seed % one.of == one.place for one in left), -seed))
        had = {one for one in left if seed % one.of == one.place}
        found.append(Round(seed, tuple(sorted({one.of for one in had}))))
        left -= had
    return found
