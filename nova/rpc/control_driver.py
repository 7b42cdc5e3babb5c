"""The messaging driver between control daemons: oslo.messaging's RabbitMQ driver, without lost calls on shutdown.

By default, a server that stops still receives calls while its connection closes (it waits for the deletion of its
fanout queue). It acknowledges them and drops them, so their callers wait until their timeout. Here such a call stays
with the broker, which gives it to another server.

The driver also respects the rights of a daemon with limited rights (``nova/rpc/control_rights.py``). By default, the
library sends replies through the default exchange, by which a user reaches any queue, and declares other users'
exchanges.

This module uses the driver's internals; ``tests/functional/test_control_driver.py`` and ``test_stolen_proxy.py`` fail
when a release changes them.
"""

from __future__ import annotations

import functools
import logging
import uuid
from collections.abc import Callable, Mapping

import oslo_messaging
from amqp.exceptions import ConnectionError as ConnectionLost
from oslo_config import cfg
from oslo_messaging._drivers import amqpdriver, base, common, impl_rabbit

from nova import failures
from nova.rpc.answers import IncomingCall, PendingReplies
from nova.rpc.control_rights import ANSWERS, BOUNDED, BOUNDS, LIMITED
from nova.rpc.passive_publishing import PassivePublisher, topic_exchange

LOG = logging.getLogger(__name__)

REPLIES = "reply_"  # prefix of the names of reply queues


class ControlDriver(impl_rabbit.RabbitDriver):
    """The library's driver with another listener, and without the actions that a limited user may not do. ``rights``:
    those of the user in ``url``; None: no limits."""

    def __init__(self, conf: cfg.ConfigOpts, url: oslo_messaging.TransportURL, **kwargs: object) -> None:
        super().__init__(conf, url, **kwargs)
        self.late = PendingReplies()
        self.user = next((host.username for host in url.hosts), None) or ""
        self.rights = LIMITED.get(self.user)
        self._connection_pool.connection_cls = functools.partial(ControlConnection, self)

    @property
    def hears_answers(self) -> bool:
        """True if it binds its reply queue to the exchange of replies. A daemon that serves no contract gets its
        replies from users that may use the default exchange."""
        return self.rights is None or bool(self.rights.serves)

    def has_exchange(self, name: str) -> bool:
        """Return whether that topic exchange exists in this vhost. Raises MessageDeliveryFailure if the connection was
        lost."""
        with failures.replaced(ConnectionLost, lambda error: oslo_messaging.MessageDeliveryFailure(str(error))), \
                self._get_connection(common.PURPOSE_SEND) as connection:
            return bool(connection.has_exchange(name))

    def _get_reply_queue_name(self) -> str:
        if self.rights is None:
            name: str = super()._get_reply_queue_name()
            return name
        return f"reply_{self.user}_{uuid.uuid4().hex}"

    def listen(self, target: oslo_messaging.Target, batch_size: int, batch_timeout: float | None
               ) -> base.PollStyleListenerAdapter:
        """Listen on a server's three queues: the topic's, its own, and the fanout queue of the topic.

        The first two are also bound to the exchange of ``control_exchange``, which a limited user may not do: health
        probes of deployment tools send there.
        """
        connection = self._get_connection(common.PURPOSE_LISTEN)
        listener = ControlListener(self, connection)
        exchanges = [self._get_exchange(target), *([] if self.rights else [self._default_exchange])]
        for topic in (target.topic, f"{target.topic}.{target.server}"):
            for exchange in exchanges:
                connection.declare_topic_consumer(exchange_name=exchange, topic=topic, callback=listener)
        connection.declare_fanout_consumer(target.topic, listener)
        return base.PollStyleListenerAdapter(listener, batch_size, batch_timeout)


class ProbedDriver(ControlDriver):
    """The driver of a host in upstream mode for health probes only; orders use the hosts' driver."""

    def listen(self, target: oslo_messaging.Target, batch_size: int, batch_timeout: float | None
               ) -> base.PollStyleListenerAdapter:
        """Listen on a queue with a separate name: the queue of orders is named by topic and server."""
        connection = self._get_connection(common.PURPOSE_LISTEN)
        listener = ControlListener(self, connection)
        address = f"{target.topic}.{target.server}"
        connection.declare_topic_consumer(exchange_name=self._default_exchange, topic=address, callback=listener,
                                          queue_name=f"probes.{address}")
        return base.PollStyleListenerAdapter(listener, batch_size, batch_timeout)


class ControlListener(amqpdriver.RpcAMQPListener):
    """A listener that takes no messages after a stop, and refuses those with a queue of calls for the reply."""

    message_cls = IncomingCall

    def __call__(self, message: impl_rabbit.RabbitMessage) -> None:
        if self._shutoff.is_set():
            return  # it is not acknowledged: the broker requeues it when the connection is closed
        queue = message.get("_reply_q") or REPLIES
        if queue.startswith(REPLIES):
            super().__call__(message)
        else:
            message.acknowledge()
            LOG.error("%s from %s refused: its reply would go to queue %s", message.get("method"),
                      (message.get("args") or {}).get("sender"), queue)


class ControlConnection(PassivePublisher):
    """A connection that can send replies without the default exchange."""

    def __init__(self, driver: ControlDriver, conf: cfg.ConfigOpts, url: oslo_messaging.TransportURL, purpose: str,
                 retry: int | None = None) -> None:
        self._driver = driver
        super().__init__(conf, url, purpose, retry=retry)

    def declare_direct_consumer(self, topic: str, callback: Callable[[impl_rabbit.RabbitMessage], None]) -> None:
        """Consume the queue of replies."""
        limited = self._driver.rights is not None  # such a user may not create the exchange: conductors do
        if not self._driver.hears_answers or (limited and not self.has_exchange(ANSWERS)):
            super().declare_direct_consumer(topic, callback)
            return
        consumer = impl_rabbit.Consumer(
            exchange_name=ANSWERS, queue_name=topic, routing_key=topic, type="topic",
            durable=self.rabbit_transient_quorum_queue, exchange_auto_delete=False, queue_auto_delete=False,
            callback=callback, rabbit_ha_queues=self.rabbit_ha_queues,
            rabbit_queue_ttl=self.rabbit_transient_queues_ttl,
            enable_cancel_on_failover=self.enable_cancel_on_failover,
            rabbit_quorum_queue=self.rabbit_transient_quorum_queue,
            rabbit_quorum_queue_config=self.rabbit_quorum_queue_config)
        consumer.exchange = topic_exchange(ANSWERS, passive=limited)
        self.declare_consumer(consumer)

    def declare_consumer(self, consumer: impl_rabbit.Consumer) -> None:
        """Declare a consumer; a queue that limited users may fill gets bounds."""
        if consumer.routing_key.partition(".")[0] in BOUNDED and consumer.type == "topic":
            consumer.queue_arguments.update(BOUNDS)
        super().declare_consumer(consumer)

    def direct_send(self, msg_id: str, msg: Mapping[str, object]) -> None:
        """Send a reply to the reply queue that its call named. Raises oslo_messaging.MessageUndeliverable if it does
        not exist, or this user may not reach it."""
        try:
            self.publish_to(ANSWERS, msg_id, msg)
        except oslo_messaging.MessageUndeliverable:  # a queue of a proxy, or of a daemon of the previous release
            if self._driver.rights is not None:
                raise
            super().direct_send(msg_id, msg)

    def topic_send(self, exchange_name: str, topic: str, msg: Mapping[str, object], timeout: float | None = None,
                   retry: int | None = None, transport_options: oslo_messaging.TransportOptions | None = None) -> None:
        """Send a call. Raises oslo_messaging.MessageUndeliverable as publish_to. For a limited user this means: no
        server exists yet, or the user may not call the contract."""
        if self._driver.rights is None:
            super().topic_send(exchange_name, topic, msg, timeout, retry, transport_options)
        else:
            self.publish_to(exchange_name, topic, msg, timeout, retry)
