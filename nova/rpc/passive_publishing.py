"""Connections that publish to exchanges that another user has declared, and that wait for messages without a poll.

By default, the library declares each exchange that it publishes to, for which a broker user needs the right to delete
it, too. It also treats errors that it does not know as a lost connection: a full queue, or a routing key that the user
may not write to.

After each message, the library polls at short intervals for tasks of other threads, such as acknowledgements. Calls and
replies are acknowledged when they arrive, so that nothing waits for such a poll.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import kombu
import oslo_messaging
from amqp.exceptions import AccessRefused, MessageNacked, NotFound
from oslo_messaging._drivers import amqp, common, impl_rabbit

from nova import failures

#: Errors that the library never retries: results of an attempt.
FINAL = (amqp.AMQPDestinationNotFound, oslo_messaging.MessageUndeliverable, common.Timeout)
#: Seconds of one wait for messages. It ends sooner with a message, and within a second with a stop.
WAIT_S = 5.0


class QueueFull(oslo_messaging.MessageUndeliverable):
    """The queue holds its maximum of messages or bytes."""


def topic_exchange(name: str, passive: bool, transient: bool = False) -> kombu.Exchange:
    """Return a durable topic exchange. ``passive``: it is not declared; a missing one is an error. ``transient``:
    messages to it are lost if the broker restarts."""
    return kombu.Exchange(name, type="topic", durable=True, passive=passive,
                          delivery_mode="transient" if transient else "persistent")


class PassivePublisher(impl_rabbit.Connection):
    """A connection that can publish without declaring exchanges."""

    _shortest_wait_s = WAIT_S
    _timeout_of: tuple[object, float] | None = None  # the channel and the timeout that were set last

    def set_shortest_wait(self, seconds: float) -> None:
        """Set the least time of a wait for messages, if none arrives: 5 s by default. It is a method, because an
        attribute that is set on the library's ConnectionContext does not reach its connection."""
        self._shortest_wait_s = seconds

    def consume(self, timeout: float | None = None) -> None:
        """Wait for a message. Raises the library's Timeout after ``timeout`` seconds, or the shortest wait."""
        super().consume(None if timeout is None else max(timeout, self._shortest_wait_s))

    def ensure(self, method: Callable[[], object], retry: int | None = None, **callbacks: object) -> object:
        """Run the method, with the library's retries. Its first attempt is made without their preparation, for which
        kombu creates a class each time; if it fails, its error is that of the library's first attempt."""
        if self.channel is None:
            return super().ensure(method, retry, **callbacks)
        found: list[object] = []
        error = failures.failure_of(lambda: found.append(method()))
        if error is None:
            return found[0]
        if isinstance(error, FINAL):
            raise error
        failed = [error]

        def attempt() -> object:
            if failed:
                raise failed.pop()
            return method()
        return super().ensure(attempt, retry, **callbacks)  # the library knows which errors are retried

    def set_transport_socket_timeout(self, timeout: float | None = None) -> None:
        """Set the socket's timeout, unless it is set already: the library sets it before and after each message, and
        mostly to that of heartbeats, since ``timeout`` cannot be longer."""
        most = self.heartbeat_timeout_threshold or math.inf  # 0: no heartbeats
        wanted = (self.channel, most if timeout is None else min(timeout, most))
        if wanted != self._timeout_of:
            super().set_transport_socket_timeout(timeout)
            self._timeout_of = wanted

    def publish_to(self, name: str, key: str, msg: Mapping[str, object], timeout: float | None = None,
                   retry: int | None = None, at_least_once: bool = True) -> None:
        """Publish a message. Raises oslo_messaging.MessageUndeliverable if the exchange does not exist, has no queue
        for ``key``, or this user may not write to it. Raises QueueFull.

        A message with a ``timeout`` is a call, whose caller waits for the reply and repeats it if necessary. The broker
        confirms it without writing it to its disk.
        """
        exchange = topic_exchange(name, passive=True, transient=timeout is not None)
        self._ensure_publishing(
            self._publish_bounded, exchange, msg, routing_key=key, timeout=timeout,
            retry=retry, transport_options=oslo_messaging.TransportOptions(at_least_once=at_least_once))

    def has_exchange(self, name: str) -> bool:
        """Return whether that topic exchange exists."""
        with self._connection_lock:  # the heartbeat thread would read the broker's reply, and this one wait forever
            try:
                topic_exchange(name, passive=True)(self.channel).declare()
            except NotFound:
                self.ensure_connection()  # the broker has closed the channel
                return False
        return True

    def _publish_bounded(self, exchange: kombu.Exchange, msg: Mapping[str, object], routing_key: str,
                         timeout: float | None, transport_options: oslo_messaging.TransportOptions) -> None:
        try:
            self._publish_and_raises_on_missing_exchange(exchange, msg, routing_key, timeout, transport_options)
        except MessageNacked as error:
            raise QueueFull(error, exchange, routing_key, msg) from None
        except (AccessRefused, amqp.AMQPDestinationNotFound) as error:
            self._set_current_channel(None)  # the broker has closed it
            raise oslo_messaging.MessageUndeliverable(error, exchange, routing_key, msg) from None
