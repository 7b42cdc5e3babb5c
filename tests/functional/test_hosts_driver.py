"""The driver of the hosts' vhost on a real broker: what it needs of oslo.messaging, and what the broker refuses."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from typing import Any

import kombu
import msgspec
import pytest
from amqp.exceptions import AccessRefused, NotAllowed, NotFound, PreconditionFailed
from oslo_config import cfg
from oslo_messaging._drivers.impl_rabbit import rabbit_opts

from nova import context, errors
from nova.conf import base
from nova.rpc import codec
from nova.rpc.bus import Serving
from nova.rpc.conductor_listener import PREFETCH
from nova.rpc.hosts_driver import BOUNDS, HostsDriver
from nova.rpc.interface import Contract, Timeout, call, cast
from nova.rpc.passive_publishing import WAIT_S
from nova.rpc.proofs import AuthenticatedMethod, Proofs
from nova.rpc.transport import HostsBus
from tests.functional import library_options
from tests.functional.backends import hosts_url, wait_until

pytestmark = pytest.mark.in_turn(7, 10)

TRANSIENT, PERSISTENT = 1, 2  # delivery modes of AMQP
SECRETS = {"host1": "1" * 64, "host2": "2" * 64}


class DeskRPC(Contract):
    topic, version, with_hosts = "conductor-host", "1.0", True

    @call()
    def ask(self, host: str) -> str:
        """A call of a host."""

    @cast()
    def tell(self, host: str) -> None:
        """One without an answer."""


class ManRPC(Contract):
    topic, version, addressed_by, with_hosts = "compute", "1.0", "host", True

    @call(timeout=Timeout.SHORT)
    def order(self, host: str) -> str:
        """An order to a host."""


class Desk:
    def __init__(self) -> None:
        self.told: list[str] = []

    def ask(self, host: str) -> str:
        return f"answer to {host}"

    def tell(self, host: str) -> None:
        self.told.append(host)


class Man:
    def order(self, host: str) -> str:
        return f"done by {host}"


class Place:
    """A conductor and two hosts in this process, with the connections and rights of real ones. ``quorum``: as where
    the broker is a cluster."""

    def __init__(self, url: str, quorum: bool = False) -> None:
        self.url, self.desk, self._ends = url, Desk(), []  # type: str, Desk, list[Callable[[], None]]
        self.quorum = quorum
        self._folder = tempfile.TemporaryDirectory()
        self.conductor = self.bus("ctl", hosts_url(url), lambda host, introducing=False: [SECRETS[host]], True)
        self.conductor_server = self._serve(self.conductor, DeskRPC, self.desk)
        self.serve(sorted(SECRETS))
        self.hosts = {host: self.bus(host, hosts_url(url, host), self.own(host), False) for host in SECRETS}
        for bus in self.hosts.values():
            self._serve(bus, ManRPC, Man())

    def serve(self, hosts: Iterable[str]) -> None:
        """Take calls of these hosts alone, and wait until it is so."""
        self.conductor.serve_hosts(hosts)
        wait_until("the hosts have their queues", lambda: all(map(self.has_queue, hosts)), 5, 0.05)

    def has_queue(self, host: str) -> bool:
        with kombu.Connection(hosts_url(self.url).replace("rabbit://", "amqp://", 1)) as connection:
            try:
                connection.default_channel.queue_declare(f"calls.{host}", passive=True)
            except NotFound:
                return False
        return True

    @staticmethod
    def own(host: str) -> Any:
        return lambda _host, introducing=False: [SECRETS[host]]

    def bus(self, host: str, url: str, keys: Any, conductor: bool) -> HostsBus:
        conf = cfg.ConfigOpts()
        conf([])
        conf.register_opts(base.OPTS)
        library_options.register(conf)
        conf.register_opts(rabbit_opts, group="oslo_messaging_rabbit")
        for option in ("rabbit_quorum_queue", "rabbit_transient_quorum_queue"):
            conf.set_override(option, self.quorum, group="oslo_messaging_rabbit")
        conf.set_override("hosts_transport_url", url)
        conf.set_override("state_path", self._folder.name)
        bus = HostsBus(conf, host, keys, conductor)
        self._ends.append(bus.close)
        return bus

    def _serve(self, bus: HostsBus, contract: type[Contract], man: object) -> Serving:
        server = bus.server(contract, man, 4)
        server.start()
        self._ends.append(lambda: bus.stop([server], 5))
        return server

    def close(self) -> None:
        for end in reversed(self._ends):
            end()
        self._folder.cleanup()


@pytest.fixture(scope="module")
def place(backends: Any) -> Iterator[Place]:
    made = Place(backends.broker.url())
    yield made
    made.close()


def test_calls_orders_and_answers_when_each_side_has_its_rights_alone_then_they_come_through(place: Place) -> None:
    for host, bus in place.hosts.items():
        assert bus.client(DeskRPC).ask(host) == f"answer to {host}"
        bus.client(DeskRPC).tell(host)
        assert place.conductor.client(ManRPC).order(host) == f"done by {host}"
    wait_until("casts came", lambda: set(place.desk.told) == set(SECRETS), 5)


def test_calls_of_a_host_when_more_come_at_once_than_a_conductor_takes_then_none_waits_for_the_next_message(
        place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    bus = place.hosts["host1"]
    monkeypatch.setattr(bus, "timeout_s", int(WAIT_S) - 2)
    asked = bus.client(DeskRPC)
    with futures.ThreadPoolExecutor(2 * PREFETCH + 1) as pool:  # the last one comes when others are settled
        answers = list(pool.map(lambda _: asked.ask("host1"), range(2 * PREFETCH + 1)))
    assert answers == ["answer to host1"] * len(answers)


def test_messages_of_hosts_when_a_reply_is_awaited_then_the_broker_does_not_write_them_to_its_disk(place: Place
                                                                                                  ) -> None:
    channel = Raw(hosts_url(place.url)).channel()
    channel.queue_declare("copies", auto_delete=False)
    channel.queue_bind("copies", "nova-conductor-host", "calls.host1")
    client = place.hosts["host1"].client(DeskRPC)
    client.ask("host1")
    client.tell("host1")

    modes = [wait_until("a copy is there", lambda: channel.basic_get("copies", no_ack=True), 5
                        ).properties["delivery_mode"] for _ in range(2)]
    channel.queue_delete("copies")
    assert modes == [TRANSIENT, PERSISTENT]


def test_queues_when_the_broker_is_a_cluster_then_each_is_a_quorum_queue_and_a_hosts_rights_suffice(
        backends: Any) -> None:
    place = Place(backends.broker.url(), quorum=True)
    try:
        for host, bus in place.hosts.items():
            assert bus.client(DeskRPC).ask(host) == f"answer to {host}"
            assert place.conductor.client(ManRPC).order(host) == f"done by {host}"
        replies = {"x-queue-type": "quorum", "x-expires": 60_000}
        kinds = {"conductor-host": {"x-queue-type": "quorum"}, "calls.host1": {"x-queue-type": "quorum", **BOUNDS},
                 "compute.host1": {"x-queue-type": "quorum"},
                 place.conductor.reply_to: replies, place.hosts["host1"].reply_to: replies}
        for queue, arguments in kinds.items():  # the broker refuses another kind of a queue that is there
            Raw(hosts_url(place.url)).channel().queue_declare(queue, durable=True, auto_delete=False,
                                                              arguments=arguments)
            with pytest.raises(PreconditionFailed):
                Raw(hosts_url(place.url)).channel().queue_declare(queue, auto_delete=False)
    finally:
        place.close()


def test_driver_then_it_keeps_what_we_change_of_it(place: Place) -> None:
    """What a new release of oslo.messaging may not rename."""
    driver = place.conductor.driver
    assert isinstance(driver, HostsDriver) and driver.reply_queue == place.conductor.reply_to
    assert driver.reconnected == 0
    kept = {"_get_reply_queue_name", "_get_connection", "listen"}
    assert kept <= {name for one in type(driver).__mro__[1:] for name in vars(one)}


def test_order_when_the_host_has_no_queue_then_said_at_once(place: Place) -> None:
    SECRETS["absent"] = "3" * 64
    place.serve(sorted(SECRETS))
    before = time.monotonic()
    with pytest.raises(errors.Unavailable, match="no queue"):
        place.conductor.client(ManRPC).order("absent")
    assert time.monotonic() - before < 14


def test_host_when_conductors_have_not_made_its_exchange_then_the_reason_is_said(place: Place) -> None:
    early = place.bus("host3", hosts_url(place.url, "host3"), lambda host, introducing=False: ["4" * 64], False)
    with pytest.raises(errors.Unavailable, match="nova-host-host3 does not exist on the broker"):
        early.client(DeskRPC).ask("host3")
    SECRETS["host3"] = "4" * 64
    place.serve(sorted(SECRETS))
    assert early.client(DeskRPC).ask("host3") == "answer to host3"


def body_of(arguments: dict[str, Any]) -> str:
    return codec.to_text(codec.pack(codec.CallMessage(context.internal(), msgspec.Raw(codec.pack(arguments)))))


OWN, OTHERS = "reply_host1_" + "0" * 32, "reply_host2_" + "0" * 32


@pytest.mark.parametrize("proven, queue, taken", [
    (OWN, OWN, True), ("", "", True), (OTHERS, OTHERS, False), (OWN, OTHERS, False), ("", OTHERS, False),
    ("nowhere", "nowhere", False)])
def test_call_when_its_answer_would_go_elsewhere_then_it_is_not_taken(place: Place, proven: str, queue: str,
                                                                      taken: bool) -> None:
    """A thief proves what it likes with its own secret; what it may not have is an answer sent to somebody else."""
    raw, told = Raw(hosts_url(place.url, "host1")), len(place.desk.told)
    envelope = {"sender": "host1", "contract": "1.0", "body": body_of({"host": "host1"})}
    raw.channel()

    def send(sealed: dict[str, Any]) -> None:
        raw.publish("nova-conductor-host", "calls.host1", {
            "method": "tell", "args": sealed, "_unique_id": str(next(COUNT)), "version": "1.0",
            **({"_reply_q": queue, "_msg_id": "m"} if queue else {})})
    tell = AuthenticatedMethod(DeskRPC, DeskRPC.methods["tell"], "host1")
    Proofs(place.own("host1")).ask(tell, envelope, proven, send)
    place.hosts["host1"].client(DeskRPC).ask("host1")  # comes after it in the queue
    if taken:
        wait_until("it came", lambda: len(place.desk.told) == told + 1, 5)
    else:
        time.sleep(0.2)
        assert len(place.desk.told) == told


COUNT = itertools.count()


class Raw:
    """A thief's connection: no library's manners."""

    def __init__(self, url: str) -> None:
        self.connection = kombu.Connection(url.replace("rabbit://", "amqp://", 1))

    def channel(self) -> Any:
        self.connection.ensure_connection(max_retries=1)
        return self.connection.channel()

    def publish(self, exchange: str, key: str, body: Any) -> None:
        """AccessRefused."""
        from oslo_messaging._drivers import common

        channel = self.connection.default_channel
        channel.confirm_select()
        producer = kombu.Producer(channel)
        producer.publish(common.serialize_msg(body), exchange=exchange, routing_key=key, mandatory=True)


REFUSED: dict[str, Callable[[Any, str], Any]] = {
    "publish by the default exchange": lambda channel, own: kombu.Producer(channel).publish(
        {}, exchange="", routing_key="conductor-host"),
    "publish to its own exchange": lambda channel, own: kombu.Producer(channel).publish(
        {}, exchange="nova-host-host1", routing_key="compute.host1"),
    "publish to the queue that hosts shared": lambda channel, own: kombu.Producer(channel).publish(
        {}, exchange="nova-conductor-host", routing_key="conductor-host"),
    "publish to the calls of another host": lambda channel, own: kombu.Producer(channel).publish(
        {}, exchange="nova-conductor-host", routing_key="calls.host2"),
    "say that it is another user": lambda channel, own: kombu.Producer(channel).publish(
        {}, exchange="nova-conductor-host", routing_key="calls.host1", user_id="host-host2"),
    "publish to another host": lambda channel, own: kombu.Producer(channel).publish(
        {}, exchange="nova-host-host2", routing_key="compute.host2"),
    "read another's orders": lambda channel, own: channel.basic_get("compute.host2"),
    "read the conductors' calls": lambda channel, own: channel.basic_get("conductor-host"),
    "read its own calls": lambda channel, own: channel.basic_get("calls.host1"),
    "purge another's calls": lambda channel, own: channel.queue_purge("calls.host2"),
    "bind to another's exchange": lambda channel, own: channel.queue_bind("compute.host1", "nova-host-host2", "#"),
    "bind to the answers": lambda channel, own: channel.queue_bind("compute.host1", "nova-answers", "#"),
    "bind to the calls": lambda channel, own: channel.queue_bind("compute.host1", "nova-conductor-host", "#"),
    "delete the conductors' queue": lambda channel, own: channel.queue_delete("conductor-host"),
    "purge the conductors' queue": lambda channel, own: channel.queue_purge("conductor-host"),
    "delete another's queue": lambda channel, own: channel.queue_delete("compute.host2"),
    "delete the exchange of calls": lambda channel, own: channel.exchange_delete("nova-conductor-host"),
    "delete its own exchange": lambda channel, own: channel.exchange_delete("nova-host-host1"),
    "declare an exchange": lambda channel, own: channel.exchange_declare("mine", "topic", passive=False),
    "bind exchanges": lambda channel, own: channel.exchange_bind("nova-answers", "nova-conductor-host", "#"),
    "declare a queue of its own name": lambda channel, own: channel.queue_declare("mine"),
    "let its dead letters go by the default exchange": lambda channel, own: channel.queue_declare(
        own, arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "conductor-host"}),
    "let its dead letters go to another": lambda channel, own: channel.queue_declare(
        own, arguments={"x-dead-letter-exchange": "nova-host-host2"}),
    "listen to everything": lambda channel, own: channel.queue_bind("compute.host1", "amq.rabbitmq.trace", "#")}


@pytest.mark.parametrize("deed", sorted(REFUSED))
def test_broker_when_a_hosts_user_wants_more_then_refused_and_others_go_on(place: Place, deed: str) -> None:
    channel = Raw(hosts_url(place.url, "host1")).channel()
    channel.confirm_select()
    with pytest.raises((AccessRefused, PreconditionFailed)):
        REFUSED[deed](channel, f"reply_host1_{'a' * 32}")
        channel.queue_declare("compute.host1", passive=True)  # what is refused of a message comes with the next answer
    assert place.hosts["host2"].client(DeskRPC).ask("host2") == "answer to host2"


@pytest.mark.parametrize("deed", ["read a conductor's answers", "delete a conductor's answers"])
def test_reply_queue_of_a_conductor_is_out_of_a_hosts_reach(place: Place, deed: str) -> None:
    place.conductor.client(ManRPC).order("host1")
    channel = Raw(hosts_url(place.url, "host1")).channel()
    with pytest.raises(AccessRefused):
        (channel.basic_get if deed.startswith("read") else channel.queue_delete)(place.conductor.reply_to)
    assert place.conductor.client(ManRPC).order("host1") == "done by host1"


def test_control_vhost_and_other_hosts_users_are_out_of_reach(place: Place) -> None:
    for url in (place.url.replace("nova:nova", "host-host1:nova"),
                hosts_url(place.url).replace("nova:nova", "host-host2:guess")):
        with pytest.raises((AccessRefused, NotAllowed)):
            Raw(url).channel()
