"""Parser for dates as operators and cron jobs write them: ISO 8601, the output of date(1), a month's name and two
numbers.

Rows are removed by these dates, so the parser does not guess: a year is required, and if the order of two numbers is
ambiguous, the month is first, as in ``date +%D``.
"""

from __future__ import annotations

import calendar
import contextlib
import datetime
import re
import time
from collections.abc import Sequence
from typing import NamedTuple

TIME = re.compile(r"(?<!\d)(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,]\d+)?)?"
                  r"\s*(?P<half>[ap]\.?m\b\.?)?", re.IGNORECASE)
OFFSET = re.compile(r"(?<=[\sA-Za-z\d])(?P<sign>[+-])(?P<hours>0\d|1[0-4]):?(?P<minutes>\d\d)$")
WORD = re.compile(r"[A-Za-z]+|\d+")
ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th)\b", re.IGNORECASE)
MONTHS = {name[:length].lower(): number
          for length in (3, 9) for number, name in enumerate(calendar.month_name) if number}
MONTHS["sept"] = 9
DAYS = {name[:length].lower() for length in (2, 3, 4, 9) for name in calendar.day_name}
FILLERS = {"at", "of", "on", "t", "the"}
ZULU = {"utc", "gmt", "z"}
CENTURY, TURN = 2000, 69  # two-digit years: 69 to 99 are in the last century, as for strptime(3)


class _Zone(NamedTuple):
    """A time zone found in a text. ``rest``: the text without it. ``zone`` None: no zone is given."""

    rest: str
    zone: datetime.tzinfo | None


def date_of(words: str) -> datetime.datetime | None:
    """Return the date, with or without a time; UTC if no zone is given. None: not a date, or ambiguous."""
    text = " ".join(words.split())
    with contextlib.suppress(ValueError):
        found = datetime.datetime.fromisoformat(text)
        return found.replace(tzinfo=datetime.UTC) if found.tzinfo is None else found
    with contextlib.suppress(ValueError):
        return _written(text)
    return None


def _written(text: str) -> datetime.datetime | None:
    """Return the date of a text in another format than ISO 8601. Raises ValueError if a number is out of its range."""
    match = TIME.search(text)
    at = _time(match) if match else datetime.time()
    named = _zone(text if match else f"{text} ")
    rest = TIME.sub(" ", named.rest, count=1)
    day = _stamped(rest.strip()) if match is None and rest.strip().isdecimal() else _day(ORDINAL.sub("", rest))
    if day is None:
        return None
    found = datetime.datetime.combine(day, at) if not isinstance(day, datetime.datetime) else day
    return found.replace(tzinfo=named.zone or datetime.UTC)


def _time(match: re.Match[str]) -> datetime.time:
    hour = int(match["hour"])
    if half := (match["half"] or "").lower():
        if not 1 <= hour <= 12:
            raise ValueError("hour must be in 1..12")
        hour = hour % 12 + 12 * half.startswith("p")
    return datetime.time(hour, int(match["minute"]), int(match["second"] or 0))


def _zone(text: str) -> _Zone:
    """Find UTC, an offset, or the local zone by its name."""
    if match := OFFSET.search(text):
        minutes = int(match["hours"]) * 60 + int(match["minutes"])
        offset = datetime.timedelta(minutes=-minutes if match["sign"] == "-" else minutes)
        before = _zone(f"{text[:match.start()]} ")  # "GMT+0100" is +0100 in RFC 5322
        return _Zone(before.rest, datetime.timezone(offset))
    for word in WORD.findall(text):
        if word.lower() in ZULU:
            return _Zone(re.sub(rf"(?<![A-Za-z]){word}(?![A-Za-z])", " ", text), datetime.UTC)
    for is_summer, name in enumerate(time.tzname):
        if re.search(rf"(?<![A-Za-z]){re.escape(name)}(?![A-Za-z])", text):
            seconds = -(time.altzone if is_summer else time.timezone)
            return _Zone(text.replace(name, " "), datetime.timezone(datetime.timedelta(seconds=seconds)))
    return _Zone(text, None)


def _stamped(digits: str) -> datetime.datetime | None:
    """Return the date of a year, month, day and optional time without separators."""
    forms = {8: "%Y%m%d", 14: "%Y%m%d%H%M%S"}
    return datetime.datetime.strptime(digits, forms[len(digits)]) if len(digits) in forms else None


def _day(text: str) -> datetime.date | None:
    if not re.fullmatch(r"\s*[A-Za-z0-9][A-Za-z0-9\s,./-]*", text):
        return None
    words = [word for word in WORD.findall(text) if word.lower() not in DAYS | FILLERS]
    months = [MONTHS[word.lower()] for word in words if word.lower() in MONTHS]
    numbers = [word for word in words if word.isdecimal()]
    if len(months) + len(numbers) != len(words) or len(months) > 1 or len(words) != 3:
        return None
    if months:
        day, year = reversed(numbers) if len(numbers[0]) == 4 else numbers
        return datetime.date(_year(year), months[0], int(day))
    return _numbers(numbers, dotted="." in text)


def _numbers(numbers: Sequence[str], dotted: bool) -> datetime.date | None:
    """Return the date of three numbers: a four-digit year first, or a year last. A day comes before a month only if it
    cannot be a month."""
    one, two, three = numbers
    if len(one) == 4:
        return datetime.date(int(one), int(two), int(three))
    if int(one) > 12:
        return datetime.date(int(three), int(two), int(one)) if len(three) == 4 else None
    return None if dotted else datetime.date(_year(three), int(one), int(two))


def _year(digits: str) -> int:
    if len(digits) == 4:
        return int(digits)
    if len(digits) != 2:
        raise ValueError("year must have 2 or 4 digits")
    return int(digits) + CENTURY - 100 * (int(digits) >= TURN)
