"""One live migration on its source: sent by one thread, watched by another.

What counts in the end is where the guest is, whatever the call that sent it says: it may have been lost with
libvirtd's connection, or with the nova-compute that made it.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from nova import concurrency, errors
from nova.model.server.states import PowerState
from nova.virt.interface import ProgressListener
from nova.virt.libvirt.hypervisor import Departure, LibvirtHypervisor
from nova.virt.libvirt.moves.watch import Act, Due, MigrationWatch

LOG = logging.getLogger(__name__)

POLL_S = 0.25
REPORT_S = 2.0
ASK_S = 1.0
OUTCOME_S = 30.0  # from a job's end until it shows where the guest is
SILENCE_S = 120.0  # of a libvirtd that is being restarted


@dataclass(frozen=True)
class MigrationListeners:
    """Whom to tell, and whom to ask whether to go on."""

    listener: ProgressListener
    stopped: Callable[[], bool]


class MigrationJob:
    """``departure`` None: the migration was begun by an earlier process, and is only watched."""

    def __init__(self, hypervisor: LibvirtHypervisor, uuid: str, departure: Departure | None, watch: MigrationWatch,
                 post_copy: bool) -> None:
        self._hypervisor, self.uuid, self._departure, self._watch = hypervisor, uuid, departure, watch
        self._post_copy = post_copy
        self._sent = threading.Event()
        self._reason = ""
        self._held = self._watching = self._force_soon = False
        self._gave_up = self._cut_off = False
        self.over = threading.Event()
        self.error: Exception | None = None

    def run(self, listeners: MigrationListeners) -> None:
        """To the end. move.MigrationFailed: the guest is here; host.LibvirtDown, move.MigrationUnclear: only its
        destination knows."""
        try:
            if self._departure is not None:
                if listeners.stopped():
                    raise errors.move.MigrationFailed(uuid=self.uuid, reason="it was called off before it began")
                concurrency.spawn(self._send, self._departure, name="migration")
            else:
                self._sent.set()
            self._watching = True
            self._watch_it(listeners)
            self._finish()
        except Exception as error:
            self.error = error
            raise
        finally:
            self.over.set()

    def abort(self) -> None:
        self._hypervisor.abort_migration(self.uuid)
        self._gave_up = True

    def force(self) -> None:
        """Post-copy where it may; else a pause: what is not changed any more is sent some time."""
        self._watch.forced = True
        if self._post_copy and self._watching and not self._sends_memory():
            self._force_soon = True  # disks come first, and settings: post-copy is of memory
            return
        if self._post_copy:
            try:
                return self._hypervisor.start_post_copy(self.uuid)
            except errors.HostRefused as error:
                LOG.warning("post-copy was not possible, and the guest is paused: %s", error,
                            extra={"server": self.uuid})
        if self._hypervisor.state(self.uuid) == PowerState.RUNNING:
            self._held = True
            self._hypervisor.pause(self.uuid)

    # --- inside

    def _sends_memory(self) -> bool:
        job = self._hypervisor.job(self.uuid)
        return job is not None and job.progress.memory_processed_bytes > 0

    def _send(self, departure: Departure) -> None:
        try:
            self._hypervisor.migrate(self.uuid, departure)
        except errors.host.LibvirtDown as error:
            self._cut_off, self._reason = True, str(error)
        except errors.NovaError as error:
            self._reason = str(error)
        except Exception as error:
            LOG.exception("a migration ended with an error that should not be", extra={"server": self.uuid})
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
                concurrency.sleep(POLL_S)  # an earlier process's: nothing tells us of its end

    def _do(self, due: Due) -> None:
        if due.act == Act.DOWNTIME:
            self._hypervisor.set_downtime(self.uuid, due.downtime_ms)
        elif due.act == Act.FORCE:
            LOG.warning("the migration takes too long and is forced to its end", extra={"server": self.uuid})
            self.force()
        else:
            LOG.warning("the migration takes too long and is aborted", extra={"server": self.uuid})
            self._reason = "it took too long"
            self.abort()

    def _finish(self) -> None:
        """Where the guest is. move.MigrationFailed: it is here, and as it was. One that stands still may have gone on
        there, unless libvirt itself told how the migration ended."""
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
        raise errors.move.MigrationFailed(uuid=self.uuid, reason=self._reason or "it did not come to its end")


class MigrationJobs:
    """Those under way, by server."""

    def __init__(self) -> None:
        self._jobs: dict[str, MigrationJob] = {}
        self._lock = threading.Lock()

    def of(self, uuid: str) -> MigrationJob | None:
        """The server's migration; None when this process has none of it under way."""
        return self._jobs.get(uuid)

    def run(self, uuid: str, make: Callable[[], MigrationJob], listeners: MigrationListeners) -> None:
        """The migration under way to its end, or a new one."""
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
    """What is done along the way must not end the watch: the migration would go on unseen."""
    try:
        yield
    except errors.guest.NotDefined:
        return
    except Exception as error:
        LOG.warning("while a guest migrates: %s", error, extra={"server": uuid})
