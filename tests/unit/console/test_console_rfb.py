"""VNC's security with the proxy between: what it takes of a server, what viewers are told, and that it fails closed."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nova import errors
from nova.console import codes, rfb, vencrypt
from nova.console.stream import Stream
from nova.console.target import TargetError
from tests.fakes.console_papers import Authority
from tests.fakes.console_peers import exactly, reset, tcp_pair
from tests.fakes.vnc_server import NONE, OK, VENCRYPT, VERSION, Hypervisor, greet


class Meeting:
    """A viewer, the proxy and a server, each in its thread; the server's half is a function of its socket."""

    def __init__(self, server: Callable[[socket.socket], None], security: rfb.Security) -> None:
        self.viewer, front = tcp_pair()
        self.server, back = tcp_pair()
        self.front, self.back = Stream(front), Stream(back)
        self.secured: Future[Stream] = Future()
        self.served: Future[None] = Future()
        self._run(self.served, lambda: server(self.server))
        self._run(self.secured, lambda: rfb.secure(self.front, self.back, security))

    def _run(self, result: Future[Any], work: Callable[[], Any]) -> None:
        def run() -> None:
            try:
                result.set_result(work())
            except BaseException as error:
                result.set_exception(error)
        threading.Thread(target=run, daemon=True).start()

    def enter(self) -> None:
        """A viewer's part up to where the result of security comes."""
        assert exactly(self.viewer, 12) == VERSION
        self.viewer.sendall(VERSION)
        assert exactly(self.viewer, 2) == bytes((1, NONE))
        self.viewer.sendall(bytes((NONE,)))

    def view(self) -> tuple[int, str]:
        """The result of security: (0, "") or (1, the reason)."""
        self.enter()
        return self.result(lambda count: exactly(self.viewer, count))

    @staticmethod
    def result(read: Callable[[int], bytes]) -> tuple[int, str]:
        status, = struct.unpack(">I", read(4))
        return status, read(struct.unpack(">I", read(4))[0]).decode() if status else ""

    def failure(self) -> TargetError:
        with pytest.raises(TargetError) as found:
            self.secured.result(5)
        return found.value

    def viewers_failure(self) -> tuple[int, str]:
        with pytest.raises(rfb.ViewerError) as found:
            self.secured.result(5)
        return found.value.code, found.value.words

    def close(self) -> None:
        for end in (self.viewer, self.server, self.front, self.back):
            end.close()


@pytest.fixture
def meet() -> Iterator[Callable[..., Meeting]]:
    made = []

    def make(server: Callable[[socket.socket], None], schemes: tuple[str, ...] = ("none",),
             papers: vencrypt.TlsFiles | None = None, timeout_s: float = 2,
             peers: tuple[str, ...] = ("127.0.0.1", "host1")) -> Meeting:
        made.append(Meeting(server, rfb.Security(schemes, papers or vencrypt.TlsFiles(), timeout_s, peers)))
        return made[-1]

    yield make
    for meeting in made:
        meeting.close()


# -- type None


def test_secure_with_none_gives_the_viewer_the_servers_result(meet: Callable[..., Meeting]) -> None:
    def server(sock: socket.socket) -> None:
        greet(sock, bytes((2, NONE, VENCRYPT)))
        assert exactly(sock, 1) == bytes((NONE,))
        sock.sendall(OK)

    meeting = meet(server)
    meeting.enter()
    target = meeting.secured.result(5)
    assert target is meeting.back
    assert target.exactly(4, time.monotonic() + 2) == OK  # it goes through: the relay carries it


def test_secure_takes_the_first_configured_scheme_that_is_offered(meet: Callable[..., Meeting]) -> None:
    took: list[bytes] = []

    def server(sock: socket.socket) -> None:
        greet(sock, bytes((NONE, 2)))
        took.append(exactly(sock, 1))
        sock.sendall(OK)

    meeting = meet(server, ("vencrypt", "none"))
    meeting.enter()
    meeting.secured.result(5)
    meeting.served.result(5)
    assert took == [bytes((NONE,))]


# -- servers that are not as they should be


def hears_nothing_more(sock: socket.socket) -> None:
    """The proxy may not go on with a server that it has refused."""
    assert sock.recv(100) == b""


def only_password(sock: socket.socket) -> None:
    greet(sock, bytes((2,)))
    hears_nothing_more(sock)


def no_types(sock: socket.socket) -> None:
    greet(sock, b"")
    reason = b"Too many\nclients"
    sock.sendall(struct.pack(">I", len(reason)) + reason)


def no_types_and_a_giant_reason(sock: socket.socket) -> None:
    greet(sock, b"")
    sock.sendall(struct.pack(">I", 2 ** 32 - 1) + b"x" * 5000)


def old_version(sock: socket.socket) -> None:
    sock.sendall(b"RFB 003.003\n")
    hears_nothing_more(sock)


def garbage(sock: socket.socket) -> None:
    sock.sendall(b"\xff\x00HTTP/1.1 200 OK\r\n\r\n")


def leaves(sock: socket.socket) -> None:
    sock.sendall(VERSION)
    exactly(sock, 12)
    sock.close()


def resets(sock: socket.socket) -> None:
    reset(sock)


@pytest.mark.parametrize(("server", "words"), [
    (only_password, rfb.NO_SCHEME), (no_types, rfb.REFUSED + "Too many clients"),
    (no_types_and_a_giant_reason, rfb.REFUSED + "x" * rfb.MAX_REASON), (old_version, rfb.NOT_RFB),
    (garbage, rfb.NOT_RFB), (leaves, rfb.CUT_OFF), (resets, rfb.CUT_OFF)],
    ids=lambda value: getattr(value, "__name__", ""))
def test_secure_with_a_wrong_server_fails_and_tells_the_viewer_why(
        meet: Callable[..., Meeting], server: Callable[[socket.socket], None], words: str) -> None:
    meeting = meet(server, ("none", "vencrypt"))
    assert meeting.view() == (1, words)
    assert meeting.failure().words == words
    meeting.back.close()
    meeting.served.result(5)


@pytest.mark.parametrize("silent_after", [0, 1, 2])
def test_secure_with_a_server_that_falls_silent_ends_in_time(meet: Callable[..., Meeting], silent_after: int) -> None:
    def server(sock: socket.socket) -> None:
        if silent_after > 0:
            sock.sendall(VERSION)
        if silent_after > 1:
            exactly(sock, 12)
            sock.sendall(b"\x05\x01")

    meeting = meet(server, timeout_s=0.1)
    assert meeting.view() == (1, rfb.SLOW)
    assert meeting.failure().words == rfb.SLOW


def test_secure_with_a_server_that_sends_without_end_reads_no_more_than_it_needs(meet: Callable[..., Meeting]) -> None:
    def server(sock: socket.socket) -> None:
        sock.sendall(VERSION + b"\xff" * 100_000)

    meeting = meet(server)
    assert meeting.view() == (1, rfb.NO_SCHEME)
    assert len(meeting.back.early) == 0


# -- viewers


@pytest.mark.parametrize(("said", "expected"), [
    (b"RFB 003.003\n", 12), (b"GET / HTTP/1.", 12), (VERSION + b"\x02", 14)])
def test_secure_with_a_viewer_that_speaks_otherwise_fails(meet: Callable[..., Meeting], said: bytes,
                                                          expected: int) -> None:
    meeting = meet(lambda sock: greet(sock, bytes((NONE,))))
    meeting.viewer.sendall(said)
    exactly(meeting.viewer, expected)
    assert meeting.viewers_failure() == (codes.PROTOCOL_ERROR, rfb.BAD_VIEWER)


def test_secure_with_a_viewer_that_leaves_or_is_silent_ends(meet: Callable[..., Meeting]) -> None:
    leaving = meet(lambda sock: greet(sock, bytes((NONE,))))
    exactly(leaving.viewer, 12)
    leaving.viewer.close()
    assert leaving.viewers_failure()[0] == codes.ABNORMAL
    silent = meet(lambda sock: greet(sock, bytes((NONE,))), timeout_s=0.1)
    assert "too long" in silent.viewers_failure()[1]


# -- VeNCrypt


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("stranger"), "another authority")


def papers(authority: Authority, ca: str | None = None) -> vencrypt.TlsFiles:
    mine = authority.issue("proxy")
    return vencrypt.TlsFiles(ca or authority.ca, mine.cert, mine.key)


def test_secure_with_vencrypt_goes_on_inside_tls_with_both_certificates(
        meet: Callable[..., Meeting], authority: Authority) -> None:
    server = Hypervisor(authority, subtypes=(257, 260, 261))
    meeting = meet(server, ("vencrypt",), papers(authority))
    meeting.enter()
    target = meeting.secured.result(5)
    until = time.monotonic() + 3
    assert target.exactly(4, until) == OK
    target.say(b"hello", until)
    assert target.exactly(12, until) == b"inside hello"
    assert target.secure
    meeting.served.result(5)
    assert server.client is not None
    assert server.client["subject"] == ((("commonName", "proxy"),),)
    target.close()


@pytest.mark.parametrize(("others", "detail"), [
    ({"version": b"\0\1"}, "0.1"), ({"acked": b"\1"}, "did not take VeNCrypt"), ({"subtypes": ()}, "0 subtypes"),
    ({"subtypes": (256, 257, 264)}, "Plain, TLSNone, TLSSASL"), ({"taken": b"\0"}, "did not take X509None"),
    ({"subtypes": (1,) * 200}, "200 subtypes"), ({"ahead": b"plain text"}, "TLS")],
    ids=["version 0.1", "not acknowledged", "no subtype", "wrong subtypes", "subtype refused", "many", "text ahead"])
def test_secure_with_vencrypt_in_other_words_fails_and_tells_the_viewer(
        meet: Callable[..., Meeting], authority: Authority, others: dict[str, Any], detail: str) -> None:
    meeting = meet(Hypervisor(authority, **others), ("vencrypt",), papers(authority))
    status, words = meeting.view()
    assert status == 1
    failure = meeting.failure()
    assert failure.words == words
    assert words in (vencrypt.WORDS, vencrypt.UNTRUSTED)
    assert detail in failure.detail


def test_secure_with_a_server_of_another_authority_fails(meet: Callable[..., Meeting], authority: Authority,
                                                         stranger: Authority) -> None:
    meeting = meet(Hypervisor(stranger, trusts=authority.ca), ("vencrypt",), papers(authority))
    assert meeting.view() == (1, vencrypt.UNTRUSTED)
    assert "certificate" in meeting.failure().detail


@pytest.mark.parametrize(("peers", "taken"), [
    (("127.0.0.1",), True), (("::ffff:127.0.0.2", "host1"), False), (("server",), False), ((), False),
    (("127.0.0.2", "127.0.0.1"), True)])
def test_secure_with_the_certificate_of_another_host_fails(
        meet: Callable[..., Meeting], authority: Authority, peers: tuple[str, ...], taken: bool) -> None:
    """A stolen host may not show itself as another: all have certificates of the one authority."""
    meeting = meet(Hypervisor(authority), ("vencrypt",), papers(authority), peers=peers)
    if taken:
        meeting.enter()
        meeting.secured.result(5).close()
    else:
        assert meeting.view() == (1, vencrypt.UNTRUSTED)
        assert "127.0.0.1" in meeting.failure().detail


@pytest.mark.parametrize(("certificate", "peer", "taken"), [
    ({"subjectAltName": (("DNS", "Host1."),)}, "host1", True),
    ({"subjectAltName": (("IP Address", "FD00:0:0:0:0:0:0:1"),)}, "fd00::1", True),
    ({"subjectAltName": (("DNS", "host2"),), "subject": ((("commonName", "host1"),),)}, "host1", False),
    ({"subject": ((("commonName", "host1"),),)}, "host1", True),
    ({"subjectAltName": (("URI", "host1"),)}, "host1", False), ({}, "host1", False)])
def test_certificate_names_its_host_as_certificates_do(certificate: dict[str, Any], peer: str, taken: bool) -> None:
    if taken:
        vencrypt.check_peer(certificate, (peer,))
    else:
        with pytest.raises(vencrypt.VencryptRefused, match="not for host1"):
            vencrypt.check_peer(certificate, (peer,))


def test_secure_with_none_offered_beside_does_not_fall_back_when_vencrypt_fails(
        meet: Callable[..., Meeting], authority: Authority, stranger: Authority) -> None:
    meeting = meet(Hypervisor(stranger, trusts=authority.ca), ("vencrypt", "none"), papers(authority))
    assert meeting.view()[0] == 1
    meeting.failure()


def test_secure_with_a_server_that_is_silent_within_tls_ends_in_time(meet: Callable[..., Meeting],
                                                                     authority: Authority) -> None:
    def server(sock: socket.socket) -> None:
        greet(sock, bytes((VENCRYPT,)))
        exactly(sock, 1)
        sock.sendall(b"\0\2")
        exactly(sock, 2)
        sock.sendall(b"\0\1" + struct.pack(">I", 260))
        exactly(sock, 4)
        sock.sendall(b"\1")
        time.sleep(0.4)

    assert meet(server, ("vencrypt",), papers(authority), timeout_s=0.2).view() == (1, rfb.SLOW)


# -- configuration


def options(**vnc: Any) -> Any:
    given = {"auth_schemes": ["vencrypt", "none"], "vencrypt_ca_certs": None, "vencrypt_client_cert": None,
             "vencrypt_client_key": None, **vnc}
    return SimpleNamespace(vnc=SimpleNamespace(**given), console=SimpleNamespace(connect_timeout=7))


def test_from_conf_with_good_files_takes_schemes_in_their_order(authority: Authority) -> None:
    mine = authority.issue("proxy")
    made = rfb.Security.from_conf(options(vencrypt_ca_certs=authority.ca, vencrypt_client_cert=mine.cert,
                                          vencrypt_client_key=mine.key))
    assert (made.schemes, made.timeout_s) == (("vencrypt", "none"), 7)


@pytest.mark.parametrize("wrong", ["nothing", "no such file", "no certificate", "key of another", "no schemes"])
def test_from_conf_with_wrong_files_names_the_option(authority: Authority, tmp_path: Path, wrong: str) -> None:
    mine, other = authority.issue("proxy"), authority.issue("other")
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    given = {"nothing": {}, "no such file": {"vencrypt_ca_certs": "/nowhere.pem"},
             "no certificate": {"vencrypt_ca_certs": str(empty)},
             "key of another": {"vencrypt_ca_certs": authority.ca, "vencrypt_client_cert": mine.cert,
                                "vencrypt_client_key": other.key},
             "no schemes": {"auth_schemes": []}}[wrong]
    with pytest.raises(errors.Invalid, match=r"\[vnc\]"):
        rfb.Security.from_conf(options(**given))
