"""Concurrency: the only module that knows whether nova runs on eventlet's green threads or native threads.

``nova.cmd`` calls :func:`patch` before any connection is opened. All other modules use :func:`spawn`,
:class:`WorkerPool`, :func:`run_in_thread` and the standard library's ``threading``, ``queue`` and ``time``, which
eventlet replaces. The environment variable ``NOVA_CONCURRENCY`` (``eventlet`` or ``threads``) overrides the mode.
``nova.cmd`` chooses ``threads`` if a C library would block the whole process while it waits (PostgreSQL and SQLite
drivers).
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from types import ModuleType
from typing import Any, TypeVar

T = TypeVar("T")

#: Suppresses nine lines at the start of every program, about a choice that operators do not make.
warnings.filterwarnings("ignore", message=r"\s*Eventlet is deprecated")

SWITCH = "NOVA_CONCURRENCY"
MODES = ("eventlet", "threads")
#: Time that a thread may hold the interpreter while another one waits for it. A request passes through several threads,
#: and may wait this long in each of them; Python's default of 5 ms would be most of a request's time.
SWITCH_S = 0.001

_mode = "threads"


def patch(prefer: str = "eventlet") -> str:
    """Set the mode for this process, once, and return it. The environment variable overrides ``prefer``."""
    global _mode
    mode = os.environ.get(SWITCH) or prefer
    if mode not in MODES:
        raise SystemExit(f"{SWITCH}={mode}: must be one of {', '.join(MODES)}")
    # the system's resolver supports /etc/hosts and nsswitch; libraries import eventlet in both modes
    os.environ.setdefault("EVENTLET_NO_GREENDNS", "yes")
    if mode == "eventlet" and _mode != "eventlet":
        import eventlet

        eventlet.monkey_patch()
    if mode == "threads":
        sys.setswitchinterval(SWITCH_S)
    _mode = mode
    return mode


def forked() -> None:
    """Reset the event loop in a forked worker, which must not share its parent's. Must be the first call there."""
    if _mode == "eventlet":
        from eventlet import hubs

        hubs.use_hub()


def mode() -> str:
    """Return the mode that :func:`patch` chose: ``eventlet`` or ``threads``."""
    return _mode


class WorkerPool:
    """A pool with a bounded number of workers; further submitted calls are queued."""

    def __init__(self, size: int, name: str) -> None:
        self._executor = concurrent.futures.ThreadPoolExecutor(max_workers=size, thread_name_prefix=name)

    def submit(self, function: Callable[..., object], *args: object) -> concurrent.futures.Future[object]:
        """Run ``function`` when a worker is free; the future has its result or exception."""
        return self._executor.submit(function, *args)

    def map(self, function: Callable[..., T], *sequences: Iterable[object]) -> list[T]:
        """Return all results, in order; the first exception is raised."""
        return list(self._executor.map(function, *sequences))

    def shutdown(self, wait: bool = True) -> None:
        """Cancel queued calls, and ``wait`` for running ones. May be called twice."""
        self._executor.shutdown(wait=wait, cancel_futures=True)


def spawn(function: Callable[..., object], *args: object, name: str | None = None) -> threading.Thread:
    """Run ``function`` in a thread; it must handle its own errors."""
    thread = threading.Thread(target=function, args=args, name=name, daemon=True)
    thread.start()
    return thread


def join(thread: threading.Thread, seconds: float) -> bool:
    """Wait at most ``seconds`` for the thread, and return whether it has ended. ``Thread.join`` itself raises
    eventlet's Timeout from Python 3.13 on."""
    if _mode != "eventlet":
        thread.join(seconds)
        return not thread.is_alive()
    from eventlet import Timeout

    try:
        thread.join(seconds)
    except Timeout:
        return False
    return not thread.is_alive()


def run_in_thread(function: Callable[..., T], *args: object) -> T:
    """Run a blocking call of a C library without blocking other green threads; return its result or raise its
    exception."""
    if _mode == "eventlet":
        from eventlet import tpool

        return tpool.execute(function, *args)
    return function(*args)


def run_apart(function: Callable[..., T], *args: object) -> T:
    """Run a call that may take minutes or hours in a native thread of its own. :func:`run_in_thread` has few threads
    (20 with eventlet), so that as many long calls would block all others."""
    if _mode != "eventlet":
        return function(*args)
    ends: list[tuple[Any, BaseException | None]] = []

    def run() -> None:
        try:
            ends.append((function(*args), None))
        except BaseException as error:  # raised in the waiting thread
            ends.append((None, error))
    native_threading().Thread(target=run, name="apart", daemon=True).start()
    pause = 0.002
    while not ends:  # standard-library locks do not work between native and green threads
        sleep(pause)
        pause = min(2 * pause, 0.1)
    result, error = ends[0]
    if error is not None:
        raise error
    return result


def sleep(seconds: float) -> None:
    """Sleep for this number of seconds; other green threads run meanwhile."""
    time.sleep(seconds)


class Clock:
    """Clock for polling loops; a test passes a clock of its own."""

    def now(self) -> float:
        """Return the seconds since an arbitrary time in the past."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Sleep for this number of seconds."""
        sleep(seconds)


def native_threading() -> ModuleType:
    """Return the native ``threading`` module, for a library's own event loop thread (libvirt's)."""
    if _mode == "eventlet":
        from eventlet import patcher

        return patcher.original("threading")
    return threading


_wanted: ContextVar[Callable[[], None] | None] = ContextVar("nova_wanted", default=None)


@contextlib.contextmanager
def cancellable(check: Callable[[], None]) -> Iterator[None]:
    """Let long work within the block check from time to time whether it is still needed: ``check`` raises if it is
    not."""
    token = _wanted.set(check)
    try:
        yield
    finally:
        _wanted.reset(token)


def check_cancelled() -> None:
    """Call the ``check`` of the enclosing block, if any, and raise its exception."""
    if check := _wanted.get():
        check()
