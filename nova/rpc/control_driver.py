"""Between control daemons: oslo.messaging's RabbitMQ driver, whose servers lose no call when they stop.

As it comes, a server that stops takes the calls that arrive while its connection is being closed (it waits there for
the deletion of its fanout queue), acknowledges them, and does nothing with them: their callers wait in vain. Here such
a call stays with the broker, which gives it to another server.

It also keeps to the rights of a daemon with few of them (``nova/rpc/control_rights.py``): as it comes, the library
sends answers through the default exchange, by which a user reaches any queue, and declares the exchanges of others.

This module leans on the driver's insides; ``tests/functional/test_control_driver.py`` and ``test_stolen_proxy.py`` fail
when a release changes them.
"""

from __future__ import annotations

import functools
import logging
import uuid
from collections.abc import Callable

import oslo_messaging
from amqp.exceptions import ConnectionError as ConnectionLost
from oslo_messaging._drivers import amqpdriver, base, common, impl_rabbit

from nova.conf.base import Options
from nova.model.base import Library
from nova.rpc.answers import IncomingCall, LateAnswers
from nova.rpc.control_rights import ANSWERS, BOUNDED, BOUNDS, LIMITED
from nova.rpc.passive_publishing import PassivePublisher, topic_exchange

LOG = logging.getLogger(__name__)

REPLIES = "reply_"  # how the names of reply queues begin


class ControlDriver(impl_rabbit.RabbitDriver):
    """The library's own, but for its servers' listener and for what a limited user may not do. ``rights``: those of the
    user that ``url`` names; None: everything."""

    def __init__(self, conf: Options, url: oslo_messaging.TransportURL, **kwargs: Library) -> None:
        super().__init__(conf, url, **kwargs)
        self.late = LateAnswers()
        self.user = next((host.username for host in url.hosts), None) or ""
        self.rights = LIMITED.get(self.user)
        self._connection_pool.connection_cls = functools.partial(ControlConnection, self)

    @property
    def hears_answers(self) -> bool:
        """Whether it binds its reply queue to the exchange of answers. Who serves nothing is answered by those who may
        use the default exchange."""
        return self.rights is None or bool(self.rights.serves)

    def has_exchange(self, name: str) -> bool:
        """Whether that topic exchange is declared in this vhost. MessageDeliveryFailure: the connection was lost."""
        try:
            with self._get_connection(common.PURPOSE_SEND) as connection:
                return bool(connection.has_exchange(name))
        except ConnectionLost as error:
            raise oslo_messaging.MessageDeliveryFailure(str(error)) from None

    def _get_reply_queue_name(self) -> str:
        if self.rights is None:
            name: str = super()._get_reply_queue_name()
            return name
        return f"reply_{self.user}_{uuid.uuid4().hex}"

    def listen(self, target: oslo_messaging.Target, batch_size: int, batch_timeout: float | None) -> Library:
        """A server's three queues: its topic's, its own, and that of all servers of the topic.

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
    """Of a host, in upstream mode: health probes alone come here, and orders by the hosts' driver."""

    def listen(self, target: oslo_messaging.Target, batch_size: int, batch_timeout: float | None) -> Library:
        """A queue of a name of its own: that of orders is named by topic and server."""
        connection = self._get_connection(common.PURPOSE_LISTEN)
        listener = ControlListener(self, connection)
        address = f"{target.topic}.{target.server}"
        connection.declare_topic_consumer(exchange_name=self._default_exchange, topic=address, callback=listener,
                                          queue_name=f"probes.{address}")
        return base.PollStyleListenerAdapter(listener, batch_size, batch_timeout)


class ControlListener(amqpdriver.RpcAMQPListener):
    """Takes no message that nobody would look at any more, and none whose answer would go to a queue of calls."""

    message_cls = IncomingCall

    def __call__(self, message: Library) -> None:
        if self._shutoff.is_set():
            return  # it is not acknowledged, and goes back when the connection is closed
        queue = message.get("_reply_q") or REPLIES
        if queue.startswith(REPLIES):
            super().__call__(message)
        else:
            message.acknowledge()
            LOG.error("%s from %s refused: its answer would go to %s", message.get("method"),
                      (message.get("args") or {}).get("sender"), queue)


class ControlConnection(PassivePublisher):
    """A connection whose answers need not go through the default exchange."""

    def __init__(self, driver: ControlDriver, conf: Options, url: oslo_messaging.TransportURL, purpose: str,
                 retry: int | None = None) -> None:
        self._driver = driver
        super().__init__(conf, url, purpose, retry=retry)

    def declare_direct_consumer(self, topic: str, callback: Callable[[Library], None]) -> None:
        """Where answers come."""
        limited = self._driver.rights is not None  # such a user may not make the exchange: conductors do
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

    def declare_consumer(self, consumer: Library) -> None:
        """Bounded, where limited users may fill the queue."""
        if consumer.routing_key.partition(".")[0] in BOUNDED and consumer.type == "topic":
            consumer.queue_arguments.update(BOUNDS)
        super().declare_consumer(consumer)

    def direct_send(self, msg_id: str, msg: Library) -> None:
        """An answer, to the reply queue that its call named. oslo_messaging.MessageUndeliverable: there is none, or
        this user may not reach it."""
        try:
            self.publish_to(ANSWERS, msg_id, msg)
        except oslo_messaging.MessageUndeliverable:  # a queue of a proxy, or of a daemon of the release before
            if self._driver.rights is not None:
                raise
            super().direct_send(msg_id, msg)

    def topic_send(self, exchange_name: str, topic: str, msg: Library, timeout: float | None = None,
                   retry: int | None = None, transport_options: Library = None) -> None:
        """A call. oslo_messaging.MessageUndeliverable, as publish_to: of a limited user, nobody serves it yet, or it is
        none of its own."""
        if self._driver.rights is None:
            super().topic_send(exchange_name, topic, msg, timeout, retry, transport_options)
        else:
            self.publish_to(exchange_name, topic, msg, timeout, retry)
