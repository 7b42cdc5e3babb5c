"""Samples of products of cases: the same spread in every run (or, for slow cases, a few that the seed selects); with
``--long``, all cases."""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests import turns

TOP = Path(__file__).resolve().parents[1]
#: Workflows of operations, and the engine that runs them.
STORIES = ("nova/conductor/actions/", "nova/conductor/steps/")
MACHINERY = tuple(f"nova/conductor/engine/{name}.py" for name in ("workflow", "runner", "journal"))
#: Set by tests/conftest.py before the tests are collected.
LONG = False
#: The seed of the run, as given with ``--nova-seed``. Set in the same place.
SEED = 1
#: True if the seed selects files and cases with a turn. Set in the same place.
IN_TURN = False
#: Files that the change under test touches, as paths within the checkout. Set in the same place.
CHANGED: frozenset[str] = frozenset()
#: True after the collection of tests: later draws cannot give a turn to a test. Set in the same place.
COLLECTED = False
#: Number of cases that this run omits, by the number of runs in which all have their turn; 0: only long runs have them.
LEFT_OUT: Counter[int] = Counter()


def examples(usual: int, long: int) -> int:
    """Return the number of examples that hypothesis draws."""
    return long if LONG else usual


def turn(values: Sequence[Any], number: int, few: int) -> list[Any]:
    """Return ``few`` of the values for the case with this number; the next case has the next few, in a ring."""
    chosen = _next(values, number, few)
    LEFT_OUT[0] += len(values) - len(chosen)
    return chosen


def drawn(values: Sequence[Any], few: int, every: int = 1) -> list[Any]:
    """Return a few of the values, for cases that take seconds each: the next seed has the next few, so that all get
    their turn, and each turn has the same few.

    ``every``: one in ``every`` runs has the file; the next of these has the next few.
    """
    runs = -(-len(values) // few)
    chosen = _next(values, SEED // every % max(runs, 1), few)
    LEFT_OUT[runs * every] += len(values) - len(chosen)
    return _rotating(runs * every, chosen)


def upstream_turn() -> bool:
    """Return whether this run's clouds are in upstream security mode: in every second run, and in every second turn of
    a file that one in ten runs has."""
    return (SEED + SEED // 10) % 2 == 1


def cells(several: int) -> int:
    """Return the number of cells of this run's clouds that may have several: in every third run, and in every third
    turn of a file that one in ten runs has; otherwise 0, for a cloud without further cells."""
    return several if (SEED + SEED // 10) % 3 == 1 else 0


def seeds(few: int) -> list[int]:
    """Return seeds for random draws: the run's own seed first, and then the next ones."""
    return [SEED + number for number in range(few)]


def fifth(values: Sequence[Any]) -> list[Any]:
    """Return a fifth of a long product, all of whose cases another test runs on complete hosts."""
    return drawn(values, -(-len(values) // 5))


def one_in(every: int, values: Sequence[Any]) -> list[Any]:
    """Return one in ``every`` adjacent values of a product; the next seed has the next ones."""
    chosen = list(values) if LONG else list(values[SEED % every::every])
    LEFT_OUT[every] += len(values) - len(chosen)
    return _rotating(every, chosen)


def _rotating(of: int, chosen: list[Any]) -> list[Any]:
    """Record a draw that rotates over ``of`` runs: the tests of the drawing file get their turns from it."""
    if COLLECTED:
        turns.checked(of)
    else:
        turns.rotating(of, values=chosen)
    return chosen


def _next(values: Sequence[Any], number: int, few: int) -> list[Any]:
    if LONG or few >= len(values):
        return list(values)
    return [values[(number * few + step) % len(values)] for step in range(few)]


@functools.cache
def touched(test: Path) -> bool:
    """Return whether the change is related to a matrix: to its file, a module that it imports, the workflow engine, or
    a workflow or step that it names; if it names none, to any of them."""
    stories = [path for path in _imported(test) if _is_story(path)]
    for path in stories:
        stories += [one for one in _imported(TOP / path) if _is_story(one) and one not in stories]
    subjects = {str(test.relative_to(TOP)), *_imported(test), *stories}
    if "conductor" not in test.relative_to(TOP).parts:
        return not CHANGED.isdisjoint(subjects)
    return not CHANGED.isdisjoint(subjects.union(MACHINERY)) or not stories and any(map(_is_story, CHANGED))


def _is_story(path: str) -> bool:
    return path.startswith(STORIES)


@functools.cache
def _imported(path: Path) -> tuple[str, ...]:
    """Return the modules of `nova` that a file imports; re-exported names are resolved to their module."""
    found: dict[str, None] = {}
    for node in _imports(path):
        place = TOP.joinpath(*str(node.module).split("."))
        of_package = {name.asname or name.name: inner.module for inner in _imports(place / "__init__.py")
                      for name in inner.names}
        for name in node.names:
            inner = place / f"{name.name}.py"
            module = str(of_package.get(name.name) or node.module).replace(".", "/")
            found[str(inner.relative_to(TOP)) if inner.exists() else f"{module}.py"] = None
            found[f"{module}/__init__.py"] = None
    return tuple(one for one in found if (TOP / one).exists())


def _imports(path: Path) -> list[ast.ImportFrom]:
    if not path.exists():
        return []
    return [node for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("nova.")]
