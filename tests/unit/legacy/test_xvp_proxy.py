"""nova-xvpvncproxy over our HTTP server: what a viewer gets for which token, and RFB both ways after it."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterator

import pytest

from nova import errors, http_server
from nova.console import access, codes, kinds, relay
from nova.console.sessions import SessionLimits, Sessions
from nova.console.target import Reach
from nova.legacy import xvp
from nova.model.guest.consoles import ConsoleAddress, ConsoleConnection, ConsoleType, TokenCheck, token_hash
from tests.fakes.console_peers import TIMEOUT_S, exactly, reset, serving, tcp_pair

TOKEN = "4f7b2f3e-6f0e-4c39-8a52-0f5f36f3a3a1"
BASE = "http://proxy.example:6081/console"


class Auth:
    """nova-consoleauth with one token."""

    def __init__(self, port: int, path: str | None = None) -> None:
        self.address = ConsoleAddress(access_url_base=BASE, host="127.0.0.1", port=port, internal_access_path=path)
        self.asked: list[TokenCheck] = []
        self.away = self.once = False

    def check_token(self, check: TokenCheck) -> ConsoleConnection:
        self.asked.append(check)
        if self.away:
            raise errors.Unavailable("The broker is away.")
        if check.token_hash != token_hash(TOKEN):
            raise errors.NotFound("This console's address has expired.")
        if self.once and check.redeem:
            raise errors.Conflict("Used up.")
        return ConsoleConnection(type=ConsoleType.XVPVNC, server_uuid="server", user_id="user", project_id="project",
                                 address=self.address, expires_at=int(time.time()) + 600, host="here")


class Proxy:
    def __init__(self, auth: Auth, limits: SessionLimits | None = None) -> None:
        self.auth = auth
        self.sessions = Sessions(limits or SessionLimits(10, 10, 10, 10), tell=lambda state: None)
        settings = access.AccessSettings(reach=Reach(timeout_s=1, local_hosts=frozenset(["here"])))
        self.gate = access.ConsoleAccess(kinds.XVPVNC, auth, self.sessions, settings, xvp.STEPS)
        self.server = http_server.Server(http_server.bind("127.0.0.1", 0), xvp.Application(self.gate))
        self.server.start()

    def ask(self, target: str = f"/console?token={TOKEN}", method: str = "GET", headers: str = "") -> socket.socket:
        sock = socket.create_connection(self.server.sock.getsockname(), TIMEOUT_S)
        sock.sendall(f"{method} {target} HTTP/1.1\r\nHost: proxy.example\r\n{headers}\r\n".encode())
        return sock

    def answer(self, *args: str, **others: str) -> tuple[int, str]:
        with self.ask(*args, **others) as sock:
            head = status_line(sock)
            return int(head.split()[1]), body(sock)

    def close(self) -> None:
        self.sessions.drain(0)
        self.server.stop(1)
        self.server.sock.close()


def status_line(sock: socket.socket) -> str:
    """The first line of an answer; its head is read."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += exactly(sock, 1)
    return head.split(b"\r\n")[0].decode()


def body(sock: socket.socket) -> str:
    sock.settimeout(0.1)
    try:
        return sock.recv(4096).decode().strip()
    except TimeoutError:
        return ""


def mirror(sock: socket.socket) -> None:
    sock.sendall(b"RFB 003.008\n")
    while data := sock.recv(65536):
        sock.sendall(data)
    sock.sendall(b"bye")


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with serving(mirror) as port:
        made = Proxy(Auth(port))
        yield made
        made.close()


@pytest.mark.parametrize("method", ["GET", "CONNECT"])
def test_good_token_opens_raw_rfb_both_ways_with_half_closes(proxy: Proxy, method: str) -> None:
    with proxy.ask(method=method) as sock:
        assert exactly(sock, 19 + 12) == b"HTTP/1.1 200 OK\r\n\r\nRFB 003.008\n"
        sock.sendall(b"typed")
        assert exactly(sock, 5) == b"typed"
        assert len(proxy.sessions) == 1
        sock.shutdown(socket.SHUT_WR)
        assert exactly(sock, 3) == b"bye"
        assert sock.recv(1) == b""
    assert proxy.auth.asked[0].types == (ConsoleType.XVPVNC,)
    assert [check.redeem for check in proxy.auth.asked] == [False, True]


@pytest.mark.parametrize(("target", "status", "words"), [
    ("/console", 400, "Invalid Request"), ("/console?token=", 400, "Invalid Request"),
    ("/console?other=x", 400, "Invalid Request"), ("/console?token=wrong", 401, "Not Authorized"),
    (f"/console?token={TOKEN}x", 401, "Not Authorized"), ("/console?token=" + "x" * 300, 401, "Not Authorized"),
    (f"/?token={TOKEN}", 404, "Not Found"), (f"/consoles?token={TOKEN}", 404, "Not Found")])
def test_request_that_opens_nothing_is_answered_in_the_contracts_words(proxy: Proxy, target: str, status: int,
                                                                       words: str) -> None:
    for method in xvp.METHODS:
        assert proxy.answer(target, method) == (status, words)
    assert len(proxy.sessions) == 0


def test_other_methods_are_refused(proxy: Proxy) -> None:
    assert proxy.answer(method="POST")[0] == 405


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://proxy.example"])
def test_request_of_a_foreign_page_is_refused(proxy: Proxy, origin: str) -> None:
    assert proxy.answer(headers=f"Origin: {origin}\r\n") == (401, "Not Authorized")


def test_request_with_the_proxys_own_origin_is_served(proxy: Proxy) -> None:
    with proxy.ask(headers="Origin: http://proxy.example:6081\r\n") as sock:
        assert exactly(sock, 15) == b"HTTP/1.1 200 OK"


def test_token_that_cannot_be_checked_now_is_told_as_unavailable(proxy: Proxy) -> None:
    proxy.auth.away = True
    assert proxy.answer()[0] == 503


def test_console_that_cannot_be_reached_is_told_in_words_and_not_as_200() -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    proxy = Proxy(Auth(port))
    status, words = proxy.answer()
    assert status == 503
    assert "console refuses connections" in words
    proxy.close()


def test_session_beyond_the_limit_is_refused_in_words() -> None:
    with serving(mirror) as port:
        proxy = Proxy(Auth(port), SessionLimits(10, 1, 10, 10))
        with proxy.ask() as first:
            exactly(first, 31)
            status, words = proxy.answer()
            assert status == 503
            assert "maximum number of open consoles" in words
        proxy.close()


def test_internal_access_path_is_asked_for_by_connect() -> None:
    asked: list[bytes] = []

    def xenserver(sock: socket.socket) -> None:
        asked.append(exactly(sock, 30))
        sock.sendall(b"HTTP/1.1 200 OK\r\n\r\nRFB 003.003\n")
        sock.recv(1)

    with serving(xenserver) as port:
        proxy = Proxy(Auth(port, "/console?x"))
        with proxy.ask() as sock:
            assert exactly(sock, 31) == b"HTTP/1.1 200 OK\r\n\r\nRFB 003.003\n"
        proxy.close()
    assert asked == [b"CONNECT /console?x HTTP/1.1\r\n\r"]


def test_drain_ends_open_sessions(proxy: Proxy) -> None:
    with proxy.ask() as sock:
        exactly(sock, 31)
        proxy.sessions.drain(0)
        assert sock.recv(1) == b""
    assert len(proxy.sessions) == 0


def test_proxy_that_stops_takes_no_more_and_asks_nobody(proxy: Proxy) -> None:
    proxy.sessions.draining = True
    status, words = proxy.answer()
    assert status == 503 and "restarted" in words
    assert proxy.auth.asked == []


def test_token_that_is_used_up_by_another_meanwhile_is_not_authorized(proxy: Proxy) -> None:
    proxy.auth.once = True
    assert proxy.answer() == (401, "Not Authorized")


def test_token_is_in_no_log(proxy: Proxy, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with proxy.ask() as sock:
        exactly(sock, 31)
    proxy.answer(f"/console?token={TOKEN}x")
    proxy.answer(headers="Origin: http://evil.example\r\n")
    proxy.sessions.drain(0)
    assert TOKEN[:12] not in caplog.text


def test_viewer_that_has_gone_before_it_was_answered_is_no_failure() -> None:
    mine, theirs = tcp_pair()
    viewer = xvp.Viewer.accept(theirs, {})
    reset(mine)
    time.sleep(0.02)
    ending = xvp.carry(viewer, xvp.Stream(tcp_pair()[0]), relay.Times(), relay.Control())
    viewer.close()
    assert ending.code == codes.ABNORMAL
