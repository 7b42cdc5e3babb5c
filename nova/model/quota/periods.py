"""Periods of usage audits: hours, days, months or years, with an offset (``instance_usage_audit_period``)."""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Callable
from typing import NamedTuple

from nova import errors
from nova.model.base import Time

PATTERN = r"^(hour|month|day|year)(@([0-9]+))?$"


def _hour(year: int, month: int, minute: int, at: Time) -> Time:
    return at.replace(minute=minute, second=0, microsecond=0)


def _day(year: int, month: int, hour: int, at: Time) -> Time:
    return datetime.datetime(at.year, at.month, at.day, hour)


def _month(year: int, month: int, day: int, at: Time) -> Time:
    return datetime.datetime(year, month, min(day, calendar.monthrange(year, month)[1]))


def _year(year: int, month: int, first: int, at: Time) -> Time:
    return datetime.datetime(year, first, 1)


class Unit(NamedTuple):
    """A unit of periods. ``begin`` returns the time within the unit of ``at`` at which a period with this offset
    begins."""

    least: int
    most: int
    begin: Callable[[int, int, int, Time], Time]
    before: Callable[[Time], Time]


UNITS: dict[str, Unit] = {
    "hour": Unit(0, 59, _hour, lambda at: at - datetime.timedelta(hours=1)),
    "day": Unit(0, 23, _day, lambda at: at - datetime.timedelta(days=1)),
    "month": Unit(1, 31, _month, lambda at: at.replace(day=1) - datetime.timedelta(days=1)),
    "year": Unit(1, 12, _year, lambda at: at.replace(year=at.year - 1, day=1)),
}


def parse(text: str) -> tuple[str, int]:
    """Parse a period: ``month@15`` -> ("month", 15); the default offset is the smallest. Raises
    quota.UsageBadPeriod."""
    found = re.match(PATTERN, text)
    if found is None:
        raise errors.quota.UsageBadPeriod()
    unit = UNITS[found[1]]
    offset = int(found[3][:9]) if found[3] else unit.least
    if not unit.least <= offset <= unit.most:
        raise errors.quota.UsageBadPeriod()
    return found[1], offset


def last_complete(text: str, now: Time) -> tuple[Time, Time]:
    """Return (beginning, end) of the last period that has ended by ``now``. Raises quota.UsageBadPeriod, and Invalid
    for times before the year 3."""
    if now.year < 3:
        raise errors.Invalid(f"Usage audits are not available for times before {now}.")
    name, offset = parse(text)
    unit = UNITS[name]

    def begin(at: Time) -> Time:
        return unit.begin(at.year, at.month, offset, at)
    at, end = now, begin(now)
    if end > now:
        at = unit.before(now)
        end = begin(at)
    return begin(unit.before(at)), end
