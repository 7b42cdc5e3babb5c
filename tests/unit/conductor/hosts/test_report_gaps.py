"""After a time in which nobody was heard of, hosts are not down before they could report; a dead one is found."""

from __future__ import annotations

import threading

import pytest
import sqlalchemy as sa

from nova import errors
from nova.conductor.hosts.registration import ServiceRegistry
from nova.db.models.cell import services
from nova.db.sql.types import later
from nova.model.host.hosts import HostStates
from nova.model.host.services import Heartbeat, Registration, ServiceQuery
from tests.fakes.small_cloud import SmallCloud

COMPUTE, NETWORK = "nova-compute", "nova-network"


def aged(cloud: SmallCloud, **seconds: int) -> ServiceRegistry:
    """A conductor that begins now; these compute hosts were seen so long ago, nova-network's just now."""
    for host, age in seconds.items():
        cloud.write("cell", sa.update(services).where(services.c.host == host).values(last_seen_at=later(-age)))
    cloud.scheduler.calls.clear()
    return ServiceRegistry(cloud.deps, lambda: cloud.clock_s)


def up(cloud: SmallCloud) -> dict[str, bool]:
    return {one.host: one.up for one in cloud.control.list_services(ServiceQuery(binary=COMPUTE))}


def beat(daemons: ServiceRegistry, host: str) -> None:
    daemons.heartbeat(Heartbeat(host=host, binary=COMPUTE))
    daemons.flush()


@pytest.fixture
def three(cloud: SmallCloud) -> SmallCloud:
    cloud.add_compute("c")
    return cloud


def test_hosts_when_one_is_heard_of_after_a_silence_of_all_then_those_that_were_alive_are_up_and_told(
        three: SmallCloud) -> None:
    daemons = aged(three, a=600, b=610, c=800)
    assert up(three) == {"a": False, "b": False, "c": False}
    beat(daemons, "a")
    assert up(three) == {"a": True, "b": True, "c": False}  # c was down when the silence began
    message = dict(three.scheduler.received[-1].alive)
    assert set(message) == {"a", "b"} and 40 < (message["a"] - message["b"]).total_seconds() < 50


def test_host_when_it_died_in_the_silence_then_it_is_down_after_half_of_the_time(three: SmallCloud) -> None:
    daemons = aged(three, a=600, b=610, c=800)
    beat(daemons, "a")
    seen = three.rows("cell", sa.select(services.c.last_seen_at, later(-45).label("half")).where(
        services.c.host == "b", services.c.binary == COMPUTE))[0]
    assert abs((seen.last_seen_at - seen.half).total_seconds()) < 3
    three.clock_s += 1000
    three.write("cell", sa.update(services).where(services.c.host == "b").values(last_seen_at=later(-91)))
    beat(daemons, "a")  # this was no silence of all: a was heard of
    assert up(three)["b"] is False


class Away:
    def update_hosts(self, _states: HostStates) -> None:
        raise errors.Unavailable("the broker does not answer")


def silent(cloud: SmallCloud, daemons: ServiceRegistry, reached: bool) -> dict[str, bool]:
    """Who is up while all are silent, after a cast of this conductor that reached the broker, or not."""
    there = cloud.deps.scheduler
    cloud.deps.scheduler = there if reached else Away()
    daemons.register(Registration(host="ctl", binary="nova-conductor", topic="conductor"))
    daemons.heartbeat(Heartbeat(host="ctl", binary="nova-conductor"))
    daemons.flush()
    cloud.deps.scheduler = there
    daemons.bridge_report_gap()
    every = cloud.control.list_services(ServiceQuery())
    return {f"{one.host} {one.binary}": one.up for one in every if one.binary in (COMPUTE, NETWORK)}


def all_silent(cloud: SmallCloud) -> ServiceRegistry:
    daemons = aged(cloud, a=600, b=610, c=800)
    network = sa.update(services).where(services.c.binary == NETWORK)
    cloud.write("cell", network.values(last_seen_at=later(-605)))
    return daemons


def test_hosts_when_the_broker_is_away_then_those_that_were_alive_are_up_until_it_is_back(three: SmallCloud) -> None:
    daemons = all_silent(three)
    for _again in range(2):
        found = silent(three, daemons, reached=False)
        assert [name for name, up in found.items() if not up] == [f"c {COMPUTE}"] and len(found) > 3
        three.write("cell", sa.update(services).where(services.c.host != "c", services.c.last_seen_at > later(-300))
                    .values(last_seen_at=later(-80)))
    assert silent(three, daemons, reached=True)[f"a {COMPUTE}"]  # it had half of the time
    three.write("cell", sa.update(services).values(last_seen_at=later(-91)))
    assert True not in silent(three, daemons, reached=True).values()


def test_hosts_when_one_is_heard_of_then_the_silence_of_the_others_is_theirs(three: SmallCloud) -> None:
    daemons = all_silent(three)
    three.write("cell", sa.update(services).where(services.c.host == "b").values(last_seen_at=later(-20)))
    found = silent(three, daemons, reached=False)
    assert [name for name, up in found.items() if up] == [f"b {COMPUTE}"]


def test_hosts_when_a_cast_hangs_then_the_broker_counts_as_away(three: SmallCloud, monkeypatch) -> None:
    daemons = all_silent(three)
    assert True not in silent(three, daemons, reached=True).values()
    hanging, goes = threading.Event(), threading.Event()

    def hang(*_args: object) -> bool:
        hanging.set()
        return goes.wait(20)
    monkeypatch.setattr(three.deps.feed, "alive", hang)
    daemons.heartbeat(Heartbeat(host="ctl", binary="nova-conductor"))
    thread = threading.Thread(target=daemons.flush)
    thread.start()
    assert hanging.wait(20)
    daemons.bridge_report_gap()
    assert not up(three)["a"]
    three.clock_s += 3
    daemons.bridge_report_gap()
    assert up(three) == {"a": True, "b": True, "c": False}
    goes.set()
    thread.join(20)


def test_host_when_others_are_heard_of_all_the_time_then_it_is_not_excused(three: SmallCloud) -> None:
    daemons = aged(three, a=20, b=100)
    beat(daemons, "a")
    assert up(three) == {"a": True, "b": False, "c": True}


def test_hosts_when_one_registers_after_the_silence_then_it_ends_too(three: SmallCloud) -> None:
    daemons = aged(three, a=600, b=610, c=620)
    ids = three.rows("cell", sa.select(services.c.host_id).where(services.c.host == "a"))
    daemons.register(Registration(host="a", binary=COMPUTE, topic="compute", host_id=ids[0].host_id))
    assert up(three) == {"a": True, "b": True, "c": True}
    assert {host for message in three.scheduler.received for host, _seen in message.alive} == {"a", "b", "c"}


def test_silence_when_the_transaction_fails_then_the_next_one_ends_it(three: SmallCloud, monkeypatch) -> None:
    from nova.db.sql.engine import DatabaseUnavailable

    def away(_work: object) -> None:
        raise DatabaseUnavailable(reason="restarts")
    daemons = aged(three, a=600, b=610, c=800)
    daemons.heartbeat(Heartbeat(host="a", binary=COMPUTE))
    with monkeypatch.context() as patched, pytest.raises(errors.Unavailable):
        patched.setattr(three.cell, "transact", away)
        daemons.flush()
    daemons.flush()
    assert up(three)["b"]
