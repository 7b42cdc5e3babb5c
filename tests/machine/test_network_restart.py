"""nova-network killed at each step of its work: guests' traffic flows on, and the next start ends what was begun."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator

import pytest

from tests import sampling
from tests.fakes.network import guest
from tests.machine.network_cases import Cloud, Namespace, eventually, obstacle

pytestmark = [pytest.mark.in_turn(1, 5),
              pytest.mark.skipif(obstacle() is not None, reason=str(obstacle()))]

STEPS = ("ipv4", "ipv6", "frames", "floating", "record", "link", "address", "join", "dhcp")
POINTS = [f"{step}:{when}" for step in STEPS for when in ("before", "after")]
MOST_LOST = 2  # pings


@pytest.fixture
def cloud(tmp_path, monkeypatch) -> Iterator[Cloud]:
    monkeypatch.setenv("NOVA_CONCURRENCY", "threads")
    made = Cloud(tmp_path)
    made.order(guest(3), version=1)
    try:
        yield made
    finally:
        made.remove()


@pytest.fixture
def outside(cloud) -> Iterator[Namespace]:
    made = cloud.outside()
    try:
        yield made
    finally:
        made.remove()


def state(cloud: Cloud) -> tuple[object, ...]:
    """All that guests depend on."""
    return (cloud.rules(), cloud.host("ip", "-o", "-4", "addr"), cloud.host("ip", "-4", "route"), cloud.dnsmasqs(),
            cloud.hosts_file())


def left(cloud: Cloud) -> set[str]:
    """Files of networks."""
    return {path.name for path in (cloud.state / "networks").glob("nova-*")} - {"nova-dhcpbridge"}


def test_killed_at_every_step_in_turn_the_guests_traffic_flows_on(cloud, outside):
    cloud.start()
    assert cloud.serve(guest(3), version=1) == "ok", cloud.log()
    cloud.plug()
    assert cloud.lease()["ip"] == "10.0.1.3"
    cloud.host.respond("192.0.2.9", 8775)
    outside.respond("192.0.2.200", 8080)
    assert cloud.get("http://192.0.2.200:8080/") == "192.0.2.9", "outside sees the host's address"
    before = state(cloud)
    with open(cloud.state / "ping.log", "w") as log:
        pinging = cloud.guest.start("ping", "-i", "0.1", "192.0.2.200", stdout=log)
    for point in POINTS:
        cloud.kill()
        cloud.start(dies_at=point)
        assert cloud.ended() == -signal.SIGKILL, f"it does not come to {point}"
        assert cloud.get("http://169.254.169.254/") == "10.0.1.3", point
    cloud.start()
    assert cloud.serve(guest(3), version=1) == "ok", cloud.log()
    pinging.send_signal(signal.SIGINT)
    pinging.wait(timeout=10)
    sent, received = map(int, re.search(r"(\d+) packets transmitted, (\d+) received",
                                        (cloud.state / "ping.log").read_text()).groups())
    assert sent > len(POINTS) and sent - received <= MOST_LOST  # the wire was watched at each of them
    assert state(cloud) == before and cloud.missing() == []


@pytest.mark.parametrize("point", sampling.drawn(["ipv4:before", *(f"{step}:after" for step in STEPS)], 4, every=5))
def test_killed_at_its_first_work_the_next_start_makes_the_rest(cloud, outside, point):
    cloud.start(dies_at=point)
    assert cloud.ended() == -signal.SIGKILL, f"it does not come to {point}"
    cloud.start()
    assert cloud.serve(guest(3), version=1) == "ok", cloud.log()
    eventually(lambda: len(cloud.dnsmasqs()) == 1, "there is one DHCP server")
    assert cloud.missing() == []
    cloud.plug()
    assert cloud.lease()["ip"] == "10.0.1.3"
    cloud.guest("ping", "-c", "1", "-W", "5", "192.0.2.200")
    cloud.kill()
    (cloud.state / "orders.json").write_bytes(b"[]")
    cloud.host("ip", "link", "set", "tap1", "nomaster")
    cloud.start()
    eventually(lambda: "br1" not in cloud.host("ip", "-o", "link") and not left(cloud), "what it made goes again")


@pytest.mark.parametrize("point", sampling.drawn([f"clear-{step}:{when}" for when in ("before", "after")
                                                  for step in ("dhcp", "ipv6", "record")], 2, every=5))
def test_killed_while_a_network_is_taken_down_the_next_start_ends_it(cloud, point):
    cloud.start()
    assert cloud.serve(guest(3), version=1) == "ok", cloud.log()
    cloud.kill()
    (cloud.state / "orders.json").write_bytes(b"[]")
    cloud.start(dies_at=point)
    assert cloud.ended() == -signal.SIGKILL, f"it does not come to {point}"
    cloud.start()
    eventually(lambda: "br1" not in cloud.host("ip", "-o", "link") and "10.0.1." not in cloud.rules()
               and cloud.dnsmasqs() == [] and not left(cloud), "nothing is left")
