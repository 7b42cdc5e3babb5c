"""Best-effort delivery of events: a bounded queue and one sending thread per process. Callers never wait or fail.

Without a driver, :class:`DisabledNotifier` replaces the notifier. Callers check ``on`` before they build an event, so a
disabled notifier reads, builds and queues nothing.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime
import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from nova import concurrency, errors, failures, metrics
from nova.notifications import legacy, versioned
from nova.notifications.facts import NotifiedServer, Period, Who, shown
from nova.notifications.message import Event, NotificationMessage

LOG = logging.getLogger(__name__)

MOST_WAITING = 10_000  # events: limits the memory while the broker is unreachable
WARN_EVERY_S = 60.0
MOST_REASONS = 10  # log lines per minute: the text of an error may differ each time
MORE_REASONS = "other reasons"
FULL = "the queue is full: the broker is unreachable or too slow"
FORMS = {"unversioned": ("unversioned",), "versioned": ("versioned",), "both": ("unversioned", "versioned")}


@dataclasses.dataclass(frozen=True)
class NotifierOptions:
    """The options of ``[notifications]``, and the host part of publisher ids without a compute host."""

    host: str
    forms: tuple[str, ...] = ("unversioned",)
    level: str = "INFO"
    state_changes: str = ""  # vm_state, vm_and_task_state
    shows_disks: bool = False


class Outlet(Protocol):
    """Destination of messages. ``send`` may take long; its exceptions are logged, and the message is dropped."""

    def send(self, form: str, message: NotificationMessage) -> None:
        """Send a message in a form: ``versioned`` or ``unversioned``."""


class DisabledNotifier:
    """The disabled notifier: no driver is configured."""

    on = False
    options = NotifierOptions(host="")

    def tell(self, event: Event) -> None:
        """Do nothing."""

    def exists(self, server_row: object, period_beginning: datetime.datetime, period_ending: datetime.datetime,
               metadata: Mapping[str, str] | None = None) -> None:
        """Do nothing."""

    def lost(self, count: int, why: str) -> None:
        """Do nothing."""

    def stop(self, seconds: float = 0.0) -> None:
        """Do nothing."""


class Notifier(DisabledNotifier):
    """The process's notifier. Its thread starts with the first event, because workers fork before that."""

    on = True
    timeout_s = 10.0

    def __init__(self, outlet: Outlet, options: NotifierOptions, most: int = MOST_WAITING,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.outlet, self.options, self.clock = outlet, options, clock
        self._queue: queue.Queue[Event] = queue.Queue(most)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._lost: collections.Counter[str] = collections.Counter()
        self._warned_at = -WARN_EVERY_S
        self._hopeless_until = float("-inf")
        metrics.from_zero(metrics.NOTIFICATIONS, ("sent",), ("dropped",))

    def tell(self, event: Event) -> None:
        """Queue the event. If the queue is full, the event is dropped and counted."""
        try:
            self._put(event)
        except queue.Full:
            self.lost(1, FULL)

    def _put(self, event: Event, timeout_s: float = 0.0) -> None:
        self._queue.put(event, block=timeout_s > 0, timeout=timeout_s or None)
        with self._lock:
            if self._thread is None:
                self._thread = concurrency.spawn(self._run, name="notifier")

    def exists(self, server_row: object, period_beginning: datetime.datetime, period_ending: datetime.datetime,
               metadata: Mapping[str, str] | None = None) -> None:
        """Report that a server existed in an audit period (the row has at least the columns ``facts.SHOWN``). Bills
        depend on these events, so this waits for space in the queue. Raises Unavailable after a timeout."""
        row = shown(server_row)
        facts = NotifiedServer(row=row, metadata=metadata or {}, shows_disks=self.options.shows_disks,
                               extra={"period": Period(period_beginning, period_ending)},
                               who=Who(user_id=row.user_id, project_id=row.project_id))
        patience = self.timeout_s if self.clock() >= self._hopeless_until else 0.0
        try:
            self._put(Event("instance.exists", "", facts, row.host or self.options.host), patience)
        except queue.Full:
            self._hopeless_until = self.clock() + WARN_EVERY_S  # the next thousand must not wait, too
            self.lost(1, FULL)
            raise errors.Unavailable("The notification could not be queued: the broker accepts no messages.") from None

    def lost(self, count: int, why: str) -> None:
        """Count dropped events, and log them once a minute."""
        metrics.NOTIFICATIONS.labels("dropped").inc(count)
        with self._lock:
            self._lost[why if why in self._lost or len(self._lost) < MOST_REASONS else MORE_REASONS] += count
            if self.clock() - self._warned_at < WARN_EVERY_S:
                return
            self._warned_at, lost, self._lost = self.clock(), self._lost, collections.Counter()
        for reason, number in lost.items():
            LOG.warning("%d notifications were not sent: %s", number, reason)

    def stop(self, seconds: float = 0.0) -> None:
        """Wait at most so many seconds until queued events are sent."""
        until = time.monotonic() + seconds
        while self.waiting and time.monotonic() < until:
            concurrency.sleep(0.02)
        if left := self.waiting:
            LOG.warning("%d notifications were not sent before the end of this process", left)

    @property
    def waiting(self) -> int:
        """Number of events that are queued or being sent."""
        return self._queue.unfinished_tasks

    def _run(self) -> None:
        while True:
            event = self._queue.get()
            if error := failures.failure_of(self._send, event):  # this thread must survive, for all later events
                LOG.debug("notification %s %s failed", event.name, event.phase, exc_info=error)
                self.lost(1, f"{event.name}: {type(error).__name__}: {error}")
            self._queue.task_done()

    def _send(self, event: Event) -> None:
        for form in self.options.forms:
            made = _MAKERS[form](event, self.options.level)
            if made is not None:
                self.outlet.send(form, made)
                metrics.NOTIFICATIONS.labels("sent").inc()


_MAKERS: dict[str, Callable[[Event, str], NotificationMessage | None]] = {
    "unversioned": legacy.message, "versioned": versioned.message}
