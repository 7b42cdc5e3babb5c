"""Publishing through exchanges that somebody else has declared.

As it comes, the library declares each exchange that it publishes to, for which a broker user needs the right to delete
it, too; and it takes for a lost connection what it does not know: a queue that is full, a key that the user may not
write to.
"""

from __future__ import annotations

import kombu
import oslo_messaging
from amqp.exceptions import AccessRefused, MessageNacked, NotFound
from oslo_messaging._drivers import amqp, impl_rabbit

from nova.model.base import Library


class QueueFull(oslo_messaging.MessageUndeliverable):
    """As many messages wait in the queue as may."""


def topic_exchange(name: str, passive: bool) -> Library:
    """Kept through the broker's restarts. ``passive``: it is not declared, only looked for."""
    return kombu.Exchange(name, type="topic", durable=True, passive=passive)


class PassivePublisher(impl_rabbit.Connection):
    """A connection that can publish without declaring."""

    def publish_to(self, name: str, key: str, msg: Library, timeout: float | None = None, retry: int | None = None,
                   at_least_once: bool = True) -> None:
        """oslo_messaging.MessageUndeliverable: the exchange is not there, has no queue for ``key``, or is not this
        user's to write to. QueueFull."""
        exchange = topic_exchange(name, passive=True)
        self._ensure_publishing(
            self._publish_bounded, exchange, msg, routing_key=key, timeout=timeout,
            retry=retry, transport_options=oslo_messaging.TransportOptions(at_least_once=at_least_once))

    def has_exchange(self, name: str) -> bool:
        """Whether somebody has declared that topic exchange."""
        try:
            topic_exchange(name, passive=True)(self.channel).declare()
        except NotFound:
            self.ensure_connection()  # the broker has closed the channel
            return False
        return True

    def _publish_bounded(self, exchange: Library, msg: Library, routing_key: str, timeout: float | None,
                         transport_options: Library) -> None:
        try:
            self._publish_and_raises_on_missing_exchange(exchange, msg, routing_key, timeout, transport_options)
        except MessageNacked as error:
            raise QueueFull(error, exchange, routing_key, msg) from None
        except (AccessRefused, amqp.AMQPDestinationNotFound) as error:
            self._set_current_channel(None)  # the broker has closed it
            raise oslo_messaging.MessageUndeliverable(error, exchange, routing_key, msg) from None
