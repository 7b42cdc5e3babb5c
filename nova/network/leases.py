"""Which guests hold which leases, and the way of that news to the conductor.

dnsmasq's script writes events to a spool (see :mod:`nova.network.spool`); the courier takes them from there, keeps the
book and tells the conductor, again and again until it has heard.
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

from nova import concurrency, context, decoding, errors
from nova.model.base import HostName
from nova.model.network.networks import DhcpHost, LeaseChange
from nova.network import spool
from nova.privileged.files import write_whole
from nova.rpc.contracts.conductor_host import ConductorHostRPC

LOG = logging.getLogger(__name__)

RETRY_S = (1.0, 2.0, 5.0, 10.0, 30.0)
IDLE_LOOK_S = 60.0  # a look without being told, should a word have been lost
CONNECTION_S = 2.0
LONGEST_LINE = 65536
FINAL = (errors.NotFound, errors.Invalid, errors.Conflict, errors.WrongState)  # telling it again changes nothing


class HeldLease(msgspec.Struct, frozen=True, kw_only=True):
    """A lease. ``expires`` is epoch seconds; None: not known."""

    mac: str
    address: str
    hostname: str | None = None
    expires: int | None = None


class LeaseEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What dnsmasq's script tells; ``network`` is a uuid."""

    network: str
    action: str
    mac: str
    address: str
    hostname: str | None = None
    expires: int | None = None


class LeaseBook:
    """Leases by network and address, in a file, for the next dnsmasq and the next of us."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()
        self._held: dict[str, dict[str, HeldLease]] = self._load()

    def learn(self, events: Iterable[LeaseEvent]) -> None:
        """Keep what began (``add``) and drop what ended (``del``, of the same MAC). Any other action changes nothing.
        The file is written anew; the same events may come again."""
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
        """Leases that dnsmasq has not told the end of. Their times may be over: renewals are not told."""
        with self._lock:
            return tuple(self._held.get(network, {}).values())

    def forget(self, network: str, gone: Iterable[tuple[str, str]]) -> None:
        """(mac, address) pairs that were taken back."""
        with self._lock:
            held = self._held.get(network, {})
            for mac, address in gone:
                if address in held and held[address].mac == mac:
                    del held[address]
            self._save()

    def drop(self, networks: Iterable[str]) -> None:
        """Networks that this host serves no more."""
        with self._lock:
            for network in networks:
                self._held.pop(network, None)
            self._save()

    def networks(self) -> frozenset[str]:
        """Uuids of the networks that the book has, those without any lease left, too."""
        with self._lock:
            return frozenset(self._held)

    def _load(self) -> dict[str, dict[str, HeldLease]]:
        try:
            return decoding.from_json(self._path.read_bytes(), dict[str, dict[str, HeldLease]])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as error:
            LOG.warning("Starting without the leases of %s: %s", self._path, error)
            return {}

    def _save(self) -> None:
        write_whole(self._path, msgspec.json.encode(self._held).decode(), 0o600)


def init_lines(hosts: Sequence[DhcpHost], held: Iterable[HeldLease], now: float, lease_time_s: int) -> str:
    """What dnsmasq reads at its start: ``expiry mac address hostname client-id`` of each lease that is still right.

    A lease whose address belongs to another by now is left out; dnsmasq would keep the new owner waiting for its end.
    One whose time seems to be over was renewed (else its end had been told), and gets a new time.
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
    """Takes events from the spool to the book and the conductor. :meth:`run` is for a thread of its own."""

    def __init__(self, conductor: ConductorHostRPC, host: HostName, directory: Path, book: LeaseBook) -> None:
        self._conductor, self._host, self._directory, self._book = conductor, host, str(directory), book
        self._wake, self._stopped, self._busy = threading.Event(), threading.Event(), threading.Lock()
        self._unspooled: collections.deque[LeaseEvent] = collections.deque()  # told by word: the disk was full

    def look(self) -> None:
        """There may be news."""
        self._wake.set()

    def hand_over(self, event: LeaseEvent) -> None:
        """An event that the spool had no room for. It is kept in memory until the conductor has heard: a restart loses
        it."""
        self._unspooled.append(event)
        self.look()

    def stop(self) -> None:
        """``run`` ends soon. What is not told yet stays in the spool for the next start."""
        self._stopped.set()
        self.look()

    def run(self) -> None:
        failures = 0
        while not self._stopped.is_set():
            self._wake.clear()
            try:
                self.deliver()
                failures = 0
            except Exception as error:  # the conductor or the broker is away, or the disk: all of it passes
                LOG.log(logging.WARNING if failures == 0 else logging.DEBUG, "Leases wait to be told: %s", error)
                failures += 1
            patience = RETRY_S[min(failures, len(RETRY_S)) - 1] if failures else IDLE_LOOK_S
            self._wake.wait(patience)
            if failures and not self._stopped.is_set():
                self._stopped.wait(RETRY_S[0] / 2)  # new leases don't turn the wait into a busy loop

    def collect(self) -> list[LeaseEvent]:
        """Bring the book up to date with what is in the spool; the events, which stay there."""
        events = [*_events(spool.take(self._directory)), *self._unspooled]
        if events:
            self._book.learn(events)
        return events

    def deliver(self) -> None:
        """Tell the conductor everything; raises what keeps it from hearing, and then all is told again."""
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
        try:
            self._conductor.report_lease(self._host, lease)
        except FINAL as error:
            LOG.warning("The conductor knows nothing of lease %s %s %s: %s", lease.action, lease.address, lease.mac,
                        error)


def latest(events: Iterable[LeaseEvent]) -> list[LeaseEvent]:
    """The last word on each address and MAC, in the order of the last words."""
    last: dict[tuple[str, str, str], LeaseEvent] = {}
    for event in events:
        if event.action in ("add", "del"):
            last.pop((event.network, event.address, event.mac), None)
            last[(event.network, event.address, event.mac)] = event
    return list(last.values())


def _events(raw: Iterable[dict[str, object]]) -> list[LeaseEvent]:
    events = []
    for item in raw:
        try:
            events.append(decoding.convert(item, LeaseEvent))
        except msgspec.ValidationError as error:
            LOG.warning("A lease event that cannot be read was passed over: %s", error)
    return events


class LeaseSocket:
    """Answers nova-dhcpbridge. ``init`` gives the text for a network's uuid."""

    def __init__(self, directory: Path, courier: LeaseCourier, init: Callable[[str], str]) -> None:
        self._directory, self._courier, self._init = str(directory), courier, init
        self._listener: socket.socket | None = None

    def start(self) -> None:
        self._listener = spool.listen(self._directory)
        concurrency.spawn(self._serve, self._listener, name="leases")

    def stop(self) -> None:
        """Listen no more; a call that is being answered is answered yet. Nothing when it was not started."""
        if self._listener:
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)  # wakes who waits in accept
            self._listener.close()

    def _serve(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _address = listener.accept()
            except OSError:
                return
            try:
                with connection:
                    connection.settimeout(CONNECTION_S)
                    connection.sendall(self._answer(_line(connection)).encode())
            except (OSError, ValueError, msgspec.ValidationError) as error:
                LOG.debug("A call of nova-dhcpbridge failed: %s", error)
            except Exception:
                LOG.exception("A call of nova-dhcpbridge failed unexpectedly")

    def _answer(self, words: dict[str, object]) -> str:
        if words.get("word") == "init":
            return self._init(str(words.get("network")))
        if words.get("word") == "event":
            self._courier.hand_over(decoding.convert(words.get("event"), LeaseEvent))
        else:
            self._courier.look()
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
