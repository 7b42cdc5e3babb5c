"""DHCP leases of guests, and their delivery to the conductor.

dnsmasq's script writes events to a spool (see :mod:`nova.network.spool`). The courier reads them from there, updates
the book, and reports to the conductor until it succeeds.
"""

from __future__ import annotations

import collections
import contextlib
import json
import logging
import socket
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from nova import concurrency, context, decoding, errors, failures
from nova.model.base import HostName
from nova.model.network.networks import DhcpHost, LeaseChange
from nova.network import spool
from nova.privileged.files import write_whole
from nova.rpc.contracts.conductor_host import ConductorHostRPC

LOG = logging.getLogger(__name__)

RETRY_S = (1.0, 2.0, 5.0, 10.0, 30.0)
IDLE_LOOK_S = 60.0  # pause between reads without a notification, in case one was lost
CONNECTION_S = 2.0
LONGEST_LINE = 65536
FINAL = (errors.NotFound, errors.Invalid, errors.Conflict, errors.WrongState)  # repeating the report is useless


class HeldLease(msgspec.Struct, frozen=True, kw_only=True):
    """A lease that a guest holds. ``expires``: epoch seconds; None if unknown."""

    mac: str
    address: str
    hostname: str | None = None
    expires: int | None = None


class LeaseEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A lease event from dnsmasq's script. ``network``: a UUID."""

    network: str
    action: str
    mac: str
    address: str
    hostname: str | None = None
    expires: int | None = None


class LeaseBook:
    """Leases by network and address, in a file, for later runs of dnsmasq and nova-network."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()
        self._held: dict[str, dict[str, HeldLease]] = self._load()

    def learn(self, events: Iterable[LeaseEvent]) -> None:
        """Add leases that began (``add``), and remove leases that ended (``del``, of the same MAC). Other actions are
        ignored. Rewrites the file; events may be repeated."""
        with self._lock:
            for event in events:
                held = self._held.setdefault(event.network, {})
                if event.action == "add":
                    held[event.address] = HeldLease(mac=event.mac, address=event.address, hostname=event.hostname,
                                                    expires=event.expires)
                elif event.action == "del" and event.address in held and held[event.address].mac == event.mac:
                    del held[event.address]
            self._save()

    def held(self, network: str) -> tuple[HeldLease, ...]:
        """Return the leases whose end dnsmasq has not reported. Their times may have passed: renewals are not
        reported."""
        with self._lock:
            return tuple(self._held.get(network, {}).values())

    def forget(self, network: str, gone: Iterable[tuple[str, str]]) -> None:
        """Remove (mac, address) pairs whose leases were released."""
        with self._lock:
            held = self._held.get(network, {})
            for mac, address in gone:
                if address in held and held[address].mac == mac:
                    del held[address]
            self._save()

    def drop(self, networks: Iterable[str]) -> None:
        """Remove networks that this host no longer serves."""
        with self._lock:
            for network in networks:
                self._held.pop(network, None)
            self._save()

    def networks(self) -> frozenset[str]:
        """Return the UUIDs of the book's networks, including networks without leases."""
        with self._lock:
            return frozenset(self._held)

    def _load(self) -> dict[str, dict[str, HeldLease]]:
        with failures.best_effort(LOG, "Could not read %s; starting without its leases: %s", self._path,
                                  on=(OSError, msgspec.DecodeError)), contextlib.suppress(FileNotFoundError):
            return decoding.from_json(self._path.read_bytes(), dict[str, dict[str, HeldLease]])
        return {}

    def _save(self) -> None:
        write_whole(self._path, msgspec.json.encode(self._held).decode(), 0o600)


def init_lines(hosts: Sequence[DhcpHost], held: Iterable[HeldLease], now: float, lease_time_s: int) -> str:
    """Return the lines that dnsmasq reads at its start: ``expiry mac address hostname client-id`` of each valid lease.

    A lease whose address has another owner by now is left out; dnsmasq would make the new owner wait for its end. A
    lease whose time seems to be over was renewed (otherwise its end had been reported), and gets a new time.
    """
    known = {(lease.mac, lease.address): lease for lease in held}
    lines = []
    for host in hosts:
        lease = known.get((host.mac, host.address))
        if lease is None and not host.leased:
            continue
        expires = lease.expires if lease and (lease.expires or 0) > now else int(now) + lease_time_s
        lines.append(f"{expires} {host.mac} {host.address} {(lease and lease.hostname) or '*'} *\n")
    return "".join(lines)


class LeaseCourier:
    """Delivery of events from the spool to the book and the conductor. :meth:`run` needs a thread of its own."""

    def __init__(self, conductor: ConductorHostRPC, host: HostName, directory: Path, book: LeaseBook) -> None:
        self._conductor, self._host, self._directory, self._book = conductor, host, str(directory), book
        self._wake, self._stopped, self._busy = threading.Event(), threading.Event(), threading.Lock()
        self._unspooled: collections.deque[LeaseEvent] = collections.deque()  # received by socket: the disk was full

    def refresh(self) -> None:
        """Wake the courier: there may be new events."""
        self._wake.set()

    def hand_over(self, event: LeaseEvent) -> None:
        """Accept an event for which the spool had no space. It is kept in memory until it is reported, and lost by a
        restart."""
        self._unspooled.append(event)
        self.refresh()

    def stop(self) -> None:
        """Stop :meth:`run` soon. Unreported events stay in the spool for the next start."""
        self._stopped.set()
        self.refresh()

    def run(self) -> None:
        failed = 0
        while not self._stopped.is_set():
            self._wake.clear()
            # the conductor, the broker or the disk may be unavailable: a temporary condition
            if error := failures.failure_of(self.deliver):
                LOG.log(logging.WARNING if failed == 0 else logging.DEBUG, "Could not report leases yet: %s", error)
                failed += 1
            else:
                failed = 0
            patience = RETRY_S[min(failed, len(RETRY_S)) - 1] if failed else IDLE_LOOK_S
            self._wake.wait(patience)
            if failed and not self._stopped.is_set():
                self._stopped.wait(RETRY_S[0] / 2)  # new leases must not turn the wait into a busy loop

    def collect(self) -> list[LeaseEvent]:
        """Update the book from the spool, and return the events, which stay in the spool."""
        events = [*_events(spool.take(self._directory)), *self._unspooled]
        if events:
            self._book.learn(events)
        return events

    def deliver(self) -> None:
        """Report all events to the conductor. Raises the error that prevents it; all events are then reported again."""
        with self._busy, context.entered(context.internal()):
            events = self.collect()
            if not events:
                return
            for event in latest(events):
                self._report(LeaseChange(host=self._host, action=event.action, mac=event.mac, address=event.address,
                                         hostname=event.hostname))
            spool.done(self._directory)
            for event in events:
                with contextlib.suppress(ValueError):
                    self._unspooled.remove(event)

    def _report(self, lease: LeaseChange) -> None:
        with failures.best_effort(LOG, "The conductor rejected lease %s %s %s: %s", lease.action, lease.address,
                lease.mac, on=FINAL):
            self._conductor.report_lease(self._host, lease)


def latest(events: Iterable[LeaseEvent]) -> list[LeaseEvent]:
    """Return the last event of each address and MAC, in their order."""
    last: dict[tuple[str, str, str], LeaseEvent] = {}
    for event in events:
        if event.action in ("add", "del"):
            last.pop((event.network, event.address, event.mac), None)
            last[(event.network, event.address, event.mac)] = event
    return list(last.values())


def _events(raw: Iterable[dict[str, object]]) -> list[LeaseEvent]:
    events = []
    for item in raw:
        with failures.best_effort(LOG, "Skipped a malformed lease event: %s", on=msgspec.ValidationError):
            events.append(decoding.convert(item, LeaseEvent))
    return events


class LeaseSocket:
    """Server for nova-dhcpbridge. ``init``: returns the text for a network's UUID."""

    def __init__(self, directory: Path, courier: LeaseCourier, init: Callable[[str], str]) -> None:
        self._directory, self._courier, self._init = str(directory), courier, init
        self._listener: socket.socket | None = None

    def start(self) -> None:
        self._listener = spool.listen(self._directory)
        concurrency.spawn(self._serve, self._listener, name="leases")

    def stop(self) -> None:
        """Stop listening; a running call is still answered. No error if it was not started."""
        if self._listener:
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread in accept
            self._listener.close()

    def _serve(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _address = listener.accept()
            except OSError:
                return
            with failures.keep_running(LOG, "A call of nova-dhcpbridge failed unexpectedly"), \
                    failures.best_effort(LOG, "A call of nova-dhcpbridge failed: %s", level=logging.DEBUG,
                                         on=(OSError, ValueError, msgspec.ValidationError)), connection:
                connection.settimeout(CONNECTION_S)
                connection.sendall(self._answer(_line(connection)).encode())

    def _answer(self, words: dict[str, object]) -> str:
        if words.get("word") == "init":
            return self._init(str(words.get("network")))
        if words.get("word") == "event":
            self._courier.hand_over(decoding.convert(words.get("event"), LeaseEvent))
        else:
            self._courier.refresh()
        return "ok\n"


def _line(connection: socket.socket) -> dict[str, object]:
    received = b""
    while not received.endswith(b"\n"):
        part = connection.recv(4096)
        if not part or len(received) > LONGEST_LINE:
            raise ValueError("not a line")
        received += part
    words = json.loads(received)
    if not isinstance(words, dict):
        raise ValueError("not an object")
    return words
