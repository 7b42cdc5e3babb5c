"""Admission of orders, one at a time for each server: newer orders supersede older ones, and repeated orders join."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from nova import errors, failures
from nova.compute.host import HostClock, checked_uuid
from nova.compute.orders.fences import Fences
from nova.compute.orders.kind import OrderKind, OrderT
from nova.compute.orders.outcomes import failure
from nova.model.base import Time
from nova.model.guest.orders import START_BY_S, Fence, Outcome

LOG = logging.getLogger(__name__)

REMEMBERED_S = 600.0  # a caller that lost the answer asks again within minutes; later, repeating the order is harmless
PROMPT_S = 2.0  # from sending an order to its start, usually much less; the conductor waits longer
MOST_REMEMBERED = 2000  # for one host; with 60 orders a second, it still covers the time in which orders may be late


class Key(NamedTuple):
    """Identity of an order: orders with the same key are the same order."""

    kind: OrderKind[Any]  # of any order
    server_uuid: str
    operation_id: int
    epoch: int


def _same(key: Key) -> Key:
    """Return the key under which the order is joined and remembered."""
    return key._replace(epoch=0) if key.kind.lasts else key


def _supersedes(key: Key, done: Key) -> bool:
    """True if the result of ``done`` is no longer valid after an order with ``key``."""
    return key.kind != done.kind and (key.kind.undoes or done.kind.undoes)


class Work:
    """An order, in progress or finished (``outcome`` is set). Its handler calls ``check`` between its steps.

    Thousands of finished orders are remembered; they no longer have an event to wait for.
    """

    __slots__ = ("_done", "_stopped", "aborted", "key", "late", "outcome", "overtook", "start_by",
                 "superseded")

    def __init__(self, key: Key, start_by: Time | None = None, late: bool = False) -> None:
        self.key, self.start_by = key, start_by
        self.late = late  # the conductor may have stopped waiting for the outcome before the order started
        self.outcome: Outcome | None = None
        self.overtook: tuple[OrderKind[Any], ...] = ()  # kinds of the orders that it stopped
        self.aborted = False  # by its owner; the handler checks it
        self.superseded = False  # undone since, or done again
        self._stopped = False
        self._done: threading.Event | None = threading.Event()  # None: finished

    def stop(self) -> None:
        """Stop the order, because a newer one has the server: the next ``check`` raises. May be called again."""
        self._stopped = True

    def check(self) -> None:
        """Raise host.OrderStopped if a newer order has the server."""
        if error := self.stopped_error():
            raise error

    def stopped_error(self) -> errors.Overtaken | None:
        """Return the error to end with if a newer order has the server; None otherwise."""
        if not self._stopped:
            return None
        return errors.host.OrderStopped(kind=self.key.kind.name, uuid=self.key.server_uuid)

    def finish(self, outcome: Outcome) -> None:
        """Set the outcome and wake all waiting callers. Called once, when the server is free again."""
        self.outcome = outcome
        done, self._done = self._done, None
        if done is not None:
            done.set()

    def end(self) -> Outcome:
        """Wait for the outcome without a time limit, and return it."""
        outcome = self.wait()
        assert outcome is not None
        return outcome

    def replaced_by(self, key: Key) -> bool:
        """True if this order was overtaken because another runner continues its operation, which has order ``key``."""
        return (self.key.epoch < key.epoch and self.outcome is not None
                and self.outcome.error_kind == errors.Overtaken.kind)

    def wait(self, timeout_s: float | None = None) -> Outcome | None:
        """Wait up to ``timeout_s`` for the outcome; return None if it is not available by then."""
        done = self._done
        if done is not None:
            done.wait(timeout_s)
        return self.outcome


class Ticket(NamedTuple):
    """An admitted order. ``mine``: the holder must run it; otherwise it is running or done elsewhere, and the holder
    waits."""

    work: Work
    mine: bool


class Orders:
    """Admission and execution of this host's orders. ``on_finish(work)`` is called after each order, when its server is
    free again."""

    def __init__(self, fences: Fences, clock: HostClock, on_finish: Callable[[Work], None] = lambda work: None) -> None:
        self._fences, self._clock, self.on_finish = fences, clock, on_finish
        self._running: dict[str, list[Work]] = {}
        self._finished: OrderedDict[Key, tuple[Work, float]] = OrderedDict()
        self._finished_of: dict[str, set[Key]] = {}
        self._returned: dict[str, Work] = {}  # server -> its last order that restored a source copy
        self._locks: dict[str, tuple[threading.Lock, int]] = {}
        self._last_change: dict[str, int] = {}
        self._serial = 0
        self._mutex = threading.RLock()

    def admit(self, kind: OrderKind[OrderT], server_uuid: str, fence: Fence) -> Ticket:
        """Admit an order, or join it if it is in progress. Raises host.OrderOvertaken, host.OrderClosed,
        host.OrderStale, Invalid.

        From then on, older orders of the server are refused, and older orders in progress stop at their next check.
        """
        key = Key(kind, checked_uuid(server_uuid), fence.operation_id, fence.epoch)
        with self._mutex:
            known = self._fences.check(server_uuid, fence.epoch)
            for work in self._running.get(server_uuid, ()):
                if _same(work.key) == _same(key):
                    self._fences.note(server_uuid, fence.epoch, built=kind.makes)
                    return Ticket(work, False)
            if not kind.closes and (fence.epoch <= known.destroyed or self._before_return(key, fence)):
                raise errors.host.OrderClosed(uuid=server_uuid, epoch=max(known.destroyed, fence.epoch),
                                              asked=fence.epoch)
            if remembered := self._remembered(key, fence):
                return Ticket(remembered, False)
            self._refuse_stale(key, fence)
            self._fences.note(server_uuid, fence.epoch, built=kind.makes, destroyed=kind.closes)
            return Ticket(self._begin(key, fence), True)

    def run(self, work: Work, do: Callable[[Work], Outcome]) -> Outcome:
        """Carry out an admitted order, alone on its server. An order that was superseded while it waited is not begun.

        ``do`` turns errors into outcomes; an exception that it raises is a bug.
        """
        uuid = work.key.server_uuid
        try:
            with self.alone(uuid):
                overtaken = work.stopped_error()
                outcome = failure(uuid, overtaken, work.key.kind) if overtaken else do(work)
        except BaseException:  # orders that join this one wait for its outcome, also if the thread ends
            LOG.exception("an order to %s failed unexpectedly", work.key.kind, extra={"server": uuid})
            outcome = Outcome(server_uuid=uuid, ok=False, error_kind=errors.Bug.kind, error_code=errors.Bug.code,
                              error_message=errors.Bug.message)
        self._end(work, outcome)
        return outcome

    def migrating(self, server_uuid: str) -> Work | None:
        """Return the server's live migration that is in progress or waiting; None if there is none."""
        with self._mutex:
            return next((work for work in self._running.get(server_uuid, ()) if work.key.kind.migrates), None)

    @contextlib.contextmanager
    def alone(self, server_uuid: str) -> Iterator[None]:
        """Hold exclusive access to the server; others wait their turn."""
        with self._mutex:
            lock, users = self._locks.get(server_uuid, (threading.Lock(), 0))
            self._locks[server_uuid] = (lock, users + 1)
        try:
            with lock:
                yield
        finally:
            with self._mutex:
                lock, users = self._locks[server_uuid]
                if users == 1:
                    del self._locks[server_uuid]
                else:
                    self._locks[server_uuid] = (lock, users - 1)

    def busy(self, server_uuid: str) -> bool:
        """True if the server has an order in progress, or waiting."""
        with self._mutex:
            return server_uuid in self._running or server_uuid in self._locks

    def mark(self) -> int:
        """Return a point in time, for :meth:`quiet_since`."""
        with self._mutex:
            return self._serial

    def quiet_since(self, server_uuid: str, mark: int) -> bool:
        """True if no order of the server was in progress at any time since ``mark``, so that data read then is still
        valid."""
        with self._mutex:
            return not self.busy(server_uuid) and self._last_change.get(server_uuid, 0) <= mark

    def wait_idle(self, timeout_s: float) -> bool:
        """Wait until no order is in progress; return False if some still are after ``timeout_s``."""
        end = self._clock.monotonic() + timeout_s
        while (works := [work for works in list(self._running.values()) for work in works]):
            left = end - self._clock.monotonic()
            if left <= 0:
                return False
            works[0].wait(left)
        return True

    def _begin(self, key: Key, fence: Fence) -> Work:
        work = Work(key, fence.start_by, self._is_late(fence))
        others = self._running.setdefault(key.server_uuid, [])
        for other in others:
            if other.key.epoch < key.epoch or key.kind.undoes:
                other.stop()
                work.overtook += (other.key.kind,)
        others.append(work)
        for done in self._finished_of.get(key.server_uuid, ()):
            if _supersedes(key, done):
                self._finished[done][0].superseded = True
        if key.kind.returns:
            self._returned[key.server_uuid] = work
        self._changed(key.server_uuid)
        return work

    def _end(self, work: Work, outcome: Outcome) -> None:
        uuid = work.key.server_uuid
        with self._mutex:
            self._running[uuid].remove(work)
            if not self._running[uuid]:
                del self._running[uuid]
            key = _same(work.key)
            self._finished.pop(key, None)  # so that the oldest comes first
            self._finished[key] = (work, self._clock.monotonic())
            self._finished_of.setdefault(uuid, set()).add(key)
            work.superseded = any(_supersedes(other.key, key) for other in self._running.get(uuid, ()))
            self._forget_closed(key)
            if len(self._finished) > MOST_REMEMBERED:
                self._forget(next(iter(self._finished)))
            self._changed(uuid)
            work.finish(outcome)
        with failures.keep_running(LOG, "post-processing of an order failed", extra={"server": uuid}):
            self.on_finish(work)

    def _changed(self, server_uuid: str) -> None:
        self._serial += 1
        self._last_change[server_uuid] = self._serial

    def _remembered(self, key: Key, fence: Fence) -> Work | None:
        """Return the earlier work for this order, if it is still valid; None if the order must be carried out.

        Work that was undone meanwhile is done again: a resize that is retried on the same host leaves it again. The
        exception is a duplicate message, which has the same start-by time. An order that ended because its runner
        was replaced is also done again when the new runner gives it.
        """
        limit = self._clock.monotonic() - REMEMBERED_S
        while self._finished and (first := next(iter(self._finished.items())))[1][1] < limit:
            self._forget(first[0])
        work, _at = self._finished.get(_same(key), (None, 0.0))
        if work is None or work.replaced_by(key):
            return None
        if not work.superseded:
            return work
        return work if fence.start_by is not None and fence.start_by == work.start_by else None

    def _forget_closed(self, ended: Key) -> None:
        """Forget orders that precede the guest's removal: the fence refuses them from now on. ``ended``: the order that
        has just ended, which is remembered in any case."""
        closed = self._fences.known(ended.server_uuid).destroyed
        for key in self._finished_of[ended.server_uuid] - {ended}:
            if not key.kind.closes and self._finished[key][0].key.epoch <= closed:
                self._forget(key)

    def _forget(self, key: Key) -> None:
        del self._finished[key]
        keys = self._finished_of[key.server_uuid]
        keys.discard(key)
        if not keys:
            del self._finished_of[key.server_uuid]
            self._returned.pop(key.server_uuid, None)
            self._last_change.pop(key.server_uuid, None)

    def _before_return(self, key: Key, fence: Fence) -> bool:
        """True if the order was given before its own operation restored the guest: the times of one runner only
        increase."""
        work = self._returned.get(key.server_uuid)
        if work is None or key.kind.returns or work.key.epoch != key.epoch:
            return False
        return fence.start_by is not None and work.start_by is not None and fence.start_by < work.start_by

    def _is_late(self, fence: Fence) -> bool:
        """True if the order was sent a while ago: it was queued while no nova-compute ran here."""
        if fence.start_by is None:
            return False
        return (fence.start_by - self._clock.now()).total_seconds() < START_BY_S - PROMPT_S

    def _refuse_stale(self, key: Key, fence: Fence) -> None:
        now = self._clock.now()
        if fence.start_by is None or now <= fence.start_by:
            return
        # Record the epoch nevertheless: the operation exists, so older ones were superseded.
        self._fences.note(key.server_uuid, key.epoch)
        raise errors.host.OrderStale(kind=key.kind.name, uuid=key.server_uuid,
                                     late=(now - fence.start_by).total_seconds())
