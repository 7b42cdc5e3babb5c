"""Options of the form ``NAME=NUMBER, ...``: how much each of some named things counts."""

from __future__ import annotations

import math
from collections.abc import Iterable

from nova import errors


def ratios(option: str, given: Iterable[str], usual: float | None = None) -> dict[str, float]:
    """Name -> number. ``usual`` is for names alone (None: they are mistakes). daemon.SchedulerBadRatio names the
    option."""
    found = {}
    for one in given:
        name, equals, text = (part.strip() for part in one.partition("="))
        number = usual if not equals else _number(text)
        if not name or number is None:
            raise errors.daemon.SchedulerBadRatio(option=option)
        found[name] = number
    return found


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
