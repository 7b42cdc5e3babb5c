"""Replies whose caller has no reply queue at the moment, for example after a restart of the broker.

By default, oslo.messaging blocks a worker until the queue exists, so calls that name missing queues occupy all workers.
Then it drops all later replies to that queue for a minute, although the caller is back. Here no worker waits: a reply
that found no queue is retried in a separate thread, for a limited time. The number of such replies is limited, too. All
other replies are sent as usual.

This module uses the library's internals, as do the two drivers that use it.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import oslo_messaging
from oslo_messaging._drivers import amqpdriver, common
from oslo_messaging._drivers.amqp import AMQPDestinationNotFound

from nova import concurrency, failures

if TYPE_CHECKING:
    from _typeshed import OptExcInfo

LOG = logging.getLogger(__name__)

LOOK_S = 0.25  # between two attempts
LATE_S = 10.0  # a caller that still runs creates its queue again within this time
MOST, MOST_OF_ONE = 1000, 8  # replies that wait for another attempt: in total, and for one caller


class _Late(NamedTuple):
    queue: str
    caller: str
    until: float
    send: Callable[[], bool]


class PendingReplies:
    """The late replies of one driver. ``caller_of`` maps a queue's name to its reader; each reader has a limited
    share."""

    def __init__(self, caller_of: Callable[[str], str] = str) -> None:
        self._caller_of = caller_of
        self._waiting: list[_Late] = []
        self._of = collections.Counter[str]()
        self._runs = False  # True while a thread delivers them
        self._lock = threading.Lock()

    def take(self, queue: str, send: Callable[[], bool]) -> None:
        """Call ``send`` until it reports that the reply found its queue, or its time is over. Returns immediately."""
        caller = self._caller_of(queue)
        with self._lock:
            full = len(self._waiting) >= MOST or self._of[caller] >= MOST_OF_ONE
            if not full:
                self._waiting.append(_Late(queue, caller, time.monotonic() + LATE_S, send))
                self._of[caller] += 1
            begins = not full and not self._runs
            self._runs = self._runs or begins
        if full:
            _say_dropped(queue)
        if begins:
            concurrency.spawn(self._deliver, name="late-answers")

    def _deliver(self) -> None:
        """Retry until no reply is left. The next call of :meth:`take` starts this thread again."""
        while waiting := self._left():
            time.sleep(LOOK_S)
            for late in waiting:
                if self._is_over(late):
                    self._forget(late)

    def _left(self) -> list[_Late]:
        with self._lock:
            self._runs = bool(self._waiting)
            return self._waiting[:]

    @staticmethod
    def _is_over(late: _Late) -> bool:
        # a failed reply must not block the others
        with failures.keep_running(LOG, "cannot send a reply to %s: %s", late.queue, level=logging.WARNING):
            if late.send():
                return True
        if time.monotonic() < late.until:
            return False
        _say_dropped(late.queue)
        return True

    def _forget(self, late: _Late) -> None:
        with self._lock:
            self._waiting.remove(late)
            self._of -= collections.Counter({late.caller: 1})


def _say_dropped(queue: str) -> None:
    LOG.warning("reply queue %s has no consumer; reply dropped", queue)


class IncomingCall(amqpdriver.AMQPIncomingMessage):
    """A call at its server. The driver of its listener has :class:`PendingReplies` as ``late``."""

    def reply(self, reply: object = None, failure: OptExcInfo | None = None) -> None:
        """Send the reply, without waiting for a missing queue."""
        if self.orig_msg_id and not self._sent(reply, failure):  # a cast has no such id
            self.listener.driver.late.take(self.reply_q, functools.partial(self._sent, reply, failure))

    def _sent(self, reply: object, failure: OptExcInfo | None) -> bool:
        with contextlib.suppress(oslo_messaging.MessageUndeliverable, AMQPDestinationNotFound):
            with self.listener.driver._get_connection(common.PURPOSE_SEND) as connection:
                self._send_reply(connection, reply, failure)
            return True
        return False

    def heartbeat(self) -> None:
        """Send a heartbeat, also if an earlier one found no queue. The library would stop, and the caller would abandon
        work that still runs."""
        with contextlib.suppress(oslo_messaging.MessageDeliveryFailure):
            super().heartbeat()


__all__ = ["LATE_S", "IncomingCall", "PendingReplies"]
