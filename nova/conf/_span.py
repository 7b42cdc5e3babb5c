"""Lengths of time as options: days, as upstream has them, or what is shorter."""

from __future__ import annotations

import datetime
import re

from oslo_config import types

UNITS = {"": "days", "d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
LONGEST = datetime.timedelta(days=36525)  # databases' dates do not go back much further
_FORM = re.compile(r"([0-9]{1,9})([dhms]?)", re.ASCII)


class TimeSpan(types.ConfigType):
    """A length of time: a number of days, or a number with the unit ``d``, ``h``, ``m`` or ``s``. Its value is a
    timedelta. ``positive``: 0 is refused."""

    def __init__(self, positive: bool = False) -> None:
        super().__init__(type_name="length of time")
        self._positive = positive

    def __call__(self, value: object) -> datetime.timedelta:
        """ValueError, with a sentence."""
        if isinstance(value, datetime.timedelta):
            return value
        match = _FORM.fullmatch(str(value).strip())
        found = match and datetime.timedelta(**{UNITS[match[2]]: int(match[1])})
        if found is None or found > LONGEST or self._positive and not found:
            raise ValueError(f"{value} is no length of time: a number of days, or a number with s, m, h or d"
                             f"{', above 0' if self._positive else ''}")
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TimeSpan) and self._positive == other._positive

    __hash__ = types.ConfigType.__hash__

    def _formatter(self, value: datetime.timedelta) -> str:
        """As it stands in a file."""
        seconds = int(value.total_seconds())
        size, unit = next((size, unit) for size, unit in ((86400, ""), (3600, "h"), (60, "m"), (1, "s"))
                          if seconds % size == 0)
        return f"{seconds // size}{unit}"


__all__ = ["TimeSpan"]
