"""The hosts' vhost: how oslo.messaging's RabbitMQ driver is kept from what would open it to every host.

As it comes, the driver sends each answer through the default exchange, by which a user reaches any queue, and lets all
servers of a topic declare the same queues and exchanges. Here each answer goes through an exchange, and a host declares
its own queues alone: see ``nova/rpc/host_rights.py``.

This module alone leans on the driver's insides; ``tests/functional/test_hosts_driver.py`` fails when a release changes
them.
"""

from __future__ import annotations

import functools
import logging
import uuid
from collections.abc import Callable, Iterable

import kombu
import oslo_messaging
from amqp.exceptions import NotFound
from oslo_messaging._drivers import amqp, amqpdriver, base, common, impl_rabbit

from nova.conf.base import Options
from nova.model.base import Library
from nova.rpc.answers import IncomingCall, LateAnswers
from nova.rpc.host_rights import ANSWERS, CALLS, HOST, owner_of

LOG = logging.getLogger(__name__)


def _exchange(name: str, passive: bool) -> Library:
    """Kept through the broker's restarts: hosts come back before conductors do. A host may not declare any."""
    return kombu.Exchange(name, type="topic", durable=True, passive=passive)


class MissingExchange(oslo_messaging.MessageDeliveryFailure):
    """Conductors have not made what this host's queues are bound to: none has started yet, or it is not enrolled."""


class HostsDriver(impl_rabbit.RabbitDriver):
    """The driver of one side. ``host``: whose daemon's; None for a conductor's. ``reply_queue``: where the answers to
    its calls come."""

    def __init__(self, conf: Options, url: oslo_messaging.TransportURL, host: str | None) -> None:
        super().__init__(conf, url, default_exchange=CALLS, allowed_remote_exmods=[])
        self.host = host
        self.reply_queue = f"reply_{host}_{uuid.uuid4().hex}" if host else f"reply_{uuid.uuid4().hex}"
        self.connected = 0  # times that a connection to the broker was made
        self.reconnected = 0  # of those, times that it took the place of a lost one
        self.late = LateAnswers(owner_of if host is None else str)
        self._connection_pool.connection_cls = functools.partial(HostsConnection, self)

    def _get_reply_queue_name(self) -> str:
        return self.reply_queue

    def listen(self, target: oslo_messaging.Target, batch_size: int, batch_timeout: float | None) -> Library:
        """One queue: a host's own, or that of all conductors. No other is declared, and nothing is told to all."""
        connection = self._get_connection(common.PURPOSE_LISTEN)
        listener = Listener(self, connection)
        topic = f"{target.topic}.{target.server}" if self.host else target.topic
        connection.declare_topic_consumer(target.exchange, topic, listener)
        return base.PollStyleListenerAdapter(listener, batch_size, batch_timeout)

    def declare_hosts(self, hosts: Iterable[str]) -> None:
        """What these hosts' queues are bound to; for conductors. Done again, it is nothing."""
        exchanges = [_exchange(name, passive=False) for name in (CALLS, ANSWERS, *(HOST + host for host in hosts))]
        with self._get_connection(common.PURPOSE_SEND) as connection:
            for exchange in exchanges:
                connection.declare_exchange(exchange)


class Listener(amqpdriver.RpcAMQPListener):
    """Takes no message that would have its answer sent to somebody else's queue."""

    message_cls = IncomingCall

    def __call__(self, message: Library) -> None:
        envelope, queue = message.get("args") or {}, message.get("_reply_q") or ""
        owned = self.driver.host is not None or not queue or owner_of(queue) == envelope.get("sender")
        if queue == envelope.get("reply_to", "") and owned:
            super().__call__(message)
        else:
            message.acknowledge()
            LOG.error("%s from %s refused: its answer would go to %s", message.get("method"), envelope.get("sender"),
                      queue)


class HostsConnection(impl_rabbit.Connection):
    """A connection that keeps to the exchanges of the hosts' vhost."""

    def __init__(self, driver: HostsDriver, conf: Options, url: oslo_messaging.TransportURL, purpose: str,
                 retry: int | None = None) -> None:
        self._driver, self._channels = driver, 0
        super().__init__(conf, url, purpose, retry=retry)

    def _set_current_channel(self, new_channel: Library) -> None:
        if new_channel not in (None, self.channel) and self.purpose == common.PURPOSE_LISTEN:
            self._driver.connected += 1
            self._driver.reconnected += self._channels > 0
            self._channels += 1
        super()._set_current_channel(new_channel)

    def _consume(self, exchange: str, queue: str, callback: Callable[[Library], None], ttl: int, quorum: bool) -> None:
        """``quorum``: the queue is kept by several nodes of the broker, and goes on without one of them."""
        consumer = impl_rabbit.Consumer(
            exchange_name=exchange, queue_name=queue, routing_key=queue, type="topic", durable=quorum,
            exchange_auto_delete=False, queue_auto_delete=False, callback=callback, rabbit_queue_ttl=ttl,
            enable_cancel_on_failover=self.enable_cancel_on_failover, rabbit_quorum_queue=quorum,
            rabbit_quorum_queue_config=self.rabbit_quorum_queue_config)
        consumer.exchange = _exchange(exchange, passive=self._driver.host is not None)
        if consumer.exchange.passive:
            self._check_exchange(consumer.exchange)
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

    def declare_exchange(self, exchange: Library) -> None:
        """Make it, where it is not there."""
        with self._connection_lock:
            self.ensure(lambda: exchange(self.channel).declare(), retry=1)

    def direct_send(self, msg_id: str, msg: Library) -> None:
        """An answer, to the reply queue that its call named."""
        exchange = ANSWERS if self._driver.host else HOST + owner_of(msg_id)
        self._publish_to(exchange, msg_id, msg, at_least_once=self.direct_mandatory_flag)

    def topic_send(self, exchange_name: str, topic: str, msg: Library, timeout: float | None = None,
                   retry: int | None = None, transport_options: Library = None) -> None:
        """A call or an order. oslo_messaging.MessageUndeliverable: nobody has a queue for it."""
        self._publish_to(exchange_name, topic, msg, timeout, retry, at_least_once=True)

    def _publish_to(self, name: str, key: str, msg: Library, timeout: float | None = None, retry: int | None = None,
                    at_least_once: bool = True) -> None:
        exchange = _exchange(name, passive=True)
        try:
            self._ensure_publishing(
                self._publish_and_raises_on_missing_exchange, exchange, msg, routing_key=key, timeout=timeout,
                retry=retry, transport_options=oslo_messaging.TransportOptions(at_least_once=at_least_once))
        except amqp.AMQPDestinationNotFound as error:
            raise oslo_messaging.MessageUndeliverable(error, exchange, key, msg) from None
