"""Process management of all services: start, readiness, heartbeats, log levels at SIGHUP, draining at SIGTERM, and
stop.

Exit codes: 0 stopped on request; 1 could not start (the last log line has the reason); 2 invalid command line or
configuration, which a restart does not repair.
"""

from __future__ import annotations

import contextlib
import logging
import os
import random
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from nova import concurrency, configuration, context, errors, failures, logs, memory
from nova.conf._options import Options, oslo_conf
from nova.configuration import database_urls
from nova.monitoring import counting
from nova.monitoring.workers import Workers, WorkerState
from nova.service_start import DaemonService, Start
from nova.systemd import Waiting, Watchdog, notify
from nova.version import RELEASE

if TYPE_CHECKING:
    from nova.monitoring.health import Health

T = TypeVar("T")

LOG = logging.getLogger(__name__)

WRONG_CONFIGURATION = 2  # exit code: systemd does not restart the service
RESPAWN_S = 1.0
TICK_S = 0.2
LOOK_S = 5.0  # interval of a worker's check that it receives RPC
HEARTBEAT_RETRY_S = 2.0  # after a failed heartbeat: a service reports as soon as the broker is back


def run(conf: Options, binary: str, make: Callable[[int], DaemonService], workers: int = 1,
        at_end: Callable[[], object] = bool) -> int:
    """Run ``workers`` processes of ``make(index)`` until SIGTERM or SIGINT; call ``at_end``, and end this process."""
    process = _Process(conf, binary, make, _watched(conf, binary, workers))
    code = process.work(0) if workers == 1 else _Parent(process, workers).run()
    counting.remove_folder()
    logging.raiseExceptions = False  # threads of an interrupted start may still log
    logging.shutdown()
    at_end()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # threads that still wait are out of time


class _Signals:
    """Signal handlers: SIGTERM and SIGINT request a stop, SIGHUP a reload of log levels."""

    def __init__(self) -> None:
        self.stop = self.reload = False
        signal.signal(signal.SIGTERM, self._asked)
        signal.signal(signal.SIGINT, self._asked)
        signal.signal(signal.SIGHUP, self._reloaded)

    def _asked(self, _number: int, _frame: object) -> None:
        self.stop = True

    def _reloaded(self, _number: int, _frame: object) -> None:
        self.reload = True


class _Watch(NamedTuple):
    """Monitoring of a service's processes. ``sock``: the listening socket; None if monitoring is off."""

    health: Health
    workers: Workers
    sock: socket.socket | None

    def serve(self) -> None:
        """Answer on the socket in a thread; every worker may do so."""
        from nova.monitoring import server

        if self.sock is not None:
            server.serve(self.sock, self.health)


def _watched(conf: Options, binary: str, workers: int) -> _Watch:
    from nova import metrics
    from nova.monitoring import server
    from nova.monitoring.health import Health

    slots = Workers(workers)
    metrics.of_daemon(RELEASE)
    return _Watch(Health(binary, conf.host, slots), slots, server.bind(conf, binary))


class _Process(NamedTuple):
    """Configuration from which each worker of a service is created."""

    conf: Options
    binary: str
    make: Callable[[int], DaemonService]
    watch: _Watch

    def work(self, index: int, parent: int | None = None) -> int:
        """Run one process and return its exit code. ``parent``: pid of the parent that replaces and stops this worker;
        None without one."""
        from nova import metrics, tracing

        metrics.in_worker(index)
        tracing.export(self.conf, self.binary, RELEASE)
        self._turn(index, WorkerState.STARTING)
        signals, started = _Signals(), time.monotonic()
        self.watch.serve()
        begun = self._started(index, signals, parent)
        if begun.service is None:
            return 0 if signals.stop else begun.status
        service = begun.service
        self.watch.health.health_checks = service.health_checks()
        if index == 0:
            notify("READY=1\nSTATUS=")
        LOG.info("%s is ready after %.2f s (%s)", self.binary, time.monotonic() - started, concurrency.mode())
        code = self._serve(index, signals, parent)
        self._turn(index, WorkerState.STOPPING)
        notify("STOPPING=1")
        asked = time.monotonic()
        with failures.keep_running(LOG, "%s did not stop cleanly", self.binary):
            service.stop(float(self.conf.graceful_shutdown_timeout))
        tracing.flush()
        LOG.info("%s stopped after %.2f s", self.binary, time.monotonic() - asked)
        logging.shutdown()
        return code

    def _turn(self, index: int, state: WorkerState) -> None:
        self.watch.workers.turn(index, os.getpid(), state)

    def _started(self, index: int, signals: _Signals, parent: int | None) -> Start:
        """Start the service; the result has none if it cannot start, or was told to stop. Meanwhile systemd is notified
        that a waiting start is in progress."""
        begun, dog, waiting = Start(self.conf, self.binary, self.make, index), Watchdog(), Waiting(self.binary, index)
        while not begun.over:
            self._turn(index, WorkerState.STARTING)
            concurrency.sleep(TICK_S / 4)
            if signals.stop:
                LOG.info("%s received a stop signal before it was ready", self.binary)
                return begun
            waiting.tell()
            if parent is None:
                dog.feed()
        return begun

    def _serve(self, index: int, signals: _Signals, parent: int | None) -> int:
        """Run the main loop until it is time to stop; return the exit code."""
        from nova import metrics

        dog, looked = Watchdog(), time.monotonic()
        released = looked
        health_checks = self.watch.health.health_checks
        assert health_checks is not None
        while not signals.stop:
            turned = time.monotonic()
            self._turn(index, WorkerState.SERVING)
            if parent is None:
                dog.feed()
            concurrency.sleep(TICK_S)
            metrics.WORKER_LAG.observe(max(0.0, time.monotonic() - turned - TICK_S))
            if signals.reload:
                signals.reload = False
                reload_levels(self.conf)
            if parent is not None and os.getppid() != parent:
                LOG.error("parent process of this worker has ended; stopping")
                return 0
            if time.monotonic() - looked > LOOK_S:
                looked = time.monotonic()
                if why := health_checks.why_not_receiving():
                    LOG.error("%s exits to be restarted: %s", self.binary, why)
                    return 1
            if time.monotonic() - released > memory.RELEASE_S:
                released = time.monotonic()
                memory.release()
        return 0


def reload_levels(conf: Options) -> None:
    """Reload the configuration files for options that may change at runtime (mutable options)."""
    source = oslo_conf(conf)
    try:
        configuration.check_again(source)
    except errors.config.Wrong as error:
        LOG.error("configuration was not reloaded, all options are unchanged: %s", error.message)
        return
    source.mutate_config_files()
    database_urls.forget(source, source.prog)
    fresh = Options.of(source)
    logs.set_levels(fresh)
    LOG.info("configuration reloaded: debug is %s", fresh.debug)


class _Parent:
    """Parent process, which forks and monitors the workers. It does no other work, so that it has no state to lose."""

    def __init__(self, process: _Process, workers: int) -> None:
        self.conf, self.binary, self.process, self.workers = process.conf, process.binary, process, workers
        self.children: dict[int, int] = {}  # pid -> index
        self.born: dict[int, float] = {}
        self.failures = 0

    def run(self) -> int:
        signals, dog = _Signals(), Watchdog()
        memory.prepare_sharing()
        for index in range(self.workers):
            self._fork(index)
        while not signals.stop:
            if signals.reload:
                signals.reload = False
                self._signal(signal.SIGHUP)
                reload_levels(self.conf)
            self._end_stuck()
            if (code := self._reap(signals)) is not None:
                return code
            dog.feed()
            time.sleep(TICK_S)
        return self._end()

    def _end_stuck(self) -> None:
        """Kill workers whose main loop is stuck: they are replaced, and their work is resumed."""
        from nova import metrics

        for worker in self.process.watch.workers.all():
            if worker.stuck and worker.pid in self.children:
                LOG.error("worker %d of %s was stuck for %.0f s; killing it", worker.number, self.binary,
                          worker.silent_s)
                metrics.WORKER_ENDS.labels("stuck").inc()
                self.process.watch.workers.gone(worker.number)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker.pid, signal.SIGKILL)

    def _fork(self, index: int) -> None:
        parent, pid = os.getpid(), os.fork()
        if pid == 0:
            code = 1
            try:
                concurrency.forked()
                code = self.process.work(index, parent)
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        self.children[pid], self.born[pid] = index, time.monotonic()

    def _reap(self, signals: _Signals) -> int | None:
        """Replace workers that ended. Return the exit code of the service if workers cannot start at all."""
        for pid in list(self.children):
            done, status = os.waitpid(pid, os.WNOHANG)
            if not done or signals.stop:
                continue
            index, age = self.children.pop(pid), time.monotonic() - self.born.pop(pid)
            code = os.waitstatus_to_exitcode(status)
            if code == WRONG_CONFIGURATION and not self._any_serves():
                self._end()
                return code
            if code == 1 and age < 30 and not self.children and self.failures >= self.workers:
                return 1
            self.failures = self.failures + 1 if code == 1 and age < 30 else 0
            if self.failures > 2 * self.workers:
                self._end()  # this process's remaining files are removed when it ends, not while others use them
                return 1
            LOG.error("worker %d of %s exited with code %d; starting a replacement", index, self.binary, code)
            self._forget(index)
            time.sleep(RESPAWN_S)
            self._fork(index)
        return None

    def _any_serves(self) -> bool:
        """Return whether some worker started with the configuration. Then files or services that another worker misses
        were removed since, and may return."""
        return any(worker.state is WorkerState.SERVING for worker in self.process.watch.workers.all())

    def _forget(self, index: int) -> None:
        from nova import metrics
        from nova.monitoring import exposition

        self.process.watch.workers.gone(index)
        exposition.forget_worker(index)
        metrics.WORKER_ENDS.labels("exit").inc()

    def _signal(self, number: int) -> None:
        for pid in self.children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _end(self) -> int:
        """Forward the stop signal, and wait for the workers' longest time to stop."""
        until, signalled = time.monotonic() + self.conf.graceful_shutdown_timeout + 5, float("-inf")
        while self.children and time.monotonic() < until:
            if time.monotonic() - signalled > RESPAWN_S:  # repeated, as a worker just forked may have missed the first
                signalled = time.monotonic()
                self._signal(signal.SIGTERM)
            for pid in list(self.children):
                with contextlib.suppress(ChildProcessError):
                    if not os.waitpid(pid, os.WNOHANG)[0]:
                        continue
                self.children.pop(pid)
            time.sleep(0.05)
        self._signal(signal.SIGKILL)
        return 0


class PeriodicTask:
    """Periodic call of a function, with jitter; errors are logged, and the next call follows anyway. ``again_s``: delay
    of the next call after an unavailable peer, which is logged once."""

    def __init__(self, seconds: float, function: Callable[[], object], name: str, at_once: bool = False,
                 again_s: float | None = None) -> None:
        self.seconds, self.function, self.name, self.at_once, self.again_s = seconds, function, name, at_once, again_s
        self._stopped = self._unavailable = False

    def start(self) -> PeriodicTask:
        concurrency.spawn(self._loop, name=self.name)
        return self

    def stop(self) -> None:
        """Start no further calls; a running call continues. Does not wait. May be called twice."""
        self._stopped = True

    def _loop(self) -> None:
        wait = 0.0 if self.at_once else self.seconds * random.uniform(0.1, 1)
        while not self._stopped:
            until = time.monotonic() + wait
            while time.monotonic() < until:
                concurrency.sleep(max(0.0, min(1.0, until - time.monotonic())))
                if self._stopped:
                    return
            self._once()
            soon = self._unavailable and self.again_s is not None
            wait = min(self.seconds, self.again_s or 0.0) if soon else self.seconds
            wait *= random.uniform(0.9, 1.1)

    def _once(self) -> None:
        before, self._unavailable = self._unavailable, False
        with context.entered(context.internal()):
            try:
                with failures.keep_running(LOG, "%s failed", self.name, but=errors.NovaError):
                    self.function()
            except errors.NovaError as error:
                self._unavailable = isinstance(error, errors.Unavailable)
                again = before and self._unavailable and self.again_s is not None
                LOG.log(logging.DEBUG if again else logging.WARNING, "%s: %s", self.name, error.message)


def retry_until_available(what: str, function: Callable[[], T], stopped: Callable[[], bool] = lambda: False) -> T:
    """Call until it no longer raises Unavailable, with increasing delays, each of which is logged; return its
    result."""
    wait = 0.5
    while True:
        try:
            return function()
        except errors.Unavailable as error:
            if stopped():
                raise
            LOG.warning("%s is not possible yet, retrying in %.0f s: %s", what, max(1, wait), error.message)
        concurrency.sleep(wait * random.uniform(0.8, 1.2))
        wait = min(wait * 2, 10.0)
