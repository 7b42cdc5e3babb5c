"""The messaging driver of the hosts' vhost: RabbitMQ access that can be limited per host.

By default, oslo.messaging's driver sends each reply through the default exchange, by which a user reaches any queue. It
also lets all servers of a topic declare the same queues and exchanges. Here each reply goes through a named exchange,
and a host declares only its own queues: see ``nova/rpc/host_rights.py``.

This module and ``nova/rpc/conductor_listener.py`` use the driver's internals; ``tests/functional/test_hosts_driver.py``
fails when a release changes them.
"""

from __future__ import annotations

import functools
import logging
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import kombu
import oslo_messaging
from amqp.exceptions import NotFound
from oslo_config import cfg
from oslo_messaging._drivers import amqpdriver, base, common, impl_rabbit

from nova.rpc.answers import IncomingCall, PendingReplies
from nova.rpc.conductor_listener import PREFETCH, ConductorListener
from nova.rpc.host_rights import ANSWERS, CALLS, HOST, SHARED_CALLS, calls_queue, owner_of
from nova.rpc.passive_publishing import PassivePublisher, QueueFull, topic_exchange

if TYPE_CHECKING:
    import amqp
    from kombu.transport.pyamqp import Channel

LOG = logging.getLogger(__name__)

#: Bounds of a host's queue of calls. The broker refuses a message beyond them immediately. The queue of an expelled
#: host expires when no conductor has read it for so many milliseconds.
BOUNDS = {"x-max-length": 1000, "x-max-length-bytes": 32 * 2 ** 20, "x-overflow": "reject-publish",
          "x-expires": 600_000}


#: A callback for received messages.
Received = Callable[[impl_rabbit.RabbitMessage], None]


class MissingExchange(oslo_messaging.MessageDeliveryFailure):
    """Absence of the exchange that this host binds to: no conductor has started yet, or the host is not enrolled."""


class HostsDriver(impl_rabbit.RabbitDriver):
    """The driver of one side. ``host``: the daemon's host; None for a conductor. ``declares``: True if it creates the
    exchanges that it reads from, as conductors do, and also hosts in upstream mode, which no conductor knows yet.
    ``reply_queue``: the queue for replies to its calls. ``hosts``: for a conductor, the hosts whose calls it accepts
    and to which it sends orders; the listener follows it."""

    def __init__(self, conf: cfg.ConfigOpts, url: oslo_messaging.TransportURL, host: str | None,
                 declares: bool = False) -> None:
        super().__init__(conf, url, default_exchange=CALLS, allowed_remote_exmods=[])
        self.host, self.declares = host, declares or host is None
        self.reply_queue = f"reply_{host}_{uuid.uuid4().hex}" if host else f"reply_{uuid.uuid4().hex}"
        self.reconnected = 0  # times that a connection for incoming messages replaced a lost one
        self.hosts: frozenset[str] = frozenset()
        self.late = PendingReplies(owner_of if host is None else str)
        self._connection_pool.connection_cls = functools.partial(HostsConnection, self)

    def _get_reply_queue_name(self) -> str:
        return self.reply_queue

    def listen(self, target: oslo_messaging.Target, batch_size: int, batch_timeout: float | None
               ) -> base.PollStyleListenerAdapter:
        """Listen on a host's own queue; for a conductor, on the queues of all hosts and the queue that they shared."""
        connection = self._get_connection(common.PURPOSE_LISTEN)
        listener = Listener(self, connection) if self.host else ConductorListener(self, connection)
        topic = f"{target.topic}.{target.server}" if self.host else SHARED_CALLS
        connection.declare_topic_consumer(target.exchange, topic, listener)
        return base.PollStyleListenerAdapter(listener, batch_size, batch_timeout)


class Listener(amqpdriver.RpcAMQPListener):
    """The listener of a host: refuses an order whose reply queue is not the one in its proof."""

    message_cls = IncomingCall

    def __call__(self, message: impl_rabbit.RabbitMessage) -> None:
        envelope, queue = message.get("args") or {}, message.get("_reply_q") or ""
        if queue == envelope.get("reply_to", ""):
            super().__call__(message)
        else:
            message.acknowledge()
            LOG.error("%s from %s refused: its reply would go to queue %s", message.get("method"),
                      envelope.get("sender"), queue)


class RawConsumer(impl_rabbit.Consumer):
    """A conductor's consumer: passes messages to the listener unchanged, even if they cannot be decoded."""

    def _callback(self, message: amqp.Message) -> None:
        self.callback(self.queue.channel.message_to_python(message))


class CallsConsumer(RawConsumer):
    """A conductor's consumer for the calls of one host. Also declares the exchange and queue that the host needs,
    without waiting for the broker's replies: there may be ten thousand hosts."""

    def __init__(self, host: str, callback: Received, quorum: bool) -> None:
        queue = calls_queue(host)
        super().__init__(exchange_name=CALLS, queue_name=queue, routing_key=queue, type="topic", durable=True,
                         exchange_auto_delete=False, queue_auto_delete=False, callback=callback, nowait=True,
                         rabbit_quorum_queue=quorum)
        self.exchange = topic_exchange(CALLS, passive=False)
        self.queue_arguments.update(BOUNDS)
        self._orders = topic_exchange(HOST + host, passive=False)

    def declare(self, conn: HostsConnection) -> None:
        """Create the host's queue of calls, and the exchange for messages to the host."""
        self._orders(conn.channel).declare(nowait=True)
        self.queue = kombu.Queue(self.queue_name, self.exchange, self.routing_key, channel=conn.channel, durable=True,
                                 auto_delete=False, queue_arguments=self.queue_arguments)
        self.queue.declare(nowait=True)
        self._declared_on = conn.channel

    def forget(self, tag: int) -> None:
        """Stop consuming, and unbind the queue so that it receives no more messages."""
        self.queue.cancel(str(tag))
        self.queue.unbind_from(self.exchange, self.routing_key)


class HostsConnection(PassivePublisher):
    """A connection that uses only the exchanges of the hosts' vhost."""

    def __init__(self, driver: HostsDriver, conf: cfg.ConfigOpts, url: oslo_messaging.TransportURL, purpose: str,
                 retry: int | None = None) -> None:
        self._driver, self._channels = driver, 0
        super().__init__(conf, url, purpose, retry=retry)

    def _set_current_channel(self, new_channel: Channel | None) -> None:
        if new_channel not in (None, self.channel) and self.purpose == common.PURPOSE_LISTEN:
            self._driver.reconnected += self._channels > 0
            self._channels += 1
        super()._set_current_channel(new_channel)
        if new_channel is not None and self._driver.host:  # the broker checks it, so conductors can trust the sender
            self._producer.publish = functools.partial(self._producer.publish, user_id=self.connection.userid)

    def _set_qos(self, channel: Channel) -> None:
        """Set the prefetch count: a conductor takes a few messages of each consumer at a time."""
        if self._driver.host:
            super()._set_qos(channel)
        else:
            channel.basic_qos(0, PREFETCH, False)

    def consume_calls(self, host: str, callback: Received) -> CallsConsumer:
        """Start to consume that host's calls."""
        consumer = CallsConsumer(host, callback, self.rabbit_quorum_queue)
        self.declare_consumer(consumer)
        return consumer

    def forget_calls(self, consumer: CallsConsumer) -> None:
        """Stop consuming that host's calls, and unbind its queue."""
        with self._connection_lock:
            tag = self._consumers.pop(consumer)
            self._active_tags.pop(consumer.queue_name)
            self._new_tags.discard(tag)
            self.ensure(functools.partial(consumer.forget, tag), retry=1)

    def _consume(self, exchange: str, queue: str, callback: Received | None, ttl: int, quorum: bool) -> None:
        """Declare a queue and consume it. ``quorum``: several nodes of the broker replicate the queue, which survives
        the loss of one."""
        make = impl_rabbit.Consumer if self._driver.host or exchange == ANSWERS else RawConsumer
        consumer = make(
            exchange_name=exchange, queue_name=queue, routing_key=queue, type="topic", durable=quorum,
            exchange_auto_delete=False, queue_auto_delete=False, callback=callback, rabbit_queue_ttl=ttl,
            enable_cancel_on_failover=self.enable_cancel_on_failover, rabbit_quorum_queue=quorum,
            rabbit_quorum_queue_config=self.rabbit_quorum_queue_config)
        consumer.exchange = topic_exchange(exchange, passive=not self._driver.declares)
        if self._driver.host:  # in upstream mode it creates its own exchange, and still needs the conductors' exchange
            needed = consumer.exchange if consumer.exchange.passive else topic_exchange(CALLS, passive=True)
            self._check_exchange(needed)
        self.declare_consumer(consumer)

    def _check_exchange(self, exchange: kombu.Exchange) -> None:
        """Raise MissingExchange if the exchange does not exist. The driver would try other causes first, and log them
        at length."""
        try:
            exchange(self.channel).declare()
        except NotFound:
            self.close()
            raise MissingExchange(exchange.name) from None

    def declare_direct_consumer(self, topic: str, callback: Received) -> None:
        """Consume the queue of replies."""
        exchange = HOST + self._driver.host if self._driver.host else ANSWERS
        self._consume(exchange, topic, callback, self.rabbit_transient_queues_ttl, self.rabbit_transient_quorum_queue)

    def declare_topic_consumer(self, exchange_name: str, topic: str, callback: Received | None = None,
                               queue_name: str | None = None) -> None:
        """Consume a queue of calls or orders."""
        self._consume(exchange_name, queue_name or topic, callback, 0, self.rabbit_quorum_queue)

    def direct_send(self, msg_id: str, msg: Mapping[str, object]) -> None:
        """Send a reply to the reply queue that its call named."""
        exchange = ANSWERS if self._driver.host else HOST + owner_of(msg_id)
        self.publish_to(exchange, msg_id, msg, at_least_once=self.direct_mandatory_flag)

    def topic_send(self, exchange_name: str, topic: str, msg: Mapping[str, object], timeout: float | None = None,
                   retry: int | None = None, transport_options: oslo_messaging.TransportOptions | None = None) -> None:
        """Send a call or an order. Raises oslo_messaging.MessageUndeliverable if no queue exists for it, and
        QueueFull."""
        if self._driver.host is None:
            self.publish_to(exchange_name, topic, msg, timeout, retry)
            return
        try:
            self.publish_to(exchange_name, calls_queue(self._driver.host), msg, timeout, retry)
        except QueueFull:
            raise
        except oslo_messaging.MessageUndeliverable:  # no queue: the conductor may be of the previous release
            self.publish_to(exchange_name, SHARED_CALLS, msg, timeout, retry)
