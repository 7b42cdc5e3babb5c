"""Dates of --before, as operators and cron jobs write them."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterator

import pytest

from nova.manage.dates import date_of


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("words", [
    "11/14/26", "11/14/2026", "2026/11/14", "20261114", "20261114000000", "2026-11-14", "2026-11-14 00:00",
    "14.11.2026", "2026-11-14T00:00:00Z", "2026.11.14", "Nov 14 2026", "14 November 2026", "14-Nov-2026",
    "Nov 14th, 2026", "the 14th of November 2026", "2026 Nov 14", "Nov 14 26", "Sat Nov 14 00:00:00 2026",
    "Sat Nov 14 00:00:00 UTC 2026", "November 14, 2026 12:00 AM", "Sat 14 Nov 2026 12:00:00 AM GMT",
    "Sat, 14 Nov 2026 01:00:00 +0100", "2026-11-13 17:00:00 -0700", "14 Nov 2026 02:00 GMT+02:00",
    "2026-11-14 00:00:00.123Z"])
def test_date_when_a_cron_job_writes_it_its_own_way_then_it_is_read(words: str) -> None:
    found = date_of(words)
    assert found is not None
    assert found.replace(microsecond=0) == datetime.datetime(2026, 11, 14, tzinfo=datetime.UTC)


@pytest.mark.parametrize(("words", "hour"), [
    ("Sat Nov 14 00:00:00 CET 2026", 23), ("Tue Jul 14 00:00:00 CEST 2026", 22)])
@pytest.mark.usefixtures("berlin")
def test_date_when_it_names_the_zone_of_this_machine_then_it_is_that_zones(words: str, hour: int) -> None:
    found = date_of(words)
    assert found is not None and found.astimezone(datetime.UTC).hour == hour


@pytest.mark.parametrize("words", [
    "", "yesterday", "now - 1 month", "noon", "14/11/26", "10.11.2026", "11/14", "2026", "Nov 2026", "13:00",
    "2026-13-01", "Nov 31 2026", "25:00 Nov 14 2026", "Nov 14 2026 13:00 PM", "99999999", "1 2 3 4", "-1 Nov 2026",
    "Nov 14 2026; x", "Nov Dec 14 2026", "Nov 14 126", "Sat Nov 14 00:00:00 XYZ 2026"])
def test_date_when_it_is_none_then_nothing_is_guessed(words: str) -> None:
    assert date_of(words) is None
