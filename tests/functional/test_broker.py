"""The broker away: at start, and under load. Daemons wait, say so, and recover by themselves."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from tests.functional.backends import Broker, wait_until
from tests.functional.client import Refused
from tests.functional.cloud import Cloud, Plan

pytestmark = pytest.mark.in_turn(0, 10)

RECOVERY_S = 15.0


@pytest.fixture
def broker(backends) -> Iterator[Broker]:
    """The session's; it runs again when the test is over."""
    yield backends.broker
    if not (backends.broker.node and backends.broker.node.running):
        backends.broker.start()
        backends.broker.wait()


def test_start_when_the_broker_is_down_then_daemons_wait_and_say_so_and_then_work(make_cloud, broker: Broker) -> None:
    cloud: Cloud = make_cloud(Plan(computes=1)).prepare()
    broker.stop()
    for daemon in cloud.daemons.values():
        daemon.start()
    for name in cloud.daemons.keys() - {"imageproxy"}:  # which has nothing to do with the broker
        cloud.daemons[name].wait_log(r"WARNING .*the broker at 127.0.0.1:\d+ .* cannot be reached yet", 30)
    assert all(daemon.running for daemon in cloud.daemons.values())
    with pytest.raises(Refused) as refused:
        cloud.api("admin").get("/os-services")
    assert refused.value.status == 503 and "broker" in refused.value.message
    broker.start()
    broker.wait()
    cloud.wait_up()
    cloud.create_sample_data()
    cloud.api().boot("late")
    cloud.empty()
    cloud.stop()


@pytest.mark.parametrize("away_s", [2, 14], ids=["short", "longer than service_down_time"])
def test_restart_when_requests_are_under_way_then_none_is_lost_and_all_recovers(
        make_cloud, broker: Broker, away_s: float) -> None:
    cloud: Cloud = make_cloud(Plan(computes=2)).start()
    accepted: list[str] = []
    stop = threading.Event()

    def ask() -> None:
        api = cloud.api()
        while not stop.is_set():
            try:
                accepted.append(api.create(f"server{len(accepted)}")["id"])
            except Refused as refused:
                assert refused.status in (500, 503), refused
            time.sleep(0.15)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    try:
        wait_until("requests are accepted", lambda: len(accepted) > 5, 20)
        broker.stop()
        time.sleep(away_s)
        broker.start()
        broker.wait()
        back = time.monotonic()
        before = len(accepted)
        wait_until("requests are accepted again", lambda: len(accepted) > before + 2, RECOVERY_S)
    finally:
        stop.set()
        asking.join(60)
    wait_until("all daemons are up", lambda: len(cloud.up()) >= 5, RECOVERY_S)
    newest = cloud.api().boot("newest")
    assert time.monotonic() - back < 2 * RECOVERY_S
    servers = [cloud.api().settled(uuid, seconds=60) for uuid in [*accepted, newest["id"]]]
    assert [server["fault"] for server in servers if server["status"] != "ACTIVE"] == []
    cloud.empty()
