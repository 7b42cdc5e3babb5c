"""Answers whose caller has no queue for them at the moment, as after the broker's restart.

As it comes, the library lets a worker wait for the queue, so that calls which name queues that are not there keep all
workers. Then it drops all later answers to that queue for a minute, although the caller is back. Here no worker waits:
an answer that found no queue is tried again beside, a bounded time and a bounded number of them; every other is tried.

This module leans on the library's insides, as the two drivers do that use it.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import logging
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

import oslo_messaging
from oslo_messaging._drivers import amqpdriver, common
from oslo_messaging._drivers.amqp import AMQPDestinationNotFound

from nova import concurrency
from nova.model.base import Library

LOG = logging.getLogger(__name__)

LOOK_S = 0.25  # between two tries
LATE_S = 10.0  # a caller that was there makes its queue again within that
MOST, MOST_OF_ONE = 1000, 8  # answers that are tried again: in all, and of one caller


class _Late(NamedTuple):
    queue: str
    caller: str
    until: float
    send: Callable[[], bool]


class LateAnswers:
    """A driver's. ``caller_of``: who reads the queue of a name; each has but a few answers here."""

    def __init__(self, caller_of: Callable[[str], str] = str) -> None:
        self._caller_of = caller_of
        self._waiting: list[_Late] = []
        self._of = collections.Counter[str]()
        self._runs = False  # whether a thread tries them
        self._lock = threading.Lock()

    def take(self, queue: str, send: Callable[[], bool]) -> None:
        """Call ``send`` until it says that the answer found its queue, or its time is over. Returns at once."""
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
        """Until none is left; the next to be taken starts this anew."""
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
        try:
            if late.send():
                return True
        except Exception as error:  # one that fails must not keep the others
            LOG.warning("an answer to %s failed: %s", late.queue, error)
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
    """A call, at its server; its listener's driver has :class:`LateAnswers` as ``late``."""

    def reply(self, reply: Library = None, failure: Library = None) -> None:
        """Never waits for a queue that is not there."""
        if self.orig_msg_id and not self._sent(reply, failure):  # a cast has no such id
            self.listener.driver.late.take(self.reply_q, functools.partial(self._sent, reply, failure))

    def _sent(self, reply: Library, failure: Library) -> bool:
        try:
            with self.listener.driver._get_connection(common.PURPOSE_SEND) as connection:
                self._send_reply(connection, reply, failure)
        except (oslo_messaging.MessageUndeliverable, AMQPDestinationNotFound):
            return False
        return True

    def heartbeat(self) -> None:
        """The library would send no more after one that found no queue, and the caller would give up work that goes
        on."""
        with contextlib.suppress(oslo_messaging.MessageDeliveryFailure):
            super().heartbeat()


__all__ = ["LATE_S", "IncomingCall", "LateAnswers"]
