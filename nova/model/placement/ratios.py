"""Options of the form ``NAME=NUMBER, ...``, such as weights and ratios by name."""

from __future__ import annotations

import math
from collections.abc import Iterable

from nova import errors


def ratios(option: str, given: Iterable[str], usual: float | None = None) -> dict[str, float]:
    """Return name -> number. ``usual`` is the number of names without one (None: they are errors). Raises
    daemon.SchedulerBadRatio, which names the option."""
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
