"""A live migration on its source: sent by one thread, watched by another.

The result is where the guest runs, not what the migrate call returns: the call may be lost with libvirtd's connection,
or with the nova-compute that made it.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from nova import concurrency, errors, failures
from nova.model.server.states import PowerState
from nova.virt.interface import ProgressListener
from nova.virt.libvirt.hypervisor import LibvirtHypervisor, MigrationParams
from nova.virt.libvirt.moves.watch import Act, Due, MigrationWatch

LOG = logging.getLogger(__name__)

POLL_S = 0.25
REPORT_S = 2.0
ASK_S = 1.0
OUTCOME_S = 30.0  # from a job's end until the guest's location is known
SILENCE_S = 120.0  # for a restart of libvirtd


@dataclass(frozen=True)
class MigrationListeners:
    """The progress listener, and a function that returns true to cancel."""

    listener: ProgressListener
    stopped: Callable[[], bool]


class MigrationJob:
    """A live migration. ``departure`` None: an earlier process started it, and this one only watches it."""

    def __init__(self, hypervisor: LibvirtHypervisor, uuid: str, departure: MigrationParams | None,
                 watch: MigrationWatch, post_copy: bool) -> None:
        self._hypervisor, self.uuid, self._departure, self._watch = hypervisor, uuid, departure, watch
        self._post_copy = post_copy
        self._sent = threading.Event()
        self._reason = ""
        self._held = self._watching = self._force_soon = False
        self._gave_up = self._cut_off = False
        self.over = threading.Event()
        self.error: Exception | None = None

    def run(self, listeners: MigrationListeners) -> None:
        """Run the migration to its end. Raises move.MigrationFailed if the guest is still here; host.LibvirtDown or
        move.MigrationUnclear if only its destination knows."""
        def keep(error: Exception) -> None:
            self.error = error
        try:
            with failures.reported_to(keep, on=Exception):
                if self._departure is not None:
                    if listeners.stopped():
                        raise errors.move.MigrationFailed(uuid=self.uuid, reason="it was cancelled before it began")
                    concurrency.spawn(self._send, self._departure, name="migration")
                else:
                    self._sent.set()
                self._watching = True
                self._watch_it(listeners)
                self._finish()
        finally:
            self.over.set()

    def abort(self) -> None:
        self._hypervisor.abort_migration(self.uuid)
        self._gave_up = True

    def force(self) -> None:
        """Complete the migration: by post-copy if permitted, else by a pause, so that the guest dirties no more
        memory."""
        self._watch.forced = True
        if self._post_copy and self._watching and not self._sends_memory():
            self._force_soon = True  # disks and settings are sent first: post-copy covers only memory
            return
        if self._post_copy:
            with failures.best_effort(LOG, "post-copy failed; pausing the guest instead: %s", on=errors.HostRefused,
                    extra={"server": self.uuid}):
                return self._hypervisor.start_post_copy(self.uuid)
        if self._hypervisor.state(self.uuid) == PowerState.RUNNING:
            self._held = True
            self._hypervisor.pause(self.uuid)

    # --- internal

    def _sends_memory(self) -> bool:
        job = self._hypervisor.job(self.uuid)
        return job is not None and job.progress.memory_processed_bytes > 0

    def _send(self, departure: MigrationParams) -> None:
        try:
            self._hypervisor.migrate(self.uuid, departure)
        except errors.host.LibvirtDown as error:
            self._cut_off, self._reason = True, str(error)
        except errors.NovaError as error:
            self._reason = str(error)
        except Exception as error:  # the thread that watches the migration reports it
            LOG.exception("a live migration failed with an unexpected error", extra={"server": self.uuid})
            self._reason = type(error).__name__
        finally:
            self._sent.set()

    def _watch_it(self, listeners: MigrationListeners) -> None:
        begun = reported = asked = time.monotonic()
        silent_since = None
        while True:
            sent = self._sent.wait(POLL_S)
            now = time.monotonic()
            try:
                job = self._hypervisor.job(self.uuid)
                silent_since = None
            except errors.host.LibvirtDown:
                silent_since = silent_since or now
                if now - silent_since > SILENCE_S:
                    raise
                continue
            if sent and (job is None or job.incoming):
                return
            if job is None:
                continue
            if now - reported >= REPORT_S:
                reported = now
                with _harmless(self.uuid):
                    listeners.listener(job.percent, job.progress)
            if now - asked >= ASK_S and not self._gave_up:
                asked = now
                with _harmless(self.uuid):
                    if listeners.stopped():
                        self.abort()
            if self._force_soon and job.progress.memory_processed_bytes > 0:
                self._force_soon = False
                with _harmless(self.uuid):
                    self.force()
            due = self._watch.due(now - begun)
            if due is not None:
                with _harmless(self.uuid):
                    self._do(due)
            if sent:
                concurrency.sleep(POLL_S)  # started by an earlier process: its end is not notified

    def _do(self, due: Due) -> None:
        if due.act == Act.DOWNTIME:
            self._hypervisor.set_downtime(self.uuid, due.downtime_ms)
        elif due.act == Act.FORCE:
            LOG.warning("the live migration reached its timeout; forcing it to complete", extra={"server": self.uuid})
            self.force()
        else:
            LOG.warning("the live migration reached its timeout; aborting it", extra={"server": self.uuid})
            self._reason = "it reached its timeout"
            self.abort()

    def _finish(self) -> None:
        """Determine where the guest is. Raises move.MigrationFailed if it is here and unchanged. A paused guest may
        already run on the destination, unless libvirt itself reported how the migration ended."""
        until = time.monotonic() + OUTCOME_S
        while True:
            if self._hypervisor.migrated(self.uuid):
                return self._hypervisor.undefine(self.uuid)
            state = self._hypervisor.state(self.uuid)
            known = self._reason and not self._cut_off
            if known or state != PowerState.PAUSED or time.monotonic() >= until:
                break
            concurrency.sleep(POLL_S)
        if state == PowerState.PAUSED and not known:
            raise errors.move.MigrationUnclear(uuid=self.uuid)
        if self._held and state == PowerState.PAUSED:
            self._hypervisor.unpause(self.uuid)
        raise errors.move.MigrationFailed(uuid=self.uuid, reason=self._reason or "it did not complete")


class MigrationJobs:
    """The migrations of this process that are under way, by server."""

    def __init__(self) -> None:
        self._jobs: dict[str, MigrationJob] = {}
        self._lock = threading.Lock()

    def of(self, uuid: str) -> MigrationJob | None:
        """Return the server's migration; None if this process runs none."""
        return self._jobs.get(uuid)

    def run(self, uuid: str, make: Callable[[], MigrationJob], listeners: MigrationListeners) -> None:
        """Join the migration that is under way, or run a new one."""
        with self._lock:
            job = self._jobs.get(uuid)
            mine = job is None
            if job is None:
                job = self._jobs[uuid] = make()
        if not mine:
            job.over.wait()
            if job.error is not None:
                raise job.error
            return
        try:
            job.run(listeners)
        finally:
            with self._lock:
                del self._jobs[uuid]


@contextlib.contextmanager
def _harmless(uuid: str) -> Iterator[None]:
    """Log errors of a step: they must not end the watch, because the migration would continue unwatched."""
    with failures.keep_running(LOG, "error while watching a live migration: %s", level=logging.WARNING,
            extra={"server": uuid}), contextlib.suppress(errors.guest.NotDefined):
        yield
