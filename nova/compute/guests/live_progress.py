"""Beside a live migration: how far it is, reported to the conductor; and whether it may go on, asked of it.

The migration itself waits for nobody: a conductor that is away gets its news later, and stops nothing.
"""

from __future__ import annotations

import contextvars
import logging
import threading
import time
from collections.abc import Callable

from nova import concurrency, errors
from nova.compute.host import Host
from nova.compute.orders.fences import Fences
from nova.model.guest.orders import Permission
from nova.model.server.migrations import MigrationProgress, ProgressReport
from nova.rpc.contracts.conductor_host import ConductorHostRPC

LOG = logging.getLogger(__name__)

STEP_PERCENT = 5  # so much further is worth a message
EVERY_S = 3.0  # and so is anything new after this
LAST_WORD_S = 2.0  # how long the end of a migration waits for its last report
#: For how long its operation may be at an epoch that this host has not heard of: a runner that took it over orders the
#: migration again, and has to for longer than a lease; one that has given it up never does.
LOST_AFTER_S = 30.0


class ProgressWatch:
    """``lost``: the operation has gone on without this migration."""

    def __init__(self, conductor: ConductorHostRPC, host: Host, fences: Fences, server_uuid: str) -> None:
        self._conductor, self._host, self._fences, self._uuid = conductor, host, fences, server_uuid
        self._refused_at: float | None = None
        self.lost = False

    def look(self) -> None:
        """Ask whether the newest epoch that is known here still is the server's."""
        asked = Permission(server_uuid=self._uuid, epoch=self._fences.known(self._uuid).epoch)
        try:
            granted = any(one.granted for one in self._conductor.may_proceed(self._host.name, (asked,)))
        except Exception as error:
            LOG.info("not known whether a live migration may go on, so it does: %s", error,
                     extra={"server": self._uuid})
            return
        now = self._host.clock.monotonic()
        if granted:
            self._refused_at = None
        elif self._refused_at is None:
            self._refused_at = now
        self.lost = self._refused_at is not None and now - self._refused_at >= LOST_AFTER_S


class LiveProgress:
    """``note`` is the driver's listener; reports are sent at its first call, in steps, after a while, and at the end.
    A conductor that is away gets the newest numbers when it is back. ``look`` is called now and then."""

    def __init__(self, conductor: ConductorHostRPC, host: Host, server_uuid: str, epoch: int,
                 look: Callable[[], None] = lambda: None) -> None:
        self._conductor, self._host, self._look = conductor, host, look
        self._report = ProgressReport(server_uuid=server_uuid, epoch=epoch)
        self._sent: ProgressReport | None = None
        self._wake, self._ended = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> LiveProgress:
        self._wake.set()
        self._thread = concurrency.spawn(contextvars.copy_context().run, self._loop, name="progress")
        return self

    def note(self, percent: int, amounts: MigrationProgress) -> None:
        """``percent`` from 0 to 100; what lies beyond is cut. It never waits: the report is sent by another thread."""
        self._report = ProgressReport(server_uuid=self._report.server_uuid, epoch=self._report.epoch,
                                      percent=max(0, min(100, percent)), progress=amounts)
        if self._sent is None or self._report.percent // STEP_PERCENT != self._sent.percent // STEP_PERCENT:
            self._wake.set()

    def end(self) -> None:
        """Tell the last numbers, and no more."""
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
        try:
            self._conductor.report_progress(self._host.name, (report,))
            self._sent = report
        except errors.NovaError as error:
            LOG.info("the progress of a live migration could not be reported: %s", error,
                     extra={"server": report.server_uuid})
        except Exception:
            LOG.exception("the progress of a live migration could not be reported",
                          extra={"server": report.server_uuid})
