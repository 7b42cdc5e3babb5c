"""How much of a product of cases a run tries: a spread that is the same in every run (or, of what is slow, a few that
its seed chooses), or with ``--long`` all of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

#: Set by tests/conftest.py before the tests are collected.
LONG = False
#: The seed of the run, as given with ``--nova-seed``. Set in the same place.
SEED = 1
#: Whether files and cases with a turn have it by the seed. Set in the same place.
IN_TURN = False
#: How many cases this run leaves out, by the number of runs in which all have their turn; 0: only a long run has them.
LEFT_OUT: Counter[int] = Counter()


def examples(usual: int, long: int) -> int:
    """How many examples hypothesis draws."""
    return long if LONG else usual


def turn(values: Sequence[Any], number: int, few: int) -> list[Any]:
    """``few`` of the values for the case with this number; the next case has the next few, and so on in a ring."""
    chosen = _next(values, number, few)
    LEFT_OUT[0] += len(values) - len(chosen)
    return chosen


def drawn(values: Sequence[Any], few: int) -> list[Any]:
    """A few of what takes seconds each: a run with the next seed has the next few, so that all get their turn."""
    chosen = _next(values, SEED, few)
    LEFT_OUT[-(-len(values) // few)] += len(values) - len(chosen)
    return chosen


def seeds(few: int) -> list[int]:
    """Of what is drawn at random from a seed: the run's own seed first, and the next ones."""
    return [SEED + number for number in range(few)]


def third(values: Sequence[Any]) -> list[Any]:
    """A third of a long product whose every case another test tries on whole hosts."""
    return drawn(values, -(-len(values) // 3))


def one_in(every: int, values: Sequence[Any]) -> list[Any]:
    """Of so many neighbours in a product one each; a run with the next seed has the next ones."""
    chosen = list(values) if LONG else list(values[SEED % every::every])
    LEFT_OUT[every] += len(values) - len(chosen)
    return chosen


def _next(values: Sequence[Any], number: int, few: int) -> list[Any]:
    if LONG or few >= len(values):
        return list(values)
    return [values[(number * few + step) % len(values)] for step in range(few)]
