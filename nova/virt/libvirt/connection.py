"""libvirt: the only module that imports it.

Its calls block, so each runs through ``concurrency.run_in_thread``, as one function that does nothing but call libvirt.
Its event loop is a real thread; what happens there is put into a :class:`~nova.virt.libvirt.hypervisor.Sink` at once.
A connection that breaks (libvirtd was restarted) is made anew by the next call.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import libvirt

from nova import concurrency, errors
from nova.model.states import PowerState
from nova.virt.libvirt.hypervisor import HostSize, LibvirtDown, LibvirtRefused, Lost, NoGuest, PowerEvent, Sink

LOG = logging.getLogger(__name__)

T = TypeVar("T")

KEEPALIVE_COUNT = 5
PATIENCE_S = 10.0  # how long a call waits for a libvirtd that is being restarted
RETRY_S = 0.25
STOP_TRIES = 3

P = PowerState
STATES = {
    libvirt.VIR_DOMAIN_NOSTATE: P.NOSTATE, libvirt.VIR_DOMAIN_RUNNING: P.RUNNING, libvirt.VIR_DOMAIN_BLOCKED: P.RUNNING,
    libvirt.VIR_DOMAIN_PAUSED: P.PAUSED, libvirt.VIR_DOMAIN_SHUTDOWN: P.RUNNING,  # it is shutting down: not off yet
    libvirt.VIR_DOMAIN_SHUTOFF: P.SHUTDOWN, libvirt.VIR_DOMAIN_CRASHED: P.CRASHED,
    libvirt.VIR_DOMAIN_PMSUSPENDED: P.SUSPENDED,
}
CRASHES = frozenset({libvirt.VIR_DOMAIN_SHUTOFF_CRASHED})
CRASH_DETAILS = frozenset({libvirt.VIR_DOMAIN_EVENT_STOPPED_CRASHED, libvirt.VIR_DOMAIN_EVENT_STOPPED_FAILED})
EVENTS = {
    libvirt.VIR_DOMAIN_EVENT_STARTED: P.RUNNING, libvirt.VIR_DOMAIN_EVENT_RESUMED: P.RUNNING,
    libvirt.VIR_DOMAIN_EVENT_SUSPENDED: P.PAUSED, libvirt.VIR_DOMAIN_EVENT_STOPPED: P.SHUTDOWN,
    libvirt.VIR_DOMAIN_EVENT_PMSUSPENDED: P.SUSPENDED, libvirt.VIR_DOMAIN_EVENT_CRASHED: P.CRASHED,
}
UNDEFINE = (libvirt.VIR_DOMAIN_UNDEFINE_MANAGED_SAVE | libvirt.VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA
            | libvirt.VIR_DOMAIN_UNDEFINE_CHECKPOINTS_METADATA | libvirt.VIR_DOMAIN_UNDEFINE_NVRAM)
STATS = (libvirt.VIR_DOMAIN_STATS_BALLOON | libvirt.VIR_DOMAIN_STATS_VCPU | libvirt.VIR_DOMAIN_STATS_INTERFACE
         | libvirt.VIR_DOMAIN_STATS_BLOCK)
#: Codes that are about the connection, not about what was asked.
BROKEN = frozenset({libvirt.VIR_ERR_NO_CONNECT, libvirt.VIR_ERR_INVALID_CONN, libvirt.VIR_ERR_RPC})
BROKEN_WITH = frozenset({libvirt.VIR_FROM_RPC, libvirt.VIR_FROM_REMOTE})
BROKEN_THEN = frozenset({libvirt.VIR_ERR_SYSTEM_ERROR, libvirt.VIR_ERR_INTERNAL_ERROR})

_loop_lock = threading.Lock()
_loop_runs = False


def _run_event_loop() -> None:
    """Once a process, before the first connection, for as long as the process lives."""
    global _loop_runs
    with _loop_lock:
        if _loop_runs:
            return
        libvirt.registerErrorHandler(lambda _context, _error: None, None)  # or it prints each error
        libvirt.virEventRegisterDefaultImpl()
        concurrency.native_threading().Thread(target=_loop, name="libvirt-events", daemon=True).start()
        _loop_runs = True


def _loop() -> None:
    while True:
        libvirt.virEventRunDefaultImpl()


class Connection:
    """The hypervisor at ``uri`` (:class:`~nova.virt.libvirt.hypervisor.Hypervisor`)."""

    def __init__(self, uri: str, keepalive_s: int = 5) -> None:
        self._uri, self._keepalive_s = uri, keepalive_s
        self._sink: Sink = lambda event: None
        self._connection: Any = None
        self._lock = threading.Lock()
        self._closed = False

    # --- the connection

    def open(self, sink: Sink) -> None:
        _run_event_loop()
        self._sink = sink
        self._live(patience_s=0)

    def close(self) -> None:
        self._closed = True
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            concurrency.run_in_thread(_close, connection)

    def reopen(self) -> None:
        self._live(patience_s=0)

    def _live(self, patience_s: float = PATIENCE_S) -> Any:
        deadline = time.monotonic() + patience_s
        while True:
            with self._lock:
                if self._connection is not None:
                    return self._connection
                try:
                    self._connection = concurrency.run_in_thread(self._open)
                    return self._connection
                except libvirt.libvirtError as error:
                    reason = _reason(error)
            if self._closed or time.monotonic() >= deadline:
                raise LibvirtDown(host=os.uname().nodename, uri=self._uri, reason=reason)
            concurrency.sleep(RETRY_S)

    def _open(self) -> Any:
        connection = libvirt.open(self._uri)
        connection.registerCloseCallback(self._on_close, None)
        connection.domainEventRegisterAny(None, libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE, self._on_event, None)
        connection.setKeepAlive(self._keepalive_s, KEEPALIVE_COUNT)
        return connection

    def _on_close(self, connection: Any, _reason_: int, _data: object) -> None:
        self._forget(connection)

    def _on_event(self, _connection: Any, domain: Any, event: int, detail: int, _data: object) -> None:
        state = EVENTS.get(event)
        if event == libvirt.VIR_DOMAIN_EVENT_STOPPED and detail in CRASH_DETAILS:
            state = P.CRASHED
        if state is not None:
            self._sink(PowerEvent(domain.UUIDString(), state))

    def _forget(self, broken: Any) -> None:
        """Without a lock: called from the library's thread, too."""
        if self._connection is broken and broken is not None:
            self._connection = None
            if not self._closed:
                self._sink(Lost())

    def _call(self, task: str, function: Callable[[Any], T]) -> T:
        """``function`` on a live connection; once more when the connection turns out to be broken."""
        for last in (False, True):
            connection = self._live()
            try:
                return concurrency.run_in_thread(function, connection)
            except libvirt.libvirtError as error:
                if not _is_broken(error):
                    raise LibvirtRefused(task=task, reason=_reason(error)) from error
                self._forget(connection)
                if last:
                    raise LibvirtDown(host=os.uname().nodename, uri=self._uri, reason=_reason(error)) from error
        raise errors.Bug()

    def _on_domain(self, task: str, server_uuid: str, function: Callable[[Any], T]) -> T:
        """``function`` on the domain. NoGuest."""
        def find(connection: Any) -> tuple[bool, T | None]:
            try:
                return True, function(connection.lookupByUUIDString(server_uuid))
            except libvirt.libvirtError as error:
                if error.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN:
                    return False, None
                raise
        found, result = self._call(task, find)
        if not found:
            raise NoGuest(uuid=server_uuid)
        return result  # type: ignore[return-value]

    # --- the host

    def hostname(self) -> str:
        return self._call("tell its host's name", lambda connection: connection.getHostname())

    def version(self) -> int:
        return self._call("tell its version", lambda connection: connection.getVersion())

    def size(self) -> HostSize:
        info = self._call("tell the host's size", lambda connection: connection.getInfo())
        return HostSize(cpus=info[2], memory_mb=info[1])

    def capabilities(self) -> str:
        return self._call("tell its capabilities", lambda connection: connection.getCapabilities())

    def domain_capabilities(self, arch: str, machine: str | None, virt_type: str) -> str:
        return self._call("tell what guests may have",
                          lambda connection: connection.getDomainCapabilities(None, arch, machine, virt_type, 0))

    # --- domains

    def states(self) -> Mapping[str, PowerState]:
        return self._call("list its guests", _states)

    def state(self, server_uuid: str) -> PowerState | None:
        try:
            return self._on_domain("tell a guest's state", server_uuid, _state)
        except NoGuest:
            return None

    def noted(self, server_uuid: str, namespace: str) -> bool:
        try:
            return self._on_domain("read a guest's notes", server_uuid, lambda domain: _noted(domain, namespace))
        except NoGuest:
            return False

    def stats(self, server_uuid: str) -> Mapping[str, Any]:
        return self._on_domain("tell what a guest uses", server_uuid, _stats)

    def define(self, xml: str) -> None:
        self._call("define the guest", lambda connection: connection.defineXML(xml))

    def start(self, server_uuid: str) -> None:
        self._on_domain("start the guest", server_uuid, _start)

    def ask_to_stop(self, server_uuid: str) -> None:
        self._on_domain("ask the guest to shut down", server_uuid, _ask_to_stop)

    def stop_now(self, server_uuid: str) -> None:
        try:
            self._on_domain("power the guest off", server_uuid, _stop)
        except NoGuest:
            return

    def undefine(self, server_uuid: str) -> None:
        try:
            self._on_domain("remove the guest's definition", server_uuid, lambda domain: domain.undefineFlags(UNDEFINE))
        except NoGuest:
            return


# --- run in a real thread: nothing but libvirt's calls

def _close(connection: Any) -> None:
    try:
        connection.close()
    except libvirt.libvirtError:
        return


def _state(domain: Any) -> PowerState:
    state, reason = domain.state()
    if state == libvirt.VIR_DOMAIN_SHUTOFF and reason in CRASHES:
        return P.CRASHED
    return STATES.get(state, P.NOSTATE)


def _states(connection: Any) -> dict[str, PowerState]:
    found = {}
    for domain in connection.listAllDomains():
        try:
            found[domain.UUIDString()] = _state(domain)
        except libvirt.libvirtError as error:
            if error.get_error_code() != libvirt.VIR_ERR_NO_DOMAIN:  # gone since the list was made
                raise
    return found


def _noted(domain: Any, namespace: str) -> bool:
    try:
        return bool(domain.metadata(libvirt.VIR_DOMAIN_METADATA_ELEMENT, namespace))
    except libvirt.libvirtError as error:
        if error.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN_METADATA:
            return False
        raise


def _stats(domain: Any) -> dict[str, Any]:
    """Empty for a domain that went while it was asked about."""
    found = domain.connect().domainListGetStats([domain], STATS, 0)
    return dict(found[0][1]) if found else {}


def _start(domain: Any) -> None:
    if not domain.isActive():
        _unless(lambda: domain.create(), domain.isActive)


def _ask_to_stop(domain: Any) -> None:
    if domain.isActive():
        _unless(lambda: domain.shutdownFlags(libvirt.VIR_DOMAIN_SHUTDOWN_ACPI_POWER_BTN),
                lambda: not domain.isActive())


def _stop(domain: Any) -> None:
    """QEMU that waits for a disk may outlive a first SIGKILL for a while."""
    for attempt in range(STOP_TRIES):
        if not domain.isActive():
            return
        try:
            domain.destroy()
        except libvirt.libvirtError:
            if domain.isActive() and attempt == STOP_TRIES - 1:
                raise


def _unless(act: Callable[[], object], done: Callable[[], object]) -> None:
    """``act``, whose failure counts for nothing if somebody else has brought about what it is for."""
    try:
        act()
    except libvirt.libvirtError:
        if not done():
            raise


def _is_broken(error: libvirt.libvirtError) -> bool:
    code = error.get_error_code()
    return code in BROKEN or (code in BROKEN_THEN and error.get_error_domain() in BROKEN_WITH)


def _reason(error: libvirt.libvirtError) -> str:
    return (error.get_error_message() or str(error)).splitlines()[0][:300]
