"""The process of one migration on one host: the gate at its destination, the tunnel at its source.

It uses native threads, one per connection, and blocking calls, and shares no state with nova-compute. A connection to
the gate is TLS 1.3; it begins with the move's secret and one letter for the channel.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import hmac
import os
import random
import select
import socket
import ssl
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from nova import decoding, failures
from nova.migrationproxy import (
    NOTES_FILE,
    PID_FILE,
    SOCKETS,
    Channel,
    ListenerPlan,
    Ready,
    TunnelPlan,
    socket_path,
    socket_uri,
)
from nova.migrationproxy.calls import AllowedMove, ListenerFilter, Passed, TunnelFilter
from nova.migrationproxy.references import Refused
from nova.migrationproxy.relay import relay
from nova.migrationproxy.wire import BadMessage

LONGEST_S = 24 * 3600.0
AFTER_FINISH_S = 1.0
HANDSHAKE_S = 10.0
LOOK_S = 0.5
MAX_CONNECTIONS = 64
MAX_NOTES = 50
LETTERS = {b"l": Channel.LIBVIRT, b"m": Channel.MEMORY, b"d": Channel.DISKS}
ENDED = (OSError, ssl.SSLError, BadMessage, Refused)


class RefusalNotes:
    """Messages for nova-compute's log, in a file of the move's directory, with a maximum number of lines."""

    def __init__(self, directory: Path) -> None:
        self._path, self._left, self._lock = directory / NOTES_FILE, MAX_NOTES, threading.Lock()

    def add(self, text: str) -> None:
        """Append a line."""
        with self._lock:
            if self._left > 0:
                self._left -= 1
                with contextlib.suppress(OSError), open(self._path, "a") as target:
                    target.write(" ".join(text.split())[:500] + "\n")


class MigrationProcess:
    """Common base of gate and tunnel: listening sockets, until the migration is over."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.notes = directory, RefusalNotes(directory)
        self._places = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._begun, self._over_at = time.monotonic(), float("inf")
        self._keep_pid()

    def serve(self, sockets: list[socket.socket], handle: Callable[[socket.socket, socket.socket], None]) -> None:
        """Handle each connection in a separate thread: ``handle(listening socket, connection)``."""
        while not self.over():
            for listening in select.select(sockets, [], [], LOOK_S)[0]:
                try:
                    connection, _ = listening.accept()
                except OSError:  # the client disconnected, or too many files are open
                    time.sleep(LOOK_S)
                    continue
                if self._places.acquire(blocking=False):
                    threading.Thread(target=self._handled, args=(handle, listening, connection), daemon=True).start()
                else:
                    connection.close()

    def end_soon(self) -> None:
        """End after a short delay, in which data in transit can arrive: the work is done."""
        self._over_at = min(self._over_at, time.monotonic() + AFTER_FINISH_S)

    def over(self) -> bool:
        """Return whether the migration has ended, was withdrawn, or exceeded its maximum duration."""
        now = time.monotonic()
        return now >= self._over_at or now - self._begun > LONGEST_S or not self._is_wanted()

    def _handled(self, handle: Callable[[socket.socket, socket.socket], None], listening: socket.socket,
                 connection: socket.socket) -> None:
        try:  # the peer sees only the closed connection; important errors were recorded
            with contextlib.suppress(*ENDED), connection:
                handle(listening, connection)
        finally:
            self._places.release()

    def _keep_pid(self) -> None:
        """Keep the PID file open during the process's lifetime, so that another program with the same pid is not
        mistaken for it."""
        self._pid = os.open(self.directory / PID_FILE, os.O_CREAT | os.O_RDWR | os.O_EXCL, 0o600)
        os.write(self._pid, str(os.getpid()).encode())

    def _is_wanted(self) -> bool:
        with contextlib.suppress(OSError):
            return os.path.samestat(os.stat(self.directory / PID_FILE), os.fstat(self._pid))
        return False


# --- the destination

class ListenerProcess(MigrationProcess):
    def __init__(self, plan: ListenerPlan) -> None:
        super().__init__(Path(plan.directory))
        self._plan, self._secret = plan, plan.secret.encode()
        sockets = self.directory / SOCKETS
        sockets.mkdir(mode=0o700)
        give(sockets, plan.owner)  # QEMU, which is unprivileged, creates its sockets there
        self._move = AllowedMove(plan.definition, socket_uri(self.directory, Channel.MEMORY),
                                 socket_uri(self.directory, Channel.DISKS))
        self._prepared, self._one_libvirt = threading.Event(), threading.Lock()
        certificate, key = own_certificate()
        self._tls = server_context(self.directory, certificate, key)
        self._socket = listening_socket(plan.address, plan.ports)
        self.ready = Ready(port=self._socket.getsockname()[1], certificate=certificate)

    def run(self) -> None:
        """Run until the migration has ended."""
        self.serve([self._socket], self._let_in)

    def _let_in(self, _listening: socket.socket, connection: socket.socket) -> None:
        connection.settimeout(HANDSHAKE_S)
        keep_alive(connection)
        with self._tls.wrap_socket(connection, server_side=True) as tls:
            with deadline(tls, HANDSHAKE_S):
                given = received(tls, len(self._secret) + 1)
            if not hmac.compare_digest(given[:-1], self._secret):
                self.notes.add(f"{tls.getpeername()[0]} sent a wrong secret for the migration")
                return
            channel = LETTERS.get(given[-1:])
            if channel == Channel.LIBVIRT:
                self._to_libvirt(tls)
            elif channel is not None and self._prepared.wait(HANDSHAKE_S):
                with connected(str(socket_path(self.directory, channel))) as there:
                    self._check_qemu(there)
                    relay(tls, there)

    def _check_qemu(self, there: socket.socket) -> None:
        """Check the process behind a socket. QEMU can write to the directory, so a name in it may be another daemon's
        socket."""
        _, user, _ = struct.unpack("3i", there.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if user != self._plan.owner[0]:
            self.notes.add(f"a socket of the guest belongs to user {user}, but QEMU's user is {self._plan.owner[0]}")
            raise ConnectionError("not QEMU's socket")

    def _to_libvirt(self, tls: ssl.SSLSocket) -> None:
        """Relay to libvirtd, one connection at a time: a migration needs only one."""
        if not self._one_libvirt.acquire(timeout=HANDSHAKE_S):
            self.notes.add("refused a second connection to libvirtd")
            return
        try:
            calls = _Watched(ListenerFilter(self._move, self.notes.add), self._prepared)
            with connected(self._plan.libvirt) as there:
                relay(tls, there, towards_b=calls)
            if calls.filter.finished:
                self.end_soon()
        finally:
            self._one_libvirt.release()


class _Watched:
    """A filter that signals when the migration is prepared."""

    def __init__(self, filter_: ListenerFilter, prepared: threading.Event) -> None:
        self.filter, self._prepared = filter_, prepared

    def pass_(self, data: bytes) -> Passed:
        """Filter a piece of the stream. Raises BadMessage."""
        passed = self.filter.pass_(data)
        if self.filter.prepared:
            self._prepared.set()
        return passed


def give(path: Path, owner: tuple[int, int]) -> None:
    """Change the owner of a path to QEMU's user. An unprivileged process grants access to QEMU's group, in which it is
    a member: the group has the same rights on guests as QEMU."""
    user, group = owner
    if os.geteuid() in (0, user):
        os.chown(path, user, group)
        return
    with failures.replaced(PermissionError, lambda _: PermissionError(
            f"nova-compute's user is not in QEMU's group {group}: see SupplementaryGroups in the unit")):
        os.chown(path, -1, group)
    path.chmod(path.stat().st_mode | (path.stat().st_mode & 0o700) >> 3)


def own_certificate() -> tuple[str, str]:
    """Return a certificate for one move, and its key, as PEM. The conductor sends it to the source, which accepts no
    other."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "one migration")])
    made = (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=2))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .sign(key, hashes.SHA256()))
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                serialization.NoEncryption())
    return made.public_bytes(serialization.Encoding.PEM).decode(), private.decode()


def server_context(directory: Path, certificate: str, key: str) -> ssl.SSLContext:
    """Return the TLS context. The library reads keys only from files, so the key is in a file for a moment, readable by
    root."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version, context.num_tickets = ssl.TLSVersion.TLSv1_3, 0
    path = directory / "certificate.pem"
    try:
        with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "w") as target:
            target.write(certificate + key)
        context.load_cert_chain(path)
    finally:
        path.unlink(missing_ok=True)
    return context


def listening_socket(address: str, ports: tuple[int, int]) -> socket.socket:
    """Return a socket that listens on a free port. Raises OSError."""
    first, last = ports
    for port in random.sample(range(first, last + 1), last - first + 1):
        try:
            return socket.create_server((address, port), backlog=16,
                                        family=socket.AF_INET6 if ":" in address else socket.AF_INET)
        except OSError as error:
            problem = error
    raise OSError(f"no port of {first} to {last} is free on {address} ({problem})")


# --- the source

class TunnelProcess(MigrationProcess):
    def __init__(self, plan: TunnelPlan) -> None:
        super().__init__(Path(plan.directory))
        self._plan, self.ready = plan, Ready()
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._tls.minimum_version, self._tls.check_hostname = ssl.TLSVersion.TLSv1_3, False
        self._tls.load_verify_locations(cadata=plan.certificate)
        sockets = self.directory / SOCKETS
        sockets.mkdir()
        sockets.chmod(0o711)  # QEMU's user needs access, with any umask of this process
        self._sockets = {self._listening(channel): channel for channel in Channel}

    def run(self) -> None:
        """Run until the migration has ended."""
        self.serve(list(self._sockets), self._carry)

    def _listening(self, channel: Channel) -> socket.socket:
        made, path = socket.socket(socket.AF_UNIX), socket_path(self.directory, channel)
        made.bind(str(path))
        os.chmod(path, 0o600)
        give(path, self._plan.owner)
        made.listen(16)
        return made

    def _carry(self, listening: socket.socket, connection: socket.socket) -> None:
        channel, plan = self._sockets[listening], self._plan
        letter = next(one for one, name in LETTERS.items() if name == channel)
        try:
            there = socket.create_connection((plan.address, plan.port), HANDSHAKE_S)
            keep_alive(there)
            tls = self._tls.wrap_socket(there)
        except OSError as error:
            self.notes.add(f"cannot reach the destination at {plan.address} port {plan.port}: {error}")
            return
        with tls:
            tls.sendall(plan.secret.encode() + letter)
            if channel != Channel.LIBVIRT:
                return relay(tls, connection)
            try:
                relay(tls, connection, TunnelFilter(socket_uri(self.directory, Channel.MEMORY), self.notes.add))
            finally:  # libvirtd keeps this connection open during the whole migration
                self.end_soon()


# --- both

@contextlib.contextmanager
def connected(path: str) -> Iterator[socket.socket]:
    """Yield a connection to a Unix socket. Raises OSError."""
    with socket.socket(socket.AF_UNIX) as made:
        made.settimeout(HANDSHAKE_S)
        made.connect(path)
        yield made


@contextlib.contextmanager
def deadline(connection: socket.socket, seconds: float) -> Iterator[None]:
    """Limit the total time of all operations on the connection, also with a slow peer; then it is shut down."""
    timer = threading.Timer(seconds, functools.partial(_shut, connection))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _shut(connection: socket.socket) -> None:
    """Shut the socket down below TLS, because the TLS object must not be closed while another thread reads from it."""
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as same:
        same.shutdown(socket.SHUT_RDWR)


def keep_alive(connection: socket.socket) -> None:
    """Enable keepalive, to detect a lost peer within half a minute."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, 10), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 4),
                          (socket.TCP_USER_TIMEOUT, 30_000), (socket.TCP_NODELAY, 1)):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)


def received(source: socket.socket, length: int) -> bytes:
    """Return exactly so many bytes. Raises OSError if the stream ends before."""
    found = b""
    while len(found) < length:
        part = source.recv(length - len(found))
        if not part:
            raise ConnectionError("the stream ended too early")
        found += part
    return found


def main() -> None:
    """Read the plan, write the result, and detach from the parent process."""
    kinds: dict[str, Callable[[bytes], ListenerProcess | TunnelProcess]] = {
        "gate": lambda line: ListenerProcess(decoding.from_json(line, ListenerPlan)),
        "tunnel": lambda line: TunnelProcess(decoding.from_json(line, TunnelPlan))}
    line = sys.stdin.buffer.readline()
    try:
        proxy = kinds[sys.argv[1]](line)
    except (OSError, msgspec.DecodeError, ssl.SSLError) as error:
        _answer(Ready(error=str(error) or type(error).__name__))
        return
    _answer(proxy.ready)
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(null, number)
    proxy.run()


def _answer(ready: Ready) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(ready) + b"\n")
    sys.stdout.buffer.flush()
