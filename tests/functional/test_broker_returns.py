"""The broker is away, and returns: daemons come back one after the other, and not all at the same moment."""

from __future__ import annotations

import time

import pytest

from tests.functional.backends import Backends, wait_until
from tests.functional.cloud import Cloud, Plan
from tests.functional.links import Link

pytestmark = pytest.mark.in_turn(6, 10)

AWAY_S = 6.0  # longer than the longest pause between two tries
BUCKET_S = 0.1
MOST = 0.25  # of the connections, within one bucket; with one delay for all it is a third and more


def crowd(moments: list[float], within_s: float) -> int:
    """How many connections the fullest span of so many seconds has."""
    return max(sum(begin <= other < begin + within_s for other in moments) for begin in moments)


def test_daemons_when_the_broker_returns_then_they_come_back_spread_over_time(make_cloud, backends: Backends) -> None:
    link = Link(backends.broker.port)
    cloud: Cloud = make_cloud(Plan(computes=6, conductors=2))
    cloud.broker_url = link.through(cloud.broker_url)
    cloud.start()
    daemons = len(cloud.up())
    link.cut()
    time.sleep(AWAY_S)
    before = len(link.accepted_at)
    link.repair()
    wait_until("all daemons are up", lambda: len(cloud.up()) == daemons, 60)
    assert cloud.api().boot("newest")["status"] == "ACTIVE"
    back = link.accepted_at[before:]
    first = [moment for moment in back if moment < back[0] + 5]  # later ones are made for the boot
    assert len(first) >= daemons
    assert crowd(first, BUCKET_S) <= MOST * len(first), sorted(moment - first[0] for moment in first)
    assert max(first) - min(first) > BUCKET_S
    link.close()
