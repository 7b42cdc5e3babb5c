"""The conductors' end of the hosts' vhost: receives calls from hosts, any of which may be forged.

Each host has a bounded queue. A conductor takes a few messages of each at a time, and the next ones of a host when
those are *settled* (acknowledged): a call as soon as it is proven, and a message without a valid proof after a pause.
So a host that sends without end gets only its turn among others. Messages without a valid proof are answered and logged
only a few times per second: a host with a wrong clock or secret learns the reason, and a flood costs nothing.

This module uses the driver's internals, as ``nova/rpc/hosts_driver.py`` does.
"""

from __future__ import annotations

import collections
import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import oslo_messaging
from oslo_messaging._drivers import amqpdriver, impl_rabbit

from nova import concurrency, errors, failures
from nova.rpc import codec
from nova.rpc.answers import IncomingCall
from nova.rpc.dispatching import DirectDispatcher
from nova.rpc.host_rights import owner_of
from nova.rpc.rpc_watchdog import ECHO
from nova.rpc.server import Receiver

if TYPE_CHECKING:
    from kombu.message import Message

    from nova.rpc.hosts_driver import CallsConsumer, HostsConnection, HostsDriver

LOG = logging.getLogger(__name__)

PREFETCH = 8  # unsettled messages of one host at a worker
PAUSE_S = 0.2  # before a message without a valid proof is settled
ANSWERED = 5  # messages without a valid proof that are answered, per queue and second
SETTLE_S, IDLE_S = 0.01, 1.0  # timeout of the listener's poll for a message, with and without others to settle


class PerSecond:
    """Counts of events within the current second, by a key."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._second, self._counts = 0, collections.Counter[str]()

    def count(self, key: str) -> int:
        """Count an event, and return its number within this second, from 1."""
        with self._lock:
            second = int(self._clock())
            if second != self._second:
                self._second, self._counts = second, collections.Counter()
            self._counts[key] += 1
            return self._counts[key]


class HostCall(IncomingCall):
    """A message at a conductor. Until it is settled, it occupies one of its host's slots."""

    @property
    def queue(self) -> str:
        """Routing key of the message. If the broker restricts it, it identifies the host that sent the message."""
        return str(self.message.raw.delivery_info.get("routing_key", ""))

    @property
    def user(self) -> str:
        """Broker user that sent the message, verified by the broker; empty if the message has none."""
        return str(self.message.raw.properties.get("user_id") or "")

    def settle(self) -> None:
        """Acknowledge the message, so that the next one of this host is delivered. Called once."""
        self._message_operations_handler.do(self._settle)

    def settle_later(self) -> None:
        """Settle the message after a pause. Returns immediately."""
        concurrency.spawn(self._pause, name="pause")

    def leave_unanswered(self) -> None:
        """Suppress the reply, also if :meth:`reply` is called."""
        self.orig_msg_id = None

    def _pause(self) -> None:
        time.sleep(PAUSE_S)
        self.settle()

    def _settle(self) -> None:
        self.listener.unsettled -= 1
        # connection lost: any conductor may receive the message again, and refuses it
        with failures.keep_running(LOG, "cannot acknowledge a message of %s: %s", self.queue, level=logging.DEBUG):
            self.message.acknowledge()


class Arrived(impl_rabbit.RabbitMessage):
    """A message as received; empty if it cannot be decoded."""

    def __init__(self, raw: Message) -> None:
        try:
            super().__init__(raw)
        except Exception:  # a malicious sender can make the decoder raise any error
            dict.__init__(self)
            self._raw_message = raw

    @property
    def raw(self) -> Message:
        """The library's message, with the broker's delivery properties."""
        return self._raw_message


class _Tasks(amqpdriver.MessageOperationsHandler):
    """Work of the listener's thread between two messages."""

    def __init__(self, also: Callable[[], None]) -> None:
        super().__init__("conductor")
        self._also = also

    def process(self) -> None:
        super().process()
        self._also()


class ConductorListener(amqpdriver.AMQPListener):
    """The listener for calls of all hosts that the driver lists, each with its own queue."""

    message_cls = HostCall

    def __init__(self, driver: HostsDriver, conn: HostsConnection) -> None:
        self.unsettled = 0
        self._hosts: frozenset[str] = frozenset()  # the driver's hosts at the last check
        self._consumers: dict[str, CallsConsumer] = {}
        super().__init__(driver, conn)
        conn.set_shortest_wait(SETTLE_S)  # settling is a task of the listener's thread
        self._message_operations_handler = _Tasks(self._keep_consumers)

    @property
    def _current_timeout(self) -> float:
        """Seconds that the library waits for a message before it runs other tasks."""
        return SETTLE_S if self.unsettled or self.driver.hosts is not self._hosts else IDLE_S

    @_current_timeout.setter
    def _current_timeout(self, _seconds: float) -> None:
        """Ignore the library's poll, which is much shorter after each message: all tasks here are of unsettled ones."""

    def __call__(self, message: Message) -> None:
        arrived = Arrived(message)
        self.unsettled += 1
        take = super().__call__
        if failures.failure_of(take, arrived):  # its context is invalid
            arrived.clear()
            take(arrived)

    def _keep_consumers(self) -> None:
        """Keep one consumer per listed host, and no others."""
        hosts = self.driver.hosts
        if hosts is self._hosts or self._shutdown.is_set():
            return
        for host in sorted(hosts - self._consumers.keys()):
            self._consumers[host] = self.conn.consume_calls(host, self)
        for host in self._consumers.keys() - hosts:
            self.conn.forget_calls(self._consumers.pop(host))
        self._hosts = hosts


class ConductorDispatcher(DirectDispatcher):
    """The dispatcher of proven messages. ``endpoint``: receives each message with the key that proves it. ``clock``: in
    seconds."""

    def __init__(self, endpoint: object, receiver: Receiver, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__([endpoint], receiver.contract.methods)
        self._receiver, self._unproven = receiver, PerSecond(clock)

    def dispatch(self, incoming: HostCall) -> object:  # type: ignore[override]  # the messages of its listener
        """Return the reply; None if no reply is sent."""
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
        except errors.NovaError as error:  # only daemon.RpcReplayed
            self._log(incoming, error)
            incoming.leave_unanswered()
            return None

    def _proven(self, incoming: HostCall, name: object, envelope: object) -> str:
        """Return the key that proves a message. Raises the errors of :meth:`Receiver.proven`, errors.PeerTooOld if this
        release has no such method, and daemon.RpcMalformed."""
        if not isinstance(name, str) or not isinstance(envelope, dict):
            raise errors.daemon.RpcMalformed(reason="no method and arguments")
        if name not in self._receiver.contract.methods:
            raise errors.PeerTooOld(f"no method {name[:100]!r}")
        queue = incoming.reply_q or ""
        if queue != envelope.get("reply_to", "") or queue and owner_of(str(queue)) != envelope.get("sender"):
            incoming.leave_unanswered()
            raise errors.daemon.RpcMalformed(reason=f"its reply would go to queue {str(queue)[:100]}")
        return self._receiver.proven(name, envelope)

    def _refused(self, incoming: HostCall, error: errors.NovaError) -> str | None:
        incoming.settle_later()
        if self._log(incoming, error) > ANSWERED or error.code == errors.daemon.RpcReplayed.code:
            incoming.leave_unanswered()  # the server that accepted it first replies
        if isinstance(error, errors.PeerTooOld):
            self._answer_too_old(incoming, error)
            return None
        return codec.to_text(codec.pack(codec.CallReply(error=codec.error_to_wire(error))))

    def _log(self, incoming: HostCall, error: errors.NovaError) -> int:
        """Log the refusal, and return its number for this queue within this second."""
        count, envelope = self._unproven.count(incoming.queue), incoming.message.get("args")
        if count == 1:
            sender = envelope.get("sender") if isinstance(envelope, dict) else None
            LOG.error("%s from %s refused: %s (broker user %s, queue %s; more within this second are not logged)",
                      incoming.message.get("method"), sender, error, incoming.user or "not given", incoming.queue,
                      extra={"error_code": error.code})
        return count

    @staticmethod
    def _answer_too_old(incoming: HostCall, error: errors.NovaError) -> None:
        """Reply as the library does for an unknown method, but without its traceback in the log."""
        try:
            raise oslo_messaging.NoSuchMethod(error.message)
        except oslo_messaging.NoSuchMethod:
            incoming.reply(failure=sys.exc_info())
        incoming.leave_unanswered()
