"""How much of a product of cases a run tries: a spread that is the same in every run, or with ``--long`` all of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

#: Set by tests/conftest.py before the tests are collected.
LONG = False


def examples(usual: int, long: int) -> int:
    """How many examples hypothesis draws."""
    return long if LONG else usual


def turn(values: Sequence[Any], number: int, few: int) -> list[Any]:
    """``few`` of the values for the case with this number; the next case has the next few, and so on in a ring."""
    if LONG or few >= len(values):
        return list(values)
    return [values[(number * few + step) % len(values)] for step in range(few)]
