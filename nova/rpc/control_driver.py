"""Between control daemons: oslo.messaging's RabbitMQ driver, whose servers lose no call when they stop.

As it comes, a server that stops takes the calls that arrive while its connection is being closed (it waits there for
the deletion of its fanout queue), acknowledges them, and does nothing with them: their callers wait in vain. Here such
a call stays with the broker, which gives it to another server.

This module leans on the driver's insides; ``tests/functional/test_control_driver.py`` fails when a release changes
them.
"""

from __future__ import annotations

import oslo_messaging
from oslo_messaging._drivers import amqpdriver, base, common, impl_rabbit

from nova.model.base import Library
from nova.rpc.answers import IncomingCall, LateAnswers


class ControlDriver(impl_rabbit.RabbitDriver):
    """The library's own, but for its servers' listener."""

    def __init__(self, *args: Library, **kwargs: Library) -> None:
        super().__init__(*args, **kwargs)
        self.late = LateAnswers()

    def listen(self, target: oslo_messaging.Target, batch_size: int, batch_timeout: float | None) -> Library:
        """A server's three queues: its topic's, its own, and that of all servers of the topic.

        The first two are also bound to the exchange of ``control_exchange``: health probes of deployment tools send
        there.
        """
        connection = self._get_connection(common.PURPOSE_LISTEN)
        listener = ControlListener(self, connection)
        for topic in (target.topic, f"{target.topic}.{target.server}"):
            for exchange in (self._get_exchange(target), self._default_exchange):
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
    """Takes no message that nobody would look at any more."""

    message_cls = IncomingCall

    def __call__(self, message: Library) -> None:
        if not self._shutoff.is_set():  # else it is not acknowledged, and goes back when the connection is closed
            super().__call__(message)
