"""The turns of tests. One of ``of`` runs with successive seeds has a turn: the run whose seed modulo ``of`` is its
``place``. Cycles of different lengths advance independently.

A test has the turn of its marks, ``in_turn`` and ``one_in``. If its file draws a sample during its import, tests with
parameters from the sample also have the sample's turns. Without such tests, all tests of the file have them: they use
the sample in another way.
"""

from __future__ import annotations

import ast
import functools
import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

TOP = Path(__file__).resolve().parents[1]
#: Modules whose draws belong to their caller.
OWN = (str(TOP / "tests/sampling.py"), __file__)


class Turn(NamedTuple):
    of: int
    place: int

    def comes(self, seed: int) -> bool:
        return seed % self.of == self.place

    def __str__(self) -> str:
        return f"{self.of}:{self.place}"


class Draw(NamedTuple):
    """A draw. ``values``: the drawn parameters of tests; None: another kind of sample, for all tests of the file."""

    turns: frozenset[Turn]
    values: tuple[Any, ...] | None = None

    def is_of(self, item: pytest.Item) -> bool:
        """Return whether a test's parameters are from the sample."""
        given = list(item.callspec.params.values()) if hasattr(item, "callspec") else []
        parts = [getattr(value, "values", value) for value in self.values or ()]  # the values of a pytest.param
        return any(part in given or isinstance(part, (tuple, list)) and all(one in given for one in part)
                   for part in parts)


#: File -> its draws.
DRAWS: defaultdict[str, list[Draw]] = defaultdict(list)
#: All turns of collected tests, of this run and of others.
KNOWN: set[Turn] = set()
#: Stash keys of a test.
TURNS = pytest.StashKey[frozenset[Turn]]()
DUE = pytest.StashKey[Turn | None]()


def read(text: str) -> Turn:
    """Parse a turn from its ``str`` form."""
    of, _, place = text.partition(":")
    return Turn(int(of), int(place))


def joint(one: Turn | None, other: Turn) -> Turn | None:
    """Return the turn at which both come; None if there is none."""
    if one is None:
        return other
    of = math.lcm(one.of, other.of)
    return next((Turn(of, place) for place in range(other.place, of, other.of) if one.comes(place)), None)


def rotating(of: int, places: Iterable[int] | None = None, values: Iterable[Any] | None = None) -> int:
    """Record that the calling file draws another sample in each of ``of`` runs (or ``places``), and return ``of``."""
    if of > 1:
        turns = frozenset(Turn(of, place) for place in (range(of) if places is None else places))
        DRAWS[_caller()].append(Draw(turns, None if values is None else tuple(values)))
    return of


def also(file: str, found: Iterable[str]) -> None:
    """Record that a file has cases with these turns that another process collected."""
    DRAWS[file].append(Draw(frozenset(map(read, found))))


def checked(of: int) -> None:
    """Check a draw while tests run: raises AssertionError unless its file has called ``rotating(of)``, since its turns
    would be unknown otherwise."""
    file = _caller()
    assert of == 1 or any(one.of == of for draw in DRAWS[file] for one in draw.turns), (
        f"{file} draws one of {of} while a test runs: call tests.turns.rotating({of}) at its import")


def _caller() -> str:
    frame = sys._getframe(1)
    while frame.f_code.co_filename in OWN and frame.f_back:
        frame = frame.f_back
    return frame.f_code.co_filename


def assign(items: Iterable[pytest.Item], seed: int, every: bool = False) -> None:
    """Give each test its turns; the turns of the run with this seed (``every``: all) are reported with its result."""
    files: defaultdict[Path, list[pytest.Item]] = defaultdict(list)
    for item in items:
        files[item.path].append(item)
    for path, tests in files.items():
        drawn = _drawn(path, tests)
        for item, marked in zip(tests, _marked(tests, drawn), strict=True):
            bases: list[Turn | None] = [*marked] or [None]
            found = {*marked} | {joint(base, one) for base in bases for one in drawn[item].turns}
            turns = frozenset(one for one in found if one is not None)
            due = [one for one in marked if one.comes(seed)]
            item.stash[TURNS], item.stash[DUE] = turns, next(iter([*due, *marked]), None)
            KNOWN.update(turns)
            item.user_properties += [("turn", str(one)) for one in sorted(turns) if every or one.comes(seed)]


def without_neighbours(item: pytest.Item) -> Turn | None:
    """Return the turn of a test's file alone, without ``one_in``."""
    mark = item.get_closest_marker("in_turn")
    return Turn(mark.args[1], mark.args[0]) if mark else None


class Drawn(NamedTuple):
    """The turns of a test from the draws of its file and of files that it imports. ``cycle``: of the sample with its
    parameters; 1 if there is no such sample."""

    turns: set[Turn]
    cycle: int


def _marked(tests: Iterable[pytest.Item], drawn: Mapping[pytest.Item, Drawn]) -> list[list[Turn]]:
    """Return the turns from the marks of a file's tests. Tests with ``one_in`` have one place each.

    Only runs that have the file and draw these tests count: otherwise two cycles of the same length would always omit
    the same tests.
    """
    found: list[list[Turn]] = []
    seen = 0
    for item in tests:
        outer, mark = without_neighbours(item), item.get_closest_marker("one_in")
        if mark is None:
            found.append([outer] if outer else [])
            continue
        cycle = math.lcm(drawn[item].cycle, outer.of if outer else 1)
        every, inner = mark.args[0], seen % mark.args[0]
        seen += 1
        found.append([Turn(cycle * every, place + cycle * inner) for place in range(cycle)
                      if outer is None or outer.comes(place)])
    return found


def _drawn(path: Path, tests: list[pytest.Item]) -> dict[pytest.Item, Drawn]:
    found = {item: Drawn(set(), 1) for item in tests}
    others = frozenset(file for file in DRAWS if file != str(path))
    for file in (str(path), *_imported(path, others)):
        for draw in DRAWS.get(file, ()):
            takers = [item for item in tests if draw.is_of(item)]
            for item in takers or tests:
                turns, cycle = found[item]
                own = math.lcm(*(one.of for one in draw.turns)) if takers else 1
                found[item] = Drawn(turns | draw.turns, math.lcm(cycle, own))
    return found


@functools.cache
def _imported(path: Path, files: frozenset[str]) -> frozenset[str]:
    """Return the files from which a test's file imports."""
    text = path.read_text()
    near = {file for file in files if Path(file).stem in text}
    if not near:
        return frozenset()
    found: set[Path] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("tests"):
            place = TOP.joinpath(*node.module.split("."))
            found |= {place.with_suffix(".py"), *(place / f"{name.name}.py" for name in node.names)}
    return frozenset(near & {str(file) for file in found})
