"""Durations as options: a number of days, as in upstream, or a number with a unit."""

from __future__ import annotations

import datetime
import re

from oslo_config import types

UNITS = {"": "days", "d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
LONGEST = datetime.timedelta(days=36525)  # dates in databases do not reach much further back
_FORM = re.compile(r"([0-9]{1,9})([dhms]?)", re.ASCII)


class TimeSpan(types.ConfigType):
    """A duration: a number of days, or a number with the unit ``d``, ``h``, ``m`` or ``s``. Its value is a timedelta.
    ``positive``: 0 is rejected."""

    def __init__(self, positive: bool = False) -> None:
        super().__init__(type_name="length of time")
        self._positive = positive

    def __call__(self, value: object) -> datetime.timedelta:
        """Parse a value. Raises ValueError with a complete sentence."""
        if isinstance(value, datetime.timedelta):
            return value
        match = _FORM.fullmatch(str(value).strip())
        found = match and datetime.timedelta(**{UNITS[match[2]]: int(match[1])})
        if found is None or found > LONGEST or self._positive and not found:
            raise ValueError(f"{value} is not a duration: write a number of days, or a number with s, m, h or d"
                             f"{', above 0' if self._positive else ''}")
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TimeSpan) and self._positive == other._positive

    __hash__ = types.ConfigType.__hash__

    def _formatter(self, value: datetime.timedelta) -> str:
        """Return the value as written in a file."""
        seconds = int(value.total_seconds())
        size, unit = next((size, unit) for size, unit in ((86400, ""), (3600, "h"), (60, "m"), (1, "s"))
                          if seconds % size == 0)
        return f"{seconds // size}{unit}"


__all__ = ["TimeSpan"]
