"""A host's uptime as clients take it apart."""

from __future__ import annotations

import datetime
import re

import pytest

from nova.model.host.hosts import HostUptime

NOW = datetime.datetime(2026, 3, 4, 5, 6, 7)
#: How the public command-line clients take the line apart.
CLIENTS = re.compile(r"(.+)\sup\s+(.+),\s+(.+)\susers?,\s+load average:\s+(.+)")


@pytest.mark.parametrize(("seconds", "users", "up", "logged_in"), [
    (-5, 0, "0 min", "0"), (59, 0, "0 min", "0"), (300, 1, "5 min", "1"), (3 * 3600 + 240, 2, "3:04", "2"),
    (86400 + 60, 0, "1 day, 1 min", "0"), (12 * 86400 + 13 * 3600, 0, "12 days, 13:00", "0")])
def test_line_when_read_as_clients_do_then_it_says_what_was_told(seconds: int, users: int, up: str, logged_in: str,
                                                                 ) -> None:
    uptime = HostUptime(booted_at=NOW - datetime.timedelta(seconds=seconds), users=users, load=(0.126, 1.0, 12.5))
    found = CLIENTS.fullmatch(uptime.line(NOW))
    assert found is not None
    clock, since, who, load = found.groups()
    assert (clock.strip(), " ".join(since.split()), who, load) == ("05:06:07", up, logged_in, "0.13, 1.00, 12.50")
