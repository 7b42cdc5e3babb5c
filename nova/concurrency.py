"""The one module that knows how we run many things at once: eventlet's green threads, or native threads.

``nova.cmd`` calls :func:`patch` before any connection is made. Everybody else uses :func:`spawn`, :class:`WorkerPool`,
:func:`run_in_thread` and the standard library's ``threading``, ``queue`` and ``time``, which eventlet replaces.
The switch is the environment variable ``NOVA_CONCURRENCY`` (``eventlet`` or ``threads``); ``nova.cmd`` chooses
``threads`` where a C library would stop the whole process in a wait (PostgreSQL and SQLite drivers).
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

#: Nine lines above whatever a program prints, at each start, about a choice that no operator makes.
warnings.filterwarnings("ignore", message=r"\s*Eventlet is deprecated")

SWITCH = "NOVA_CONCURRENCY"
MODES = ("eventlet", "threads")
#: How long a thread may keep the interpreter while another one waits for it. A request passes through several threads,
#: and waits this long for each of them behind whoever computes; Python's own 5 ms would be most of its time.
SWITCH_S = 0.001

_mode = "threads"


def patch(prefer: str = "eventlet") -> str:
    """Choose the mode for this process, once, and return it. The environment's word stands above ``prefer``."""
    global _mode
    mode = os.environ.get(SWITCH) or prefer
    if mode not in MODES:
        raise SystemExit(f"{SWITCH}={mode}: must be one of {', '.join(MODES)}")
    if mode == "eventlet" and _mode != "eventlet":
        os.environ.setdefault("EVENTLET_NO_GREENDNS", "yes")  # the system's resolver knows /etc/hosts and nsswitch
        import eventlet

        eventlet.monkey_patch()
    if mode == "threads":
        sys.setswitchinterval(SWITCH_S)
    _mode = mode
    return mode


def forked() -> None:
    """To be called first in a forked worker: its event loop must not be its parent's."""
    if _mode == "eventlet":
        from eventlet import hubs

        hubs.use_hub()


def mode() -> str:
    """``eventlet`` or ``threads``: what :func:`patch` chose."""
    return _mode


class WorkerPool:
    """A bounded number of workers; what is submitted beyond that waits its turn."""

    def __init__(self, size: int, name: str) -> None:
        self._executor = concurrent.futures.ThreadPoolExecutor(max_workers=size, thread_name_prefix=name)

    def submit(self, function: Callable[..., object], *args: object) -> concurrent.futures.Future[object]:
        """Run ``function`` when a worker is free; its future has the result or the exception."""
        return self._executor.submit(function, *args)

    def map(self, function: Callable[..., T], *sequences: Iterable[object]) -> list[T]:
        """All results, in order; the first exception is raised."""
        return list(self._executor.map(function, *sequences))

    def shutdown(self, wait: bool = True) -> None:
        """Begin nothing that waits, and ``wait`` for what runs. May be called twice."""
        self._executor.shutdown(wait=wait, cancel_futures=True)


def spawn(function: Callable[..., object], *args: object, name: str | None = None) -> threading.Thread:
    """Run ``function`` beside the caller; it must handle its own errors."""
    thread = threading.Thread(target=function, args=args, name=name, daemon=True)
    thread.start()
    return thread


def join(thread: threading.Thread, seconds: float) -> bool:
    """Wait at most ``seconds`` for the thread; returns whether it has ended. ``Thread.join`` itself raises eventlet's
    Timeout from Python 3.13 on."""
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
    """Run a blocking call of a C library without stopping the other green threads; its result or exception."""
    if _mode == "eventlet":
        from eventlet import tpool

        return tpool.execute(function, *args)
    return function(*args)


def run_apart(function: Callable[..., T], *args: object) -> T:
    """The same for a call that may take minutes or hours: in a real thread of its own. Those of :func:`run_in_thread`
    are few (eventlet has 20), and as many calls that last would keep all others waiting."""
    if _mode != "eventlet":
        return function(*args)
    ends: list[tuple[Any, BaseException | None]] = []

    def run() -> None:
        try:
            ends.append((function(*args), None))
        except BaseException as error:
            ends.append((None, error))
    native_threading().Thread(target=run, name="apart", daemon=True).start()
    pause = 0.002
    while not ends:  # no lock of the standard library works between a real thread and a green one
        sleep(pause)
        pause = min(2 * pause, 0.1)
    result, error = ends[0]
    if error is not None:
        raise error
    return result


def sleep(seconds: float) -> None:
    """Wait for so many seconds; green threads run meanwhile."""
    time.sleep(seconds)


class Clock:
    """Time for what waits by looking again and again; a test hands in one that it moves."""

    def now(self) -> float:
        """Seconds, from some moment in the past."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait for so many seconds."""
        sleep(seconds)


def native_threading() -> ModuleType:
    """The real ``threading`` module, for a library's own event loop thread (libvirt's)."""
    if _mode == "eventlet":
        from eventlet import patcher

        return patcher.original("threading")
    return threading


_wanted: ContextVar[Callable[[], None] | None] = ContextVar("nova_wanted", default=None)


@contextlib.contextmanager
def while_wanted(check: Callable[[], None]) -> Iterator[None]:
    """What takes long within the block asks now and then whether it is still wanted: ``check`` raises when not."""
    token = _wanted.set(check)
    try:
        yield
    finally:
        _wanted.reset(token)


def check_wanted() -> None:
    """What ``check`` of the block around raises, if anything."""
    if check := _wanted.get():
        check()
