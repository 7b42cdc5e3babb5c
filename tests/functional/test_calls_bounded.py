"""What one host can send, at a real broker: so many messages, over so many connections, until it is expelled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import kombu
import pytest
from amqp.exceptions import AMQPError, MessageNacked, NotFound
from oslo_messaging._drivers import common

from nova import errors
from nova.rpc.host_rights import LARGEST_MESSAGE, LIMITS
from nova.rpc.hosts_driver import BOUNDS
from nova.rpc.proofs import AuthenticatedMethod, Proofs
from tests.functional.backends import hosts_url, hosts_vhost, wait_until
from tests.functional.test_hosts_driver import SECRETS, DeskRPC, Place, Raw, body_of

pytestmark = pytest.mark.in_turn(2, 10)


@pytest.fixture
def place(backends: Any) -> Iterator[Place]:
    made = Place(backends.broker.url())
    yield made
    made.close()


def publish(url: str, key: str, body: Any, count: int = 1) -> None:
    """amqp.exceptions: what the broker says of it."""
    with kombu.Connection(url.replace("rabbit://", "amqp://", 1),
                          transport_options={"confirm_publish": True}) as connection:
        producer = kombu.Producer(connection.channel())
        for _number in range(count):
            producer.publish(body, exchange="nova-conductor-host", routing_key=key, mandatory=True)


def test_queue_when_no_conductor_reads_it_then_it_takes_so_many_and_the_host_learns_it(place: Place) -> None:
    place.conductor.stop([place.conductor_server], 5)
    with pytest.raises(MessageNacked):
        publish(hosts_url(place.url, "host1"), "calls.host1", {}, BOUNDS["x-max-length"] + 1)
    with pytest.raises(errors.Unavailable, match="call queue is full"):
        place.hosts["host1"].client(DeskRPC).tell("host1")
    publish(hosts_url(place.url, "host2"), "calls.host2", {})


def test_message_when_it_is_larger_than_any_then_the_broker_refuses_it(place: Place) -> None:
    with pytest.raises(AMQPError):
        publish(hosts_url(place.url, "host1"), "calls.host1", "x" * (LARGEST_MESSAGE + 1))
    assert place.hosts["host1"].client(DeskRPC).ask("host1") == "answer to host1"


def test_connections_when_one_host_opens_more_than_it_may_then_refused_and_others_connect(place: Place) -> None:
    url = hosts_url(place.url, "host1").replace("rabbit://", "amqp://", 1)
    opened: list[kombu.Connection] = []
    try:
        with pytest.raises((AMQPError, OSError)):
            for _number in range(LIMITS["max-connections"] + 1):
                opened.append(kombu.Connection(url))
                opened[-1].connect()
        Raw(hosts_url(place.url, "host2")).channel()
    finally:
        for connection in opened:
            connection.release()


def test_host_of_the_release_before_when_it_sends_to_the_shared_queue_then_it_is_answered(place: Place) -> None:
    """Its user has the rights of that release, under which nothing restricted the key."""
    told = len(place.desk.told)

    def send(sealed: dict[str, Any]) -> None:
        publish(hosts_url(place.url), "conductor-host", common.serialize_msg(
            {"method": "tell", "args": sealed, "version": "1.0", "_unique_id": "old"}))
    envelope = {"sender": "host1", "contract": "1.0", "body": body_of({"host": "host1"})}
    Proofs(place.own("host1")).ask(AuthenticatedMethod(DeskRPC, DeskRPC.methods["tell"], "host1"), envelope, "", send)
    wait_until("it came", lambda: len(place.desk.told) == told + 1, 5)


def test_host_when_conductors_serve_it_no_more_then_its_messages_go_nowhere(place: Place) -> None:
    place.serve(["host2"])
    wait_until("the queue of host1 takes nothing", lambda: _returned(place, "calls.host1"), 5)
    with pytest.raises(errors.Unavailable, match="no conductor accepts calls from this host"):
        place.hosts["host1"].client(DeskRPC).ask("host1")
    assert place.hosts["host2"].client(DeskRPC).ask("host2") == "answer to host2"
    place.serve(sorted(SECRETS))
    wait_until("host1 is served again", lambda: not _returned(place, "calls.host1"), 5)
    assert place.hosts["host1"].client(DeskRPC).ask("host1") == "answer to host1"


def _returned(place: Place, key: str) -> bool:
    """Whether the broker has no queue for a message with this key."""
    returned: list[object] = []
    with kombu.Connection(hosts_url(place.url).replace("rabbit://", "amqp://", 1),
                          transport_options={"confirm_publish": True}) as connection:
        kombu.Producer(connection.channel(), on_return=lambda *args: returned.append(args)).publish(
            {}, exchange="nova-conductor-host", routing_key=key, mandatory=True)
    return bool(returned)


def test_broker_user_when_it_is_deleted_then_its_connections_are_closed(backends: Any, place: Place) -> None:
    """What `nova-manage host revoke` relies on."""
    control = backends.broker.control
    control("add_user", "host-thief", "nova")
    control("set_permissions", "-p", hosts_vhost(place.url), "host-thief", "", "", "")
    url = hosts_url(place.url).replace("rabbit://nova:", "amqp://host-thief:", 1)
    connection = kombu.Connection(url)
    connection.connect()
    control("delete_user", "host-thief")

    def closed() -> bool:
        try:
            connection.default_channel.queue_declare("x", passive=True)
        except (AMQPError, OSError) as error:
            return not isinstance(error, NotFound)
        return False
    wait_until("its connection is closed", closed, 10)
