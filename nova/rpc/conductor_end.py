"""The conductors' end of the hosts' vhost: calls of hosts, of which each may be the word of a thief.

Each host has a bounded queue. A conductor takes a few messages of each at a time, and the next ones of a host when
those are *settled* (acknowledged): a call as soon as it is proven, and what proves nothing after a pause. So a host
that sends without end gets its turn among others, and no more. What proves nothing is answered, and logged, a few
times a second and no oftener: a host with a wrong clock or secret learns why, and a flood costs nothing.

This module leans on the driver's insides, as ``nova/rpc/hosts_driver.py`` does.
"""

from __future__ import annotations

import collections
import logging
import sys
import threading
import time
from collections.abc import Callable

import oslo_messaging
from oslo_messaging._drivers import amqpdriver, impl_rabbit
from oslo_messaging.rpc import dispatcher as oslo_dispatcher

from nova import concurrency, errors
from nova.model.base import Library
from nova.rpc import codec
from nova.rpc.answers import IncomingCall
from nova.rpc.hearing import ECHO
from nova.rpc.host_rights import owner_of
from nova.rpc.server import Receiver

LOG = logging.getLogger(__name__)

PREFETCH = 8  # messages of one host that a worker has and that are not settled
PAUSE_S = 0.2  # before a message that proves nothing is settled
ANSWERED = 5  # messages that prove nothing and are answered, of one queue in a second
SETTLE_S, IDLE_S = 0.01, 1.0  # how long the listener waits for a message, with and without others to settle


class PerSecond:
    """Counts what happens within the present second, by a key."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._second, self._counts = 0, collections.Counter[str]()

    def count(self, key: str) -> int:
        """Which one of this second it is, from 1."""
        with self._lock:
            second = int(self._clock())
            if second != self._second:
                self._second, self._counts = second, collections.Counter()
            self._counts[key] += 1
            return self._counts[key]


class HostCall(IncomingCall):
    """A message at a conductor. Until it is settled, it takes one of the places of its host."""

    @property
    def queue(self) -> str:
        """The routing key that it came by: where the broker restricts it, the host that sent it."""
        return str(self.message.raw.delivery_info.get("routing_key", ""))

    @property
    def user(self) -> str:
        """The broker user that sent it, which the broker has checked; empty when it did not say."""
        return str(self.message.raw.properties.get("user_id") or "")

    def settle(self) -> None:
        """Let the next message of this host come. Called once."""
        self._message_operations_handler.do(self._settle)

    def settle_later(self) -> None:
        """The same after a pause. Returns at once."""
        concurrency.spawn(self._pause, name="pause")

    def leave_unanswered(self) -> None:
        """Send no answer, whatever :meth:`reply` is given."""
        self.orig_msg_id = None

    def _pause(self) -> None:
        time.sleep(PAUSE_S)
        self.settle()

    def _settle(self) -> None:
        self.listener.unsettled -= 1
        try:
            self.message.acknowledge()
        except Exception as error:  # the connection is lost: it comes again, to any conductor, and is refused there
            LOG.debug("a message of %s cannot be acknowledged: %s", self.queue, error)


class Arrived(impl_rabbit.RabbitMessage):
    """A message as it came: with nothing in it where it cannot be read."""

    def __init__(self, raw: Library) -> None:
        try:
            super().__init__(raw)
        except Exception:  # whatever a thief can make the decoder raise
            dict.__init__(self)
            self._raw_message = raw

    @property
    def raw(self) -> Library:
        """The library's message, with what the broker says of it."""
        return self._raw_message


class _Tasks(amqpdriver.MessageOperationsHandler):
    """What the listener's thread does between two messages."""

    def __init__(self, also: Callable[[], None]) -> None:
        super().__init__("conductor")
        self._also = also

    def process(self) -> None:
        super().process()
        self._also()


class ConductorListener(amqpdriver.AMQPListener):
    """Takes calls of all hosts that the driver says, of each from its own queue."""

    message_cls = HostCall

    def __init__(self, driver: Library, conn: Library) -> None:
        self.unsettled, self._idle_s = 0, IDLE_S
        self._hosts: frozenset[str] = frozenset()  # as the driver said when this last looked
        self._consumers: dict[str, Library] = {}
        super().__init__(driver, conn)
        self._message_operations_handler = _Tasks(self._keep_consumers)

    @property
    def _current_timeout(self) -> float:
        """How long the library waits for a message before it looks what else there is to do."""
        return SETTLE_S if self.unsettled or self.driver.hosts is not self._hosts else self._idle_s

    @_current_timeout.setter
    def _current_timeout(self, seconds: float) -> None:
        self._idle_s = min(seconds, IDLE_S)

    def __call__(self, message: Library) -> None:
        arrived = Arrived(message)
        self.unsettled += 1
        try:
            super().__call__(arrived)
        except Exception:  # its context is none
            arrived.clear()
            super().__call__(arrived)

    def _keep_consumers(self) -> None:
        """A consumer for each host, and none for others."""
        hosts = self.driver.hosts
        if hosts is self._hosts or self._shutdown.is_set():
            return
        for host in sorted(hosts - self._consumers.keys()):
            self._consumers[host] = self.conn.consume_calls(host, self)
        for host in self._consumers.keys() - hosts:
            self.conn.forget_calls(self._consumers.pop(host))
        self._hosts = hosts


class ConductorDispatcher(oslo_dispatcher.RPCDispatcher):
    """Hands on what is proven. ``endpoint``: takes it, with the key that proves it. ``clock``: seconds."""

    def __init__(self, endpoint: Library, receiver: Receiver, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__([endpoint], None, oslo_dispatcher.DefaultRPCAccessPolicy)
        self._receiver, self._unproven = receiver, PerSecond(clock)

    def dispatch(self, incoming: HostCall) -> object:
        """The answer; None where nobody is to have one."""
        name, envelope = incoming.message.get("method"), incoming.message.get("args")
        if name == ECHO.name:
            incoming.settle_later()
            if self._unproven.count(incoming.queue) > ANSWERED:
                incoming.leave_unanswered()
            return ""
        try:
            incoming.ctxt = {"key": self._proven(incoming, name, envelope)}
        except errors.NovaError as error:
            return self._refused(incoming, error)
        incoming.settle()
        try:
            return super().dispatch(incoming)
        except errors.NovaError as error:  # daemon.RpcReplayed alone
            self._log(incoming, error)
            incoming.leave_unanswered()
            return None

    def _proven(self, incoming: HostCall, name: object, envelope: object) -> str:
        """The key that proves a message. What :meth:`Receiver.proven` raises; errors.PeerTooOld: this release has no
        such method; daemon.RpcMalformed."""
        if not isinstance(name, str) or not isinstance(envelope, dict):
            raise errors.daemon.RpcMalformed(reason="no method and arguments")
        if name not in self._receiver.contract.methods:
            raise errors.PeerTooOld(f"no method {name[:100]!r}")
        queue = incoming.reply_q or ""
        if queue != envelope.get("reply_to", "") or queue and owner_of(str(queue)) != envelope.get("sender"):
            incoming.leave_unanswered()
            raise errors.daemon.RpcMalformed(reason=f"its answer would go to {str(queue)[:100]}")
        return self._receiver.proven(name, envelope)

    def _refused(self, incoming: HostCall, error: errors.NovaError) -> str | None:
        incoming.settle_later()
        if self._log(incoming, error) > ANSWERED or error.code == errors.daemon.RpcReplayed.code:
            incoming.leave_unanswered()  # who took it the first time answers
        if isinstance(error, errors.PeerTooOld):
            self._answer_too_old(incoming, error)
            return None
        return codec.to_text(codec.pack(codec.CallReply(error=codec.error_to_wire(error))))

    def _log(self, incoming: HostCall, error: errors.NovaError) -> int:
        """Which refusal of its queue within this second it is."""
        count, envelope = self._unproven.count(incoming.queue), incoming.message.get("args")
        if count == 1:
            sender = envelope.get("sender") if isinstance(envelope, dict) else None
            LOG.error("%s from %s refused: %s (broker user %s, queue %s; more of this second are not logged)",
                      incoming.message.get("method"), sender, error, incoming.user or "not given", incoming.queue,
                      extra={"error_code": error.code})
        return count

    @staticmethod
    def _answer_too_old(incoming: HostCall, error: errors.NovaError) -> None:
        """As the library does for a method that nobody has, without its traceback in the log."""
        try:
            raise oslo_messaging.NoSuchMethod(error.message)
        except oslo_messaging.NoSuchMethod:
            incoming.reply(failure=sys.exc_info())
        incoming.leave_unanswered()
