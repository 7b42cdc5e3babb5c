"""What every daemon is: processes that start, say so, beat, re-read levels at SIGHUP, drain at SIGTERM, and stop.

Exit codes: 0 stopped as asked; 1 could not start (the last log line says why); 2 bad command line or configuration.
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
from typing import Protocol, TypeVar

from nova import concurrency, context, errors, logs
from nova.conf.base import Options

T = TypeVar("T")

LOG = logging.getLogger(__name__)

RESPAWN_S = 1.0
TICK_S = 0.2
BEAT_AGAIN_S = 2.0  # after a heartbeat that reached nobody: who was cut off is heard of as soon as the broker is back


class DaemonService(Protocol):
    """One process's work. ``start`` returns once it serves; ``stop`` drains for at most ``seconds``."""

    def start(self) -> None: ...

    def stop(self, seconds: float) -> None:
        """Take nothing new and let what runs end; return after ``seconds`` at the latest."""


def notify(state: str) -> None:
    """Tell systemd (sd_notify(3)), where there is one."""
    path = os.environ.get("NOTIFY_SOCKET")
    if not path:
        return
    address = "\0" + path[1:] if path.startswith("@") else path
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.sendto(state.encode(), address)


def run(conf: Options, binary: str, make: Callable[[int], DaemonService], workers: int = 1) -> int:
    """Run ``workers`` processes of the service ``make(index)`` until SIGTERM or SIGINT, and end this one."""
    code = _work(conf, binary, make, 0) if workers == 1 else _Parent(conf, binary, make, workers).run()
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # whatever still waits in a thread has had its time


class _Signals:
    """SIGTERM and SIGINT ask to stop; SIGHUP to read log levels again."""

    def __init__(self) -> None:
        self.stop = self.reload = False
        signal.signal(signal.SIGTERM, self._asked)
        signal.signal(signal.SIGINT, self._asked)
        signal.signal(signal.SIGHUP, self._reloaded)

    def _asked(self, _number: int, _frame: object) -> None:
        self.stop = True

    def _reloaded(self, _number: int, _frame: object) -> None:
        self.reload = True


def _work(conf: Options, binary: str, make: Callable[[int], DaemonService], index: int,
          parent: int | None = None) -> int:
    """One process's life. ``parent``: whose worker it is; without it nobody would replace or stop this one."""
    signals = _Signals()
    started = time.monotonic()
    begun = _Start(binary, make, index)
    while not begun.over:
        concurrency.sleep(TICK_S / 4)
        if signals.stop:
            LOG.info("%s was told to stop before it was ready", binary)
            return 0
    if begun.service is None:
        return 1
    service = begun.service
    if index == 0:
        notify("READY=1")
    LOG.info("%s is ready after %.2f s (%s)", binary, time.monotonic() - started, concurrency.mode())
    while not signals.stop:
        concurrency.sleep(TICK_S)
        if signals.reload:
            signals.reload = False
            reload_levels(conf)
        if parent is not None and os.getppid() != parent:
            LOG.error("the parent of this worker is gone, so it stops too")
            break
    notify("STOPPING=1")
    asked = time.monotonic()
    try:
        service.stop(float(conf.graceful_shutdown_timeout))
    except Exception:
        LOG.exception("%s did not stop cleanly", binary)
    LOG.info("%s stopped after %.2f s", binary, time.monotonic() - asked)
    logging.shutdown()
    return 0


class _Start:
    """A service's start beside the main thread, which has signals to look after."""

    def __init__(self, binary: str, make: Callable[[int], DaemonService], index: int) -> None:
        self.over, self.service = False, None  # type: bool, DaemonService | None
        concurrency.spawn(self._run, binary, make, index, name="start")

    def _run(self, binary: str, make: Callable[[int], DaemonService], index: int) -> None:
        try:
            service = make(index)
            service.start()
            self.service = service
        except errors.NovaError as error:
            LOG.error("%s can not start: %s", binary, error.message)
        except Exception as error:
            LOG.exception("a failure that nobody foresaw, while %s started", binary)
            LOG.error("%s can not start: %s: %s. It is no known fault of this machine: please report it with the line "
                      "before, which says where it happened", binary, type(error).__name__, error)
        finally:
            self.over = True


def reload_levels(conf: Options) -> None:
    """Read the files again for what may change while running (mutable options)."""
    try:
        conf.mutate_config_files()
        logs.set_levels(conf)
        LOG.info("configuration read again: debug is %s", conf.debug)
    except Exception as error:
        LOG.error("the configuration could not be read again, nothing was changed: %s", error)


class _Parent:
    """Forks the workers and keeps them; does no work of its own, so that it has nothing to lose."""

    def __init__(self, conf: Options, binary: str, make: Callable[[int], DaemonService], workers: int) -> None:
        self.conf, self.binary, self.make, self.workers = conf, binary, make, workers
        self.children: dict[int, int] = {}  # pid -> index
        self.born: dict[int, float] = {}
        self.failures = 0

    def run(self) -> int:
        signals = _Signals()
        for index in range(self.workers):
            self._fork(index)
        while not signals.stop:
            if signals.reload:
                signals.reload = False
                self._signal(signal.SIGHUP)
                reload_levels(self.conf)
            if not self._reap(signals):
                return 1
            time.sleep(TICK_S)
        return self._end()

    def _fork(self, index: int) -> None:
        parent, pid = os.getpid(), os.fork()
        if pid == 0:
            code = 1
            try:
                concurrency.forked()
                code = _work(self.conf, self.binary, self.make, index, parent)
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        self.children[pid], self.born[pid] = index, time.monotonic()

    def _reap(self, signals: _Signals) -> bool:
        """Replace workers that ended. False: they can not start at all."""
        for pid in list(self.children):
            done, status = os.waitpid(pid, os.WNOHANG)
            if not done or signals.stop:
                continue
            index, age = self.children.pop(pid), time.monotonic() - self.born.pop(pid)
            code = os.waitstatus_to_exitcode(status)
            if code == 1 and age < 30 and not self.children and self.failures >= self.workers:
                return False
            self.failures = self.failures + 1 if code == 1 and age < 30 else 0
            if self.failures > 2 * self.workers:
                self._signal(signal.SIGTERM)
                return False
            LOG.error("worker %d of %s ended (exit code %d); starting another", index, self.binary, code)
            time.sleep(RESPAWN_S)
            self._fork(index)
        return True

    def _signal(self, number: int) -> None:
        for pid in self.children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _end(self) -> int:
        """Pass the stop on, and wait for as long as the workers may take."""
        until, signalled = time.monotonic() + self.conf.graceful_shutdown_timeout + 5, float("-inf")
        while self.children and time.monotonic() < until:
            if time.monotonic() - signalled > RESPAWN_S:  # again and again: one just born may have missed the first
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


class Every:
    """Calls a function again and again, with jitter; an error is logged and the next call comes all the same.
    ``again_s``: it comes so soon after one that found its peer unavailable, which is logged once.
    """

    def __init__(self, seconds: float, function: Callable[[], object], name: str, at_once: bool = False,
                 again_s: float | None = None) -> None:
        self.seconds, self.function, self.name, self.at_once, self.again_s = seconds, function, name, at_once, again_s
        self._stopped = self._unavailable = False

    def start(self) -> Every:
        concurrency.spawn(self._loop, name=self.name)
        return self

    def stop(self) -> None:
        """No call begins after this; a call that runs goes on. Does not wait. May be called twice."""
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
                self.function()
            except errors.NovaError as error:
                self._unavailable = isinstance(error, errors.Unavailable)
                again = before and self._unavailable and self.again_s is not None
                LOG.log(logging.DEBUG if again else logging.WARNING, "%s: %s", self.name, error.message)
            except Exception:
                LOG.exception("%s failed", self.name)


def patiently(what: str, function: Callable[[], T], stopped: Callable[[], bool] = lambda: False) -> T:
    """Call until it no longer raises Unavailable, waiting longer each time and saying so; its result."""
    wait = 0.5
    while True:
        try:
            return function()
        except errors.Unavailable as error:
            if stopped():
                raise
            LOG.warning("%s is not possible yet, trying again in %.0f s: %s", what, max(1, wait), error.message)
        concurrency.sleep(wait * random.uniform(0.8, 1.2))
        wait = min(wait * 2, 10.0)
