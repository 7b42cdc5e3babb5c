"""Gate and tunnel as real processes, between sockets that stand for two libvirtds and two QEMUs."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import ssl
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from nova import errors
from nova.migrationproxy import PID_FILE, Channel, socket_path
from nova.migrationproxy.wire import Message, Messages, Procedure, Status
from nova.privileged import pid_files
from nova.virt.libvirt.moves.proxies import MigrationProxies
from nova.virt.libvirt.settings.moves import MoveSettings
from tests.contract.driver_conformance import eventually
from tests.unit.migrationproxy.libvirt_calls import (
    DEFINITION,
    UUID,
    answer,
    call,
    finishing,
    number,
    opening,
    parameters,
    preparing,
)

pytestmark = pytest.mark.one_in(2)  # one of two runs has each

OWNER = os.geteuid(), os.getegid()


class Server:
    """A Unix socket: what came, and what it answers."""

    def __init__(self, path: Path, reply: Callable[[bytes], bytes]) -> None:
        self.heard, self._reply, self._socket = bytearray(), reply, socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                threading.Thread(target=self._speak, args=(connection,), daemon=True).start()

    def _speak(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            while data := connection.recv(1 << 16):
                self.heard += data
                connection.sendall(self._reply(data))


def answered(data: bytes) -> bytes:
    """As libvirtd answers; a prepare with no cookie and no address of its own."""
    return b"".join(answer(one, number(0) + number(0) if one.procedure == Procedure.PREPARE else b"").encode()
                    for one in Messages().feed(data))


class Ends:
    """The destination, with its libvirtd and gate; the source, with its tunnel."""

    def __init__(self, top: Path) -> None:
        self.there = self._proxies(top / "b")
        self.here = self._proxies(top / "a")
        self.libvirtd = Server(top / "b" / "libvirt", answered)

    @staticmethod
    def _proxies(top: Path) -> MigrationProxies:
        top.mkdir()
        return MigrationProxies(settings=MoveSettings(migrations_path=top / "run"), owner=lambda: OWNER,
                                libvirt_uri=f"qemu:///system?socket={top / 'libvirt'}")

    def qemu(self, channel: Channel) -> Server:
        """The destination's, which has made its sockets."""
        return Server(socket_path(self.there.directory(UUID), channel), lambda data: data[::-1])

    def close(self) -> None:
        for one in (self.here, self.there):
            one.close(UUID)


@pytest.fixture
def ends() -> Iterator[Ends]:
    top = Path(tempfile.mkdtemp(prefix="mp"))  # a socket's path is short
    made = Ends(top)
    yield made
    made.close()
    shutil.rmtree(top)


@pytest.fixture
def joined(ends: Ends) -> Ends:
    ends.here.open_tunnel(UUID, ends.there.open_listener(UUID, DEFINITION))
    return ends


class Caller:
    """The source's libvirtd, or its QEMU."""

    def __init__(self, ends: Ends, channel: Channel) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(20)
        self._socket.connect(str(socket_path(ends.here.directory(UUID), channel)))

    def say(self, data: bytes) -> bytes:
        with contextlib.suppress(ConnectionError):
            self._socket.sendall(data)
            return self._socket.recv(1 << 16)
        return b""

    def ask(self, message: Message) -> Message:
        return Messages().feed(self.say(message.encode()))[0]

    def close(self) -> None:
        self._socket.close()


def given(ends: Ends, **changes: str | int | None) -> dict[str, str | int]:
    return parameters(ends.there.directory(UUID), **changes)


def lives(proxies: MigrationProxies) -> bool:
    return pid_files.running(proxies.directory(UUID) / PID_FILE) is not None


def test_migration_when_it_goes_its_way_then_all_passes_and_both_processes_end(joined):
    libvirtd = Caller(joined, Channel.LIBVIRT)
    assert libvirtd.ask(opening()).status == Status.OK
    assert libvirtd.ask(preparing(given(joined))).status == Status.OK
    qemu = {channel: joined.qemu(channel) for channel in (Channel.MEMORY, Channel.DISKS)}
    for channel, server in qemu.items():
        caller = Caller(joined, channel)
        assert caller.say(b"pages of " + channel.encode()) == (b"pages of " + channel.encode())[::-1]
        caller.close()
        assert server.heard == b"pages of " + channel.encode()
    assert libvirtd.ask(finishing(given(joined))).status == Status.OK
    libvirtd.close()
    assert eventually(lambda: not lives(joined.here) and not lives(joined.there), 15)
    assert joined.here.notes(UUID) == [] == joined.there.notes(UUID)


def test_amount_when_it_is_large_then_it_arrives_whole_both_ways(joined):
    libvirtd = Caller(joined, Channel.LIBVIRT)
    libvirtd.ask(preparing(given(joined)))
    server, caller = joined.qemu(Channel.MEMORY), Caller(joined, Channel.MEMORY)
    sent = os.urandom(1 << 20) * 8
    reader, got = threading.Thread(target=lambda: _drain(caller, len(sent), got)), bytearray()
    reader.start()
    caller._socket.sendall(sent)
    reader.join(30)
    assert bytes(server.heard) == sent and len(got) == len(sent)


def _drain(caller: Caller, length: int, into: bytearray) -> None:
    while len(into) < length and (part := caller._socket.recv(1 << 16)):
        into += part


def test_call_when_it_belongs_to_no_migration_then_the_source_is_told_why_and_the_log_too(joined, caplog):
    libvirtd = Caller(joined, Channel.LIBVIRT)
    refused = libvirtd.ask(call(143))
    assert refused.status == Status.ERROR and b"is not part of a migration" in refused.payload
    assert libvirtd.ask(opening()).status == Status.OK
    joined.there.close(UUID)
    assert "libvirt's procedure 143" in caplog.text and UUID in str([one.__dict__ for one in caplog.records])
    assert b"\0\0\0\x8f" not in joined.libvirtd.heard


def test_memory_when_nothing_was_prepared_then_it_is_not_taken(joined, monkeypatch):
    server, caller = joined.qemu(Channel.MEMORY), Caller(joined, Channel.MEMORY)
    caller._socket.settimeout(2)
    with pytest.raises(TimeoutError):
        caller.say(b"pages")
    assert server.heard == b""


def test_memory_when_its_socket_is_another_daemons_then_it_is_not_taken(ends):
    """QEMU may write to that directory: the name may stand for any socket of the host."""
    there = MigrationProxies(settings=ends.there.settings, owner=ends.there.owner, libvirt_uri=ends.there.libvirt_uri)
    ends.here.open_tunnel(UUID, there.open_listener(UUID, DEFINITION))
    Caller(ends, Channel.LIBVIRT).ask(preparing(given(ends)))
    plan = ends.there.directory(UUID) / "plan.json"
    assert b'"owner":[%d' % OWNER[0] in plan.read_bytes()
    if OWNER[0] == 0:  # as root we can be somebody whom QEMU is not
        ends.there.close(UUID)
        ends.here.close(UUID)
        other = MigrationProxies(settings=ends.there.settings, owner=lambda: (64055, 109),
                                 libvirt_uri=ends.there.libvirt_uri)
        ends.here.open_tunnel(UUID, other.open_listener(UUID, DEFINITION))
        libvirtd = Caller(ends, Channel.LIBVIRT)
        libvirtd.ask(preparing(given(ends)))
        ends.qemu(Channel.MEMORY)
        assert Caller(ends, Channel.MEMORY).say(b"pages") == b""
        assert any("belongs to user 0" in note for note in other.notes(UUID))


def connected(ends: Ends, gate, secret: str, letter: bytes = b"l", certificate: str | None = None) -> bytes:
    """As somebody who calls the gate without a tunnel: what they hear."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(cadata=certificate or gate.certificate)
    with socket.create_connection((gate.address, gate.port), 20) as plain, context.wrap_socket(plain) as tls:
        tls.sendall(secret.encode() + letter + opening().encode())
        return tls.recv(1 << 16)


@pytest.mark.parametrize(("secret", "letter"), [("0" * 64, b"l"), (None, b"x")])
def test_gate_when_the_secret_or_the_channel_is_wrong_then_nothing_reaches_libvirtd(ends, secret, letter):
    gate = ends.there.open_listener(UUID, DEFINITION)
    assert connected(ends, gate, gate.secret if secret is None else secret, letter) == b""
    assert ends.libvirtd.heard == b""
    assert connected(ends, gate, gate.secret), "who knows it comes in"


def test_gate_when_nobody_says_anything_then_others_come_in_all_the_same(ends):
    gate = ends.there.open_listener(UUID, DEFINITION)
    silent = [socket.create_connection((gate.address, gate.port)) for _ in range(20)]
    assert connected(ends, gate, gate.secret)
    for one in silent:
        one.close()


def test_tunnel_when_the_gate_is_another_one_then_it_tells_no_secret(ends):
    """Whoever took the gate's port has not its certificate."""
    gate, other = ends.there.open_listener(UUID, DEFINITION), ends.here.open_listener("another", DEFINITION)
    try:
        ends.here.open_tunnel(UUID, msgspec.structs.replace(gate, port=other.port))
        assert Caller(ends, Channel.LIBVIRT).say(opening().encode()) == b""
        assert eventually(lambda: any("cannot reach the destination" in note for note in ends.here.notes(UUID)), 5)
        assert ends.here.notes("another") == [], "nobody came as far as a secret"
    finally:
        ends.here.close("another")


def test_tunnel_when_the_destination_is_gone_then_the_source_ends_at_once_and_says_so(joined, caplog):
    joined.there.close(UUID)
    assert Caller(joined, Channel.LIBVIRT).say(opening().encode()) == b""
    assert eventually(lambda: bool(joined.here.notes(UUID)), 5)
    joined.here.close(UUID)
    assert "cannot reach the destination at 127.0.0.1" in caplog.text


def test_gate_when_it_is_opened_again_then_it_is_the_same_until_the_guest_is_another(ends):
    first = ends.there.open_listener(UUID, DEFINITION)
    assert ends.there.open_listener(UUID, DEFINITION) == first
    other = ends.there.open_listener(UUID, DEFINITION.replace("<os>", "<vcpu>2</vcpu><os>"))
    assert other.secret != first.secret and other.certificate != first.certificate


def test_gate_when_its_process_was_killed_then_another_one_is_opened(ends):
    first = ends.there.open_listener(UUID, DEFINITION)
    os.kill(pid_files.running(ends.there.directory(UUID) / PID_FILE), signal.SIGKILL)
    assert eventually(lambda: not lives(ends.there), 5)
    assert ends.there.open_listener(UUID, DEFINITION).secret != first.secret


def test_tunnel_when_it_is_opened_again_then_the_migration_goes_on(joined):
    gate = joined.there.open_listener(UUID, DEFINITION)
    libvirtd = Caller(joined, Channel.LIBVIRT)
    libvirtd.ask(opening())
    joined.here.open_tunnel(UUID, gate)
    assert libvirtd.ask(call(66)).status == Status.OK


def test_process_when_its_directory_is_gone_then_it_ends(joined):
    pids = [pid_files.running(one.directory(UUID) / PID_FILE) for one in (joined.here, joined.there)]
    for one in (joined.here, joined.there):
        shutil.rmtree(one.directory(UUID))
    assert eventually(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in pids), 5)


def test_sockets_when_our_umask_is_strict_then_qemus_user_reaches_them_all_the_same(ends):
    before = os.umask(0o077)
    try:
        ends.here.open_tunnel(UUID, ends.there.open_listener(UUID, DEFINITION))
    finally:
        os.umask(before)
    for one in (ends.here, ends.there):
        folder = one.directory(UUID)
        assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE(folder.parent.stat().st_mode) == 0o711
    assert stat.S_IMODE((ends.here.directory(UUID) / "qemu").stat().st_mode) == 0o711
    assert stat.S_IMODE((ends.there.directory(UUID) / "qemu").stat().st_mode) == 0o700, "it is QEMU's own"


def test_gate_when_somebody_speaks_a_letter_at_a_time_then_the_connection_ends_in_time(ends, monkeypatch):
    gate = ends.there.open_listener(UUID, DEFINITION)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(cadata=gate.certificate)
    began = time.monotonic()
    with socket.create_connection((gate.address, gate.port), 20) as plain, context.wrap_socket(plain) as tls, \
            pytest.raises(OSError):
        while time.monotonic() - began < 30:
            tls.send(b"0")
            time.sleep(0.4)
    assert 9 < time.monotonic() - began < 20


def test_files_of_a_migration_are_nobody_elses(joined):
    for one in (joined.here, joined.there):
        assert not list(one.directory(UUID).glob("*.pem"))
        for path in one.directory(UUID).glob("*.json"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
    sockets = socket_path(joined.here.directory(UUID), Channel.LIBVIRT)
    assert stat.S_IMODE(sockets.stat().st_mode) == 0o600


def test_close_when_there_is_nothing_then_nothing_happens(ends):
    ends.there.close(UUID)
    ends.there.close(UUID)


def test_gate_when_no_port_is_free_then_it_is_a_refusal_that_names_them(ends):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        busy = MigrationProxies(owner=lambda: OWNER, settings=MoveSettings(
            migrations_path=ends.there.settings.migrations_path, migration_ports=(port, port)))
        with pytest.raises(errors.move.Proxy, match=f"no port of {port} to {port} is free"):
            busy.open_listener(UUID, DEFINITION)
