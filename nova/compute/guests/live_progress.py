"""Progress of a live migration: reports it to the conductor, and asks the conductor whether the migration may continue.

The migration itself does not wait: an unavailable conductor gets the report later, and does not stop the migration.
"""

from __future__ import annotations

import contextvars
import logging
import threading
import time
from collections.abc import Callable

from nova import concurrency, failures
from nova.compute.host import Host
from nova.compute.orders.fences import Fences
from nova.model.guest.orders import Permission
from nova.model.server.migrations import MigrationProgress, ProgressReport
from nova.rpc.contracts.conductor_host import ConductorHostRPC

LOG = logging.getLogger(__name__)

STEP_PERCENT = 5  # a report is sent after each such step
EVERY_S = 3.0  # and after this time, if anything is new
LAST_WORD_S = 2.0  # the end of a migration waits this long for its last report
#: The longest time for which the operation may be at an epoch that this host has not seen. A runner that took the
#: operation over orders the migration again, for longer than a lease; a runner that gave it up never does.
LOST_AFTER_S = 30.0


class ProgressWatch:
    """Watches whether the operation still wants the migration. ``lost``: it has continued without this migration."""

    def __init__(self, conductor: ConductorHostRPC, host: Host, fences: Fences, server_uuid: str) -> None:
        self._conductor, self._host, self._fences, self._uuid = conductor, host, fences, server_uuid
        self._refused_at: float | None = None
        self.lost = False

    def refresh(self) -> None:
        """Ask the conductor whether the newest epoch known here is still the server's."""
        asked = Permission(server_uuid=self._uuid, epoch=self._fences.known(self._uuid).epoch)
        granted: bool | None = None
        with failures.keep_running(LOG, "could not check whether a live migration may continue; continuing it: %s",
                level=logging.INFO, extra={"server": self._uuid}):
            granted = any(one.granted for one in self._conductor.may_proceed(self._host.name, (asked,)))
        if granted is None:
            return
        now = self._host.clock.monotonic()
        if granted:
            self._refused_at = None
        elif self._refused_at is None:
            self._refused_at = now
        self.lost = self._refused_at is not None and now - self._refused_at >= LOST_AFTER_S


class LiveProgress:
    """Sends progress reports: at the first call, at each step, after a while, and at the end. ``note`` is the driver's
    listener. A conductor that was unavailable gets the newest numbers when it is back. ``refresh`` is called
    periodically."""

    def __init__(self, conductor: ConductorHostRPC, host: Host, server_uuid: str, epoch: int,
                 refresh: Callable[[], None] = lambda: None) -> None:
        self._conductor, self._host, self._look = conductor, host, refresh
        self._report = ProgressReport(server_uuid=server_uuid, epoch=epoch)
        self._sent: ProgressReport | None = None
        self._wake, self._ended = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> LiveProgress:
        self._wake.set()
        self._thread = concurrency.spawn(contextvars.copy_context().run, self._loop, name="progress")
        return self

    def note(self, percent: int, amounts: MigrationProgress) -> None:
        """Record the progress. ``percent`` from 0 to 100; other values are clamped. Never waits: another thread sends
        the report."""
        self._report = ProgressReport(server_uuid=self._report.server_uuid, epoch=self._report.epoch,
                                      percent=max(0, min(100, percent)), progress=amounts)
        if self._sent is None or self._report.percent // STEP_PERCENT != self._sent.percent // STEP_PERCENT:
            self._wake.set()

    def end(self) -> None:
        """Send the last report, and stop."""
        self._ended.set()
        self._wake.set()
        if self._thread is not None:
            concurrency.join(self._thread, LAST_WORD_S)

    def _loop(self) -> None:
        looked = time.monotonic()
        while True:
            ended = self._ended.is_set()
            self._send()
            if ended:
                return
            self._wake.wait(EVERY_S)
            self._wake.clear()
            if time.monotonic() - looked >= EVERY_S:
                looked = time.monotonic()
                self._look()

    def _send(self) -> None:
        report = self._report
        if report == self._sent:
            return
        about = {"server": report.server_uuid}
        with failures.keep_running(LOG, "the progress of a live migration could not be reported", extra=about), \
                failures.best_effort(LOG, "the progress of a live migration could not be reported: %s",
                                     level=logging.INFO, extra=about):
            self._conductor.report_progress(self._host.name, (report,))
            self._sent = report
