"""The connection to libvirt: open, lost, reopened. Every call goes through this module.

Calls block, so each one runs through ``concurrency.run_in_thread``, as one function that makes only libvirt calls.
The library's event loop is a native thread; its events go immediately to a
:class:`~nova.virt.libvirt.hypervisor.Sink`. If a connection breaks (libvirtd was restarted), the next call opens a new
one.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable
from typing import TypeVar

import libvirt

from nova import concurrency, errors, failures
from nova.model.server.states import PowerState
from nova.virt.libvirt.connection.objects import Connect, Domain
from nova.virt.libvirt.hypervisor import ConnectionLost, PowerEvent, Sink

LOG = logging.getLogger(__name__)

T = TypeVar("T")

KEEPALIVE_COUNT = 5
TIMEOUT_S = 10.0  # how long a call waits for libvirtd to restart
RETRY_S = 0.25

P = PowerState
CRASH_DETAILS = frozenset({libvirt.VIR_DOMAIN_EVENT_STOPPED_CRASHED, libvirt.VIR_DOMAIN_EVENT_STOPPED_FAILED})
EVENTS = {
    libvirt.VIR_DOMAIN_EVENT_STARTED: P.RUNNING, libvirt.VIR_DOMAIN_EVENT_RESUMED: P.RUNNING,
    libvirt.VIR_DOMAIN_EVENT_SUSPENDED: P.PAUSED, libvirt.VIR_DOMAIN_EVENT_STOPPED: P.SHUTDOWN,
    libvirt.VIR_DOMAIN_EVENT_PMSUSPENDED: P.SUSPENDED, libvirt.VIR_DOMAIN_EVENT_CRASHED: P.CRASHED,
}
#: Events of a guest that leaves in a live migration: it does not stop, it runs on another host.
LEAVING = frozenset({
    (libvirt.VIR_DOMAIN_EVENT_STOPPED, libvirt.VIR_DOMAIN_EVENT_STOPPED_MIGRATED),
    (libvirt.VIR_DOMAIN_EVENT_SUSPENDED, libvirt.VIR_DOMAIN_EVENT_SUSPENDED_MIGRATED),
    (libvirt.VIR_DOMAIN_EVENT_SUSPENDED, libvirt.VIR_DOMAIN_EVENT_SUSPENDED_POSTCOPY)})
#: Error codes of the connection, not of the call.
BROKEN = frozenset({libvirt.VIR_ERR_NO_CONNECT, libvirt.VIR_ERR_INVALID_CONN, libvirt.VIR_ERR_RPC})
BROKEN_WITH = frozenset({libvirt.VIR_FROM_RPC, libvirt.VIR_FROM_REMOTE})
BROKEN_THEN = frozenset({libvirt.VIR_ERR_SYSTEM_ERROR, libvirt.VIR_ERR_INTERNAL_ERROR})

_loop_lock = threading.Lock()
_loop_runs = False


def _run_event_loop() -> None:
    """Start libvirt's event loop if it does not run yet: once per process, before the first connection."""
    global _loop_runs
    with _loop_lock:
        if _loop_runs:
            return
        libvirt.registerErrorHandler(lambda _context, _error: None, None)  # the default handler prints each error
        libvirt.virEventRegisterDefaultImpl()
        concurrency.native_threading().Thread(target=_loop, name="libvirt-events", daemon=True).start()
        _loop_runs = True


def _loop() -> None:
    while True:
        libvirt.virEventRunDefaultImpl()


class Link:
    """A connection to the hypervisor at ``uri``; subclasses add the calls."""

    def __init__(self, uri: str, keepalive_s: int = 5) -> None:
        self._uri, self._keepalive_s = uri, keepalive_s
        self._sink: Sink = lambda event: None
        self._connection: Connect | None = None
        self._lock = threading.Lock()
        self._closed = False

    # --- the connection

    def open(self, sink: Sink) -> None:
        """Connect, and start the library's event loop if it does not run yet. Raises host.LibvirtDown without a
        retry."""
        _run_event_loop()
        self._sink = sink
        self._live(timeout_s=0)

    def close(self) -> None:
        self._closed = True
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            concurrency.run_in_thread(_close, connection)

    def reopen(self) -> None:
        self._live(timeout_s=0)

    def _live(self, timeout_s: float = TIMEOUT_S) -> Connect:
        deadline = time.monotonic() + timeout_s
        while True:
            with self._lock:
                if self._connection is not None:
                    return self._connection
                try:
                    self._connection = concurrency.run_in_thread(self._open)
                    return self._connection
                except libvirt.libvirtError as error:
                    reason = reason_of(error)
            if self._closed or time.monotonic() >= deadline:
                raise errors.host.LibvirtDown(host=os.uname().nodename, uri=self._uri, reason=reason)
            concurrency.sleep(RETRY_S)

    def _open(self) -> Connect:
        connection: Connect = libvirt.open(self._uri)
        connection.registerCloseCallback(self._on_close, None)
        connection.domainEventRegisterAny(None, libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE, self._on_event, None)
        connection.setKeepAlive(self._keepalive_s, KEEPALIVE_COUNT)
        return connection

    def _on_close(self, connection: object, _reason_: int, _data: object) -> None:
        self._forget(connection)

    def _on_event(self, _connection: Connect, domain: Domain, event: int, detail: int, _data: object) -> None:
        if (event, detail) in LEAVING:
            return
        state = EVENTS.get(event)
        if event == libvirt.VIR_DOMAIN_EVENT_STOPPED and detail in CRASH_DETAILS:
            state = P.CRASHED
        if state is not None:
            self._sink(PowerEvent(domain.UUIDString(), state))

    def _forget(self, broken: object) -> None:
        """Drop a broken connection and report Lost. Takes no lock, because the library's thread calls it too."""
        if self._connection is broken and broken is not None:
            self._connection = None
            if not self._closed:
                self._sink(ConnectionLost())

    def call(self, task: str, function: Callable[[Connect], T]) -> T:
        """Call ``function`` with a live connection; retry once on a new connection if this one is broken."""
        for last in (False, True):
            connection = self._live()
            try:
                return concurrency.run_in_thread(function, connection)
            except libvirt.libvirtError as error:
                if not is_broken(error):
                    raise errors.host.LibvirtRefused(task=task, reason=reason_of(error)) from error
                self._forget(connection)
                if last:
                    raise errors.host.LibvirtDown(host=os.uname().nodename, uri=self._uri,
                                                  reason=reason_of(error)) from error
        raise errors.Bug()

    def call_on_own_connection(self, task: str, function: Callable[[Connect], T]) -> T:
        """Call ``function``, which may take long, on its own connection and in its own thread; never retried.

        libvirtd serves five calls of one connection at a time (``max_client_requests``), and beyond that not even its
        keepalive messages."""
        self._live()
        try:
            return concurrency.run_apart(_with_own, self._uri, self._keepalive_s, function)
        except libvirt.libvirtError as error:
            if is_broken(error):
                raise errors.host.LibvirtDown(host=os.uname().nodename, uri=self._uri,
                                              reason=reason_of(error)) from error
            raise errors.host.LibvirtRefused(task=task, reason=reason_of(error)) from error

    def on_domain(self, task: str, server_uuid: str, function: Callable[[Domain], T], lasts: bool = False) -> T:
        """Call ``function`` with the domain. ``lasts``: it may take long. Raises guest.NotDefined."""
        def find(connection: Connect) -> tuple[bool, T | None]:
            with coded(libvirt.VIR_ERR_NO_DOMAIN):
                return True, function(connection.lookupByUUIDString(server_uuid))
            return False, None
        found, result = (self.call_on_own_connection if lasts else self.call)(task, find)
        if not found:
            raise errors.guest.NotDefined(uuid=server_uuid)
        return result  # type: ignore[return-value]


# --- run in a native thread: only libvirt calls

def _with_own(uri: str, keepalive_s: int, function: Callable[[Connect], T]) -> T:
    connection: Connect = libvirt.open(uri)
    try:
        connection.setKeepAlive(keepalive_s, KEEPALIVE_COUNT)
        return function(connection)
    finally:
        _close(connection)


def _close(connection: Connect) -> None:
    with contextlib.suppress(libvirt.libvirtError):
        connection.close()


def unless(act: Callable[[], object], done: Callable[[], object]) -> None:
    """Call ``act``; ignore its failure if ``done`` shows that another process has reached the same state."""
    with failures.accepted(libvirt.libvirtError, lambda _: bool(done())):
        act()


def coded(*codes: int) -> contextlib.AbstractContextManager[None]:
    """Go on after an error of libvirt with one of these codes, which is an expected answer."""
    return failures.accepted(libvirt.libvirtError, lambda error: error.get_error_code() in codes)


def is_broken(error: libvirt.libvirtError) -> bool:
    """Return whether the connection failed, not the call itself. The call may then be made on a new connection."""
    code = error.get_error_code()
    return code in BROKEN or (code in BROKEN_THEN and error.get_error_domain() in BROKEN_WITH)


def reason_of(error: libvirt.libvirtError) -> str:
    """Return the first line of libvirt's own message, of at most 300 characters."""
    return (error.get_error_message() or str(error)).splitlines()[0][:300]
