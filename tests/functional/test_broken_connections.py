"""Connections to the broker break at random, again and again: what is accepted ends, and no daemon needs a hand."""

from __future__ import annotations

import random
import threading
import time

import pytest

from tests import sampling
from tests.functional.backends import Backends, wait_until
from tests.functional.client import Refused
from tests.functional.cloud import Cloud, Plan
from tests.functional.links import Link

pytestmark = pytest.mark.in_turn(9, 10)

SHARE, PAUSE_S = 0.3, (0.2, 2.0)
RECOVERY_S = 20.0


def test_connections_when_they_break_at_random_then_what_is_accepted_ends_and_all_daemons_are_back(
        make_cloud, backends: Backends) -> None:
    seconds = 3600.0 if sampling.LONG else 20.0
    link, chance = Link(backends.broker.port), random.Random(sampling.SEED)
    cloud: Cloud = make_cloud(Plan(computes=2, conductors=2))
    cloud.broker_url = link.through(cloud.broker_url)
    cloud.start()
    processes = {name: daemon.process and daemon.process.pid for name, daemon in cloud.daemons.items()}
    accepted: list[str] = []
    stop = threading.Event()

    def ask() -> None:
        api = cloud.api()
        while not stop.wait(0.3):
            try:
                accepted.append(api.create(f"server{len(accepted)}")["id"])
                if len(accepted) > 20:  # the oldest goes
                    api.delete(accepted.pop(0))
            except Refused as refused:
                assert refused.status in (409, 503), refused
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    broken, until = 0, time.monotonic() + seconds
    try:
        while time.monotonic() < until:
            time.sleep(chance.uniform(*PAUSE_S))
            broken += link.break_some(chance, SHARE)
    finally:
        stop.set()
        asking.join(120)
    assert broken > seconds and accepted and not asking.is_alive()
    wait_until("all daemons are up", lambda: len(cloud.up()) >= 6, RECOVERY_S)
    servers = [cloud.api().settled(uuid, "ACTIVE", "ERROR", seconds=90) for uuid in accepted]
    assert all(server.get("fault") for server in servers if server["status"] == "ERROR"), servers
    assert cloud.api().boot("newest")["status"] == "ACTIVE"
    assert processes == {name: daemon.process and daemon.process.pid for name, daemon in cloud.daemons.items()}
    cloud.empty()
    assert "Every allocation belongs" in cloud.manage("placement", "audit")
    link.close()
