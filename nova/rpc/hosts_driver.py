"""The hosts' vhost: how oslo.messaging's RabbitMQ driver is kept from what would open it to every host.

As it comes, the driver sends each answer through the default exchange, by which a user reaches any queue, and lets all
servers of a topic declare the same queues and exchanges. Here each answer goes through an exchange, and a host declares
its own queues alone: see ``nova/rpc/host_rights.py``.

This module and ``nova/rpc/conductor_end.py`` lean on the driver's insides; ``tests/functional/test_hosts_driver.py``
fails when a release changes them.
"""

from __future__ import annotations

import functools
import logging
import uuid
from collections.abc import Callable

import kombu
import oslo_messaging
from amqp.exceptions import NotFound
from oslo_messaging._drivers import amqpdriver, base, common, impl_rabbit

from nova.conf.base import Options
from nova.model.base import Library
from nova.rpc.answers import IncomingCall, LateAnswers
from nova.rpc.conductor_end import PREFETCH, ConductorListener
from nova.rpc.host_rights import ANSWERS, CALLS, HOST, SHARED_CALLS, calls_queue, owner_of
from nova.rpc.passive_publishing import PassivePublisher, QueueFull, topic_exchange

LOG = logging.getLogger(__name__)

#: Of a host's queue of calls. A message beyond is refused to the host at once. The queue of a host that was expelled is
#: gone when no conductor has read it for so many milliseconds.
BOUNDS = {"x-max-length": 1000, "x-max-length-bytes": 32 * 2 ** 20, "x-overflow": "reject-publish",
          "x-expires": 600_000}


class MissingExchange(oslo_messaging.MessageDeliveryFailure):
    """Conductors have not made what this host's queues are bound to: none has started yet, or it is not enrolled."""


class HostsDriver(impl_rabbit.RabbitDriver):
    """The driver of one side. ``host``: whose daemon's; None for a conductor's. ``declares``: whether it makes the
    exchanges that it reads from, as conductors do, and in upstream mode hosts, which no conductor knows yet.
    ``reply_queue``: where the answers to its calls come. ``hosts``: for a conductor, whose calls it takes and whom it
    may order; the listener keeps to it."""

    def __init__(self, conf: Options, url: oslo_messaging.TransportURL, host: str | None,
                 declares: bool = False) -> None:
        super().__init__(conf, url, default_exchange=CALLS, allowed_remote_exmods=[])
        self.host, self.declares = host, declares or host is None
        self.reply_queue = f"reply_{host}_{uuid.uuid4().hex}" if host else f"reply_{uuid.uuid4().hex}"
        self.reconnected = 0  # times that a connection for what comes in took the place of a lost one
        self.hosts: frozenset[str] = frozenset()
        self.late = LateAnswers(owner_of if host is None else str)
        self._connection_pool.connection_cls = functools.partial(HostsConnection, self)

    def _get_reply_queue_name(self) -> str:
        return self.reply_queue

    def listen(self, target: oslo_messaging.Target, batch_size: int, batch_timeout: float | None) -> Library:
        """A host's own queue; or those of all hosts, and the one that they shared."""
        connection = self._get_connection(common.PURPOSE_LISTEN)
        listener = Listener(self, connection) if self.host else ConductorListener(self, connection)
        topic = f"{target.topic}.{target.server}" if self.host else SHARED_CALLS
        connection.declare_topic_consumer(target.exchange, topic, listener)
        return base.PollStyleListenerAdapter(listener, batch_size, batch_timeout)


class Listener(amqpdriver.RpcAMQPListener):
    """A host's: takes no order that would have its answer sent to a queue that its proof does not name."""

    message_cls = IncomingCall

    def __call__(self, message: Library) -> None:
        envelope, queue = message.get("args") or {}, message.get("_reply_q") or ""
        if queue == envelope.get("reply_to", ""):
            super().__call__(message)
        else:
            message.acknowledge()
            LOG.error("%s from %s refused: its answer would go to %s", message.get("method"), envelope.get("sender"),
                      queue)


class RawConsumer(impl_rabbit.Consumer):
    """At a conductor: hands messages to the listener as they came, also those that cannot be read."""

    def _callback(self, message: Library) -> None:
        self.callback(self.queue.channel.message_to_python(message))


class CallsConsumer(RawConsumer):
    """Of one host's calls, at a conductor. Declares what the host needs, too, and waits for no answer of the broker:
    there may be ten thousand of them."""

    def __init__(self, host: str, callback: Callable[[Library], None], quorum: bool) -> None:
        queue = calls_queue(host)
        super().__init__(exchange_name=CALLS, queue_name=queue, routing_key=queue, type="topic", durable=True,
                         exchange_auto_delete=False, queue_auto_delete=False, callback=callback, nowait=True,
                         rabbit_quorum_queue=quorum)
        self.exchange = topic_exchange(CALLS, passive=False)
        self.queue_arguments.update(BOUNDS)
        self._orders = topic_exchange(HOST + host, passive=False)

    def declare(self, conn: HostsConnection) -> None:
        """Make the host's queue of calls, and the exchange of what is sent to the host."""
        self._orders(conn.channel).declare(nowait=True)
        self.queue = kombu.Queue(self.queue_name, self.exchange, self.routing_key, channel=conn.channel, durable=True,
                                 auto_delete=False, queue_arguments=self.queue_arguments)
        self.queue.declare(nowait=True)
        self._declared_on = conn.channel

    def forget(self, tag: int) -> None:
        """Take nothing more, and let nothing more come in."""
        self.queue.cancel(str(tag))
        self.queue.unbind_from(self.exchange, self.routing_key)


class HostsConnection(PassivePublisher):
    """A connection that keeps to the exchanges of the hosts' vhost."""

    def __init__(self, driver: HostsDriver, conf: Options, url: oslo_messaging.TransportURL, purpose: str,
                 retry: int | None = None) -> None:
        self._driver, self._channels = driver, 0
        super().__init__(conf, url, purpose, retry=retry)

    def _set_current_channel(self, new_channel: Library) -> None:
        if new_channel not in (None, self.channel) and self.purpose == common.PURPOSE_LISTEN:
            self._driver.reconnected += self._channels > 0
            self._channels += 1
        super()._set_current_channel(new_channel)
        if new_channel is not None and self._driver.host:  # the broker checks it, so that conductors know who sent
            self._producer.publish = functools.partial(self._producer.publish, user_id=self.connection.userid)

    def _set_qos(self, channel: Library) -> None:
        """A conductor takes a few messages of each consumer at a time."""
        if self._driver.host:
            super()._set_qos(channel)
        else:
            channel.basic_qos(0, PREFETCH, False)

    def consume_calls(self, host: str, callback: Callable[[Library], None]) -> CallsConsumer:
        """Take that host's calls from now on."""
        consumer = CallsConsumer(host, callback, self.rabbit_quorum_queue)
        self.declare_consumer(consumer)
        return consumer

    def forget_calls(self, consumer: CallsConsumer) -> None:
        """Take no call of that host any more, nor let its queue take any."""
        with self._connection_lock:
            tag = self._consumers.pop(consumer)
            self._active_tags.pop(consumer.queue_name)
            self._new_tags.discard(tag)
            self.ensure(functools.partial(consumer.forget, tag), retry=1)

    def _consume(self, exchange: str, queue: str, callback: Callable[[Library], None], ttl: int, quorum: bool) -> None:
        """``quorum``: the queue is kept by several nodes of the broker, and goes on without one of them."""
        make = impl_rabbit.Consumer if self._driver.host or exchange == ANSWERS else RawConsumer
        consumer = make(
            exchange_name=exchange, queue_name=queue, routing_key=queue, type="topic", durable=quorum,
            exchange_auto_delete=False, queue_auto_delete=False, callback=callback, rabbit_queue_ttl=ttl,
            enable_cancel_on_failover=self.enable_cancel_on_failover, rabbit_quorum_queue=quorum,
            rabbit_quorum_queue_config=self.rabbit_quorum_queue_config)
        consumer.exchange = topic_exchange(exchange, passive=not self._driver.declares)
        if self._driver.host:  # in upstream mode it makes its own exchange, and needs the conductors' all the same
            needed = consumer.exchange if consumer.exchange.passive else topic_exchange(CALLS, passive=True)
            self._check_exchange(needed)
        self.declare_consumer(consumer)

    def _check_exchange(self, exchange: Library) -> None:
        """The driver would look for other reasons first, and say so at length."""
        try:
            exchange(self.channel).declare()
        except NotFound:
            self.close()
            raise MissingExchange(exchange.name) from None

    def declare_direct_consumer(self, topic: str, callback: Callable[[Library], None]) -> None:
        """Where answers come."""
        exchange = HOST + self._driver.host if self._driver.host else ANSWERS
        self._consume(exchange, topic, callback, self.rabbit_transient_queues_ttl, self.rabbit_transient_quorum_queue)

    def declare_topic_consumer(self, exchange_name: str, topic: str, callback: Library = None,
                               queue_name: str | None = None) -> None:
        """Where calls or orders come."""
        self._consume(exchange_name, queue_name or topic, callback, 0, self.rabbit_quorum_queue)

    def direct_send(self, msg_id: str, msg: Library) -> None:
        """An answer, to the reply queue that its call named."""
        exchange = ANSWERS if self._driver.host else HOST + owner_of(msg_id)
        self.publish_to(exchange, msg_id, msg, at_least_once=self.direct_mandatory_flag)

    def topic_send(self, exchange_name: str, topic: str, msg: Library, timeout: float | None = None,
                   retry: int | None = None, transport_options: Library = None) -> None:
        """A call or an order. oslo_messaging.MessageUndeliverable: nobody has a queue for it; QueueFull."""
        if self._driver.host is None:
            self.publish_to(exchange_name, topic, msg, timeout, retry)
            return
        try:
            self.publish_to(exchange_name, calls_queue(self._driver.host), msg, timeout, retry)
        except QueueFull:
            raise
        except oslo_messaging.MessageUndeliverable:  # no conductor has made the queue: it may be of the release before
            self.publish_to(exchange_name, SHARED_CALLS, msg, timeout, retry)
