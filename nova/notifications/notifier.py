"""Sends events from a bounded queue, by one thread of the process: who tells one never waits and never fails.

Off (no driver), there is a :class:`Silent` in its place, and those who would tell something look at ``on`` first:
nothing is read, built or queued.
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

from nova import concurrency, errors, metrics
from nova.model.base import Json
from nova.notifications import legacy, versioned
from nova.notifications.facts import NotifiedServer, Period, Who, shown
from nova.notifications.message import Event, NotificationMessage

LOG = logging.getLogger(__name__)

MOST_WAITING = 10_000  # events: a broker that is away for long must not fill the memory
WARN_EVERY_S = 60.0
MOST_REASONS = 10  # lines a minute: an error's text may be another one each time
MORE_REASONS = "other reasons"
FULL = "the queue is full: the broker does not take them, or not fast enough"
FORMS = {"unversioned": ("unversioned",), "versioned": ("versioned",), "both": ("unversioned", "versioned")}


@dataclasses.dataclass(frozen=True)
class NotifierOptions:
    """Those of ``[notifications]``, and the host part of publisher ids that are no compute host's."""

    host: str
    forms: tuple[str, ...] = ("unversioned",)
    level: str = "INFO"
    state_changes: str = ""  # vm_state, vm_and_task_state
    shows_disks: bool = False


class Outlet(Protocol):
    """Where messages go. ``send`` may take long; what it raises is logged, and the message is lost."""

    def send(self, form: str, message: NotificationMessage) -> None:
        """Send a message in a form: ``versioned`` or ``unversioned``."""


class Silent:
    """Tells nothing: no driver is configured."""

    on = False
    options = NotifierOptions(host="")

    def tell(self, event: Event) -> None:
        """Nothing to do."""

    def exists(self, server_row: object, period_beginning: datetime.datetime, period_ending: datetime.datetime,
               metadata: Mapping[str, str] | None = None) -> None:
        """Nothing to do."""

    def lost(self, count: int, why: str) -> None:
        """Nothing to do."""

    def stop(self, seconds: float = 0.0) -> None:
        """Nothing to do."""


class Notifier(Silent):
    """The process's way out for events. The thread starts with the first one: workers fork before that."""

    on = True
    patience_s = 10.0

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
        """Queue the event. One that finds no room is lost, and counted."""
        try:
            self._put(event)
        except queue.Full:
            self.lost(1, FULL)

    def _put(self, event: Event, patience_s: float = 0.0) -> None:
        self._queue.put(event, block=patience_s > 0, timeout=patience_s or None)
        with self._lock:
            if self._thread is None:
                self._thread = concurrency.spawn(self._run, name="notifier")

    def exists(self, server_row: Json, period_beginning: datetime.datetime, period_ending: datetime.datetime,
               metadata: Mapping[str, str] | None = None) -> None:
        """Tell that a server existed in an audit period (the row has the columns ``facts.SHOWN`` at least). Bills are
        made of these: it waits for room in the queue. Unavailable when there is none for long."""
        facts = NotifiedServer(row=shown(server_row), metadata=metadata or {}, shows_disks=self.options.shows_disks,
                               extra={"period": Period(period_beginning, period_ending)},
                               who=Who(user_id=server_row.user_id, project_id=server_row.project_id))
        patience = self.patience_s if self.clock() >= self._hopeless_until else 0.0
        try:
            self._put(Event("instance.exists", "", facts, server_row.host or self.options.host), patience)
        except queue.Full:
            self._hopeless_until = self.clock() + WARN_EVERY_S  # the next thousand need not wait as long each
            self.lost(1, FULL)
            raise errors.Unavailable("The notification could not be queued: the broker does not take any.") from None

    def lost(self, count: int, why: str) -> None:
        """Count events that nobody will get, and say so once a minute."""
        metrics.NOTIFICATIONS.labels("dropped").inc(count)
        with self._lock:
            self._lost[why if why in self._lost or len(self._lost) < MOST_REASONS else MORE_REASONS] += count
            if self.clock() - self._warned_at < WARN_EVERY_S:
                return
            self._warned_at, lost, self._lost = self.clock(), self._lost, collections.Counter()
        for reason, number in lost.items():
            LOG.warning("%d notifications were not sent: %s", number, reason)

    def stop(self, seconds: float = 0.0) -> None:
        """Give what is queued so many seconds to get out."""
        until = time.monotonic() + seconds
        while self.waiting and time.monotonic() < until:
            concurrency.sleep(0.02)
        if left := self.waiting:
            LOG.warning("%d notifications were not sent before the end of this process", left)

    @property
    def waiting(self) -> int:
        """Events that are queued or being sent."""
        return self._queue.unfinished_tasks

    def _run(self) -> None:
        while True:
            event = self._queue.get()
            try:
                self._send(event)
            except Exception as error:  # this thread serves all events to come, whatever is wrong with this one
                LOG.debug("notification %s %s failed", event.name, event.phase, exc_info=True)
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
