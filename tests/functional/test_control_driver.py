"""Servers of control daemons on a real broker: one that stops loses no call."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from typing import Any

import kombu
import msgspec
import oslo_messaging
import pytest
from oslo_config import cfg
from oslo_messaging._drivers import common

from nova import context, errors
from nova.conf import register
from nova.rpc import codec
from nova.rpc.interface import Contract, Timeout, call
from nova.rpc.transport import Bus, open_transport
from tests.functional import library_options

CALLERS, STOPS = 6, 10
LOOKS = 100


class DeskRPC(Contract):
    topic, version = "control-desk", "1.0"

    @call(timeout=Timeout.SHORT)
    def ask(self, number: int) -> int:
        """Asked once only: a call that is lost is not made again."""


class Desk:
    def ask(self, number: int) -> int:
        return number


def settings() -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    conf([])
    library_options.register(conf)
    return conf


def make_bus(url: str, host: str, quorum: bool = False) -> Bus:
    conf = settings()
    register(conf)
    open_transport(conf)  # declares the next one
    conf.set_override("transport_url", url)
    conf.set_override("hosts_transport_url", url)  # of bounded mode
    for option in ("rabbit_quorum_queue", "rabbit_transient_quorum_queue"):
        conf.set_override(option, quorum, group="oslo_messaging_rabbit")
    return Bus(conf, host)


@pytest.fixture
def buses(backends: Any) -> Iterator[list[Bus]]:
    url = backends.broker.url()
    made = [make_bus(url, host) for host in ("stays", "comes-and-goes", "asks")]
    yield made
    for bus in made:
        bus.close()


def test_calls_when_one_of_two_servers_stops_again_and_again_then_each_is_answered(buses: list[Bus]) -> None:
    stays, other, asking = buses
    steady = stays.server(DeskRPC, Desk(), 4)
    steady.start()
    desk, end = asking.client(DeskRPC), threading.Event()
    lost: list[str] = []
    answered = [0] * CALLERS

    def ask(number: int) -> None:
        while not end.is_set():
            try:
                assert desk.ask(number) == number
                answered[number] += 1
            except errors.NovaError as error:
                lost.append(error.message)
    callers = [threading.Thread(target=ask, args=(number,)) for number in range(CALLERS)]
    for caller in callers:
        caller.start()
    for _ in range(STOPS):
        server = other.server(DeskRPC, Desk(), 4)
        server.start()
        end.wait(0.3)
        other.stop([server], 10)
    end.set()
    for caller in callers:
        caller.join(30)
    stays.stop([steady], 10)
    assert lost == [], answered
    assert min(answered) > STOPS


def test_queues_when_the_broker_is_a_cluster_then_each_is_a_quorum_queue(backends: Any) -> None:
    url = backends.broker.url()
    serving, asking = (make_bus(url, host, quorum=True) for host in ("serves", "asks"))
    server = serving.server(DeskRPC, Desk(), 4)
    server.start()
    try:
        assert asking.client(DeskRPC).ask(7) == 7
        for queue in ("control-desk", "control-desk.serves"):
            with kombu.Connection(url.replace("rabbit://", "amqp://", 1)) as connection:
                connection.channel().queue_declare(queue, durable=True, auto_delete=False,
                                                   arguments={"x-queue-type": "quorum"})  # else PreconditionFailed
    finally:
        serving.stop([server], 5)
        for bus in (serving, asking):
            bus.close()


def probe(url: str) -> oslo_messaging.RPCClient:
    """As openstack-helm's health probe makes its client: by transport_url alone, and the exchange of all of nova."""
    conf = settings()
    transport = oslo_messaging.get_rpc_transport(conf, url=url)
    target = oslo_messaging.Target(exchange="nova", topic=DeskRPC.topic, server="stays")
    client = oslo_messaging.get_rpc_client(transport, target, timeout=20)
    return client.prepare(namespace="baseapi", version="1.1")


def test_ping_when_a_probe_sends_it_then_the_servers_that_it_names_answer_and_calls_go_on(buses: list[Bus]) -> None:
    server = buses[0].server(DeskRPC, Desk(), 4)
    server.start()
    try:
        asked = probe(buses[0].conf.transport_url)
        assert asked.call({}, "ping", arg="health") == {"service": DeskRPC.topic, "arg": "health"}
        assert asked.prepare(server=None).call({}, "ping", arg=1)["arg"] == 1
        with pytest.raises(oslo_messaging.MessagingTimeout):
            asked.prepare(server="another", timeout=2).call({}, "ping", arg="health")
        assert [buses[2].client(DeskRPC).ask(number) for number in range(20)] == list(range(20))
    finally:
        buses[0].stop([server], 10)


class Caller:
    """Speaks to the desk by messages alone, as a caller whose queue comes and goes."""

    def __init__(self, url: str) -> None:
        self._channel = kombu.Connection(url.replace("rabbit://", "amqp://")).channel()
        self._numbers = itertools.count()

    def ask(self, reply_to: str) -> None:
        number = next(self._numbers)
        body = codec.to_text(codec.pack(codec.CallMessage(
            context.internal(), msgspec.Raw(codec.pack({"number": number})))))
        message = {"method": "ask", "version": "1.0", "_unique_id": f"{reply_to}-{number}", "_msg_id": str(number),
                   "_reply_q": reply_to, "args": {"sender": "raw", "contract": DeskRPC.version, "body": body}}
        kombu.Producer(self._channel).publish(
            common.serialize_msg(message), exchange="nova-control-desk", routing_key="control-desk")

    def listen(self, queue: str) -> kombu.Queue:
        listened: Any = kombu.Queue(queue, channel=self._channel, durable=False, auto_delete=False)
        listened.declare()
        return listened


def answers(queue: Any, seconds: float) -> int:
    found, until = 0, time.monotonic() + seconds
    while time.monotonic() < until:
        found += queue.get(no_ack=True) is not None
        time.sleep(0.05)
    return found


def test_exchange_when_it_is_looked_for_beside_quick_heartbeats_then_no_answer_is_lost(backends: Any) -> None:
    """Daemons that start before any conductor look for its exchange before each call, while heartbeats are sent."""
    bus = make_bus(backends.broker.url(), "starts")
    bus.conf.set_override("heartbeat_rate", 15_000, group="oslo_messaging_rabbit")  # one each millisecond
    driver, found = bus.transport.driver, []

    def look() -> None:
        found.extend(driver.has_exchange("of-no-conductor") for _ in range(LOOKS))
    looking = [threading.Thread(target=look, daemon=True) for _ in range(3)]
    for thread in looking:
        thread.start()
    try:
        for thread in looking:
            thread.join(60)
        assert not any(thread.is_alive() for thread in looking), f"{len(found)} answers, and no more"
        assert found == [False] * 3 * LOOKS
    finally:
        bus.close()


def test_answer_when_its_queue_is_away_then_it_comes_late_and_no_worker_waits(buses: list[Bus]) -> None:
    server = buses[0].server(DeskRPC, Desk(), 2)  # a project has one of two workers
    server.start()
    assert buses[2].client(DeskRPC).ask(7) == 7
    raw = Caller(buses[0].conf.transport_url)
    here = raw.listen("reply_here")
    raw.ask("reply_later")
    raw.ask("reply_here")
    assert answers(here, 1.5) == 1
    assert answers(raw.listen("reply_later"), 3) == 1
    buses[0].stop([server], 10)


def test_answer_when_its_queue_was_away_for_long_then_the_next_answer_to_it_comes(
        buses: list[Bus], monkeypatch: pytest.MonkeyPatch) -> None:
    """The library drops all answers to that queue for a minute more: so hosts were mute after the broker's restart."""
    monkeypatch.setattr("nova.rpc.answers.LATE_S", 0.1)
    server = buses[0].server(DeskRPC, Desk(), 2)
    server.start()
    assert buses[2].client(DeskRPC).ask(7) == 7
    raw = Caller(buses[0].conf.transport_url)
    raw.ask("reply_again")
    time.sleep(1.5)
    again = raw.listen("reply_again")
    assert answers(again, 1) == 0, "it was dropped"
    raw.ask("reply_again")
    assert answers(again, 2) == 1
    buses[0].stop([server], 10)
