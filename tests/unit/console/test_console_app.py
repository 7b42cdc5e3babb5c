"""A console proxy as a browser meets it: pages, words, WebSockets - over a real socket, before a small guest."""

from __future__ import annotations

import http.client
import logging
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from nova import errors, http_server
from nova.console import access, app, codes, installed, kinds, sessions
from nova.console.installed import ProxyPages
from nova.console.target import Reach
from tests.fakes.console_front import GOOD, Client, FakeConsoleAuth, FakeEnd, echo, rfb

HERE = Reach(local_hosts=frozenset(["here"]))
NOVNC_PAGE = f"/vnc_auto.html?path=%3Ftoken%3D{GOOD}"


class Proxy:
    """A proxy of one kind that serves; ``auth`` knows :data:`GOOD`."""

    def __init__(self, kind: kinds.ConsoleKind, pages: ProxyPages) -> None:
        self.end = FakeEnd(echo if kind is kinds.SERIAL else rfb)
        self.auth = FakeConsoleAuth(kind.types[0])
        self.auth.give(port=self.end.port)
        self.sessions = sessions.Sessions(sessions.SessionLimits(9, 2, 9, 9), kind.exclusive, lambda _state: None)
        door = access.ConsoleAccess(kind, self.auth, self.sessions, access.AccessSettings(reach=HERE))
        self.server = http_server.Server(http_server.bind("127.0.0.1", 0), app.App(door, pages),
                                         http_server.ClientBounds(20, 5, 5))
        self.server.start()
        self.port: int = self.server.sock.getsockname()[1]

    def get(self, target: str, method: str = "GET", **headers: str) -> tuple[http.client.HTTPResponse, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        connection.putrequest(method, target, skip_host=False)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        answer = connection.getresponse()
        text = answer.read().decode("utf-8", "replace")
        connection.close()
        return answer, text

    def stop(self) -> None:
        self.server.stop(1)
        self.server.sock.close()
        self.end.close()


@pytest.fixture
def novnc(tmp_path: Path) -> Iterator[Proxy]:
    web = tmp_path / "web"
    (web / "app").mkdir(parents=True)
    (web / "vnc_auto.html").write_text("<!doctype html><html><HEAD lang=x><script src='app/ui.js'></script></head>")
    (web / "own.html").write_text("<p>no head")
    (web / "app" / "ui.js").write_text("x" * 100_000)
    proxy = Proxy(kinds.NOVNC, installed.pages(kinds.NOVNC, str(web), ""))
    yield proxy
    proxy.stop()


@pytest.fixture
def serial(tmp_path: Path) -> Iterator[Proxy]:
    (tmp_path / "xterm.js").write_text("window.Terminal = 1;")
    (tmp_path / "xterm.css").write_text(".xterm {}")
    proxy = Proxy(kinds.SERIAL, installed.pages(kinds.SERIAL, None, str(tmp_path)))
    yield proxy
    proxy.stop()


# -- pages


def test_entry_page_when_the_library_is_not_installed_then_it_says_what_to_install_and_websockets_open(tmp_path: Path
                                                                                                       ) -> None:
    proxy = Proxy(kinds.NOVNC, installed.pages(kinds.NOVNC._replace(web=str(tmp_path / "novnc")), None, ""))
    answer, text = proxy.get(NOVNC_PAGE)
    assert answer.status == 503 and "install Debian&#x27;s package novnc" in text
    assert proxy.get("/app/ui.js")[0].status == 404
    assert proxy.get(NOVNC_PAGE.replace(GOOD, "bad"))[0].status == 404, "a bad token is told first"
    client = Client(proxy.port, f"/?token={GOOD}")
    assert client.status == 101
    proxy.stop()


def test_entry_page_with_a_good_token_comes_with_our_script_first(novnc: Proxy) -> None:
    answer, text = novnc.get(NOVNC_PAGE)
    assert answer.status == 200
    assert ('<HEAD lang=x><script src=".nova/why.js"></script><script src=".nova/session.js"></script>'
            "<script src='app/ui.js'>") in text
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["X-Frame-Options"] is None, "dashboards embed it"
    assert [check.redeem for check in novnc.auth.checks] == [False], "looking uses nothing up"
    assert "session" in novnc.get("/.nova/session.js")[1] and "novaWhy" in novnc.get("/.nova/why.js")[1]


@pytest.mark.parametrize(("error", "status", "words"), [
    (errors.NotFound("It <b>expired</b>."), 404, "It &lt;b&gt;expired&lt;/b&gt;."),
    (errors.Conflict("It was used."), 403, "It was used."), (errors.Invalid("Not here."), 403, "Not here."),
    (errors.Unavailable("rabbit@10.1.2.3"), 503, "cannot be checked now"),
])
def test_entry_page_with_a_bad_token_says_why_in_words(novnc: Proxy, error: errors.NovaError, status: int,
                                                       words: str) -> None:
    novnc.auth.error = error
    answer, text = novnc.get(NOVNC_PAGE)
    assert answer.status == status and words in text and "10.1.2.3" not in text
    assert ('class="again"' in text) == (status == 503)
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    plain, said = novnc.get(NOVNC_PAGE, Accept="text/plain")
    assert plain.status == status and plain.headers["Content-Type"].startswith("text/plain") and "<p>" not in said


def test_page_when_there_is_no_token_then_it_explains_itself_is_well_and_asks_nobody(novnc: Proxy) -> None:
    """kolla's ``curl --fail``, and nova-operator's probes, ask for a page without a token."""
    for target in ("/vnc_auto.html", "/vnc_lite.html", "/"):
        answer, text = novnc.get(target)
        assert answer.status == 200 and "no token" in text and "openstack console url show --novnc" in text
    assert novnc.auth.checks == []


def test_operators_own_page_when_it_comes_with_a_token_then_it_is_checked_too(novnc: Proxy) -> None:
    assert novnc.get("/own.html")[1] == "<p>no head"
    assert novnc.get(f"/own.html?token={GOOD}")[1].endswith("session.js\"></script><p>no head")
    assert novnc.get("/own.html?token=bad")[0].status == 404


@pytest.mark.parametrize("target", [NOVNC_PAGE, "/", "/app/ui.js", "/.nova/session.js", "/none"])
def test_page_when_it_is_shown_then_it_sets_no_cookie(novnc: Proxy, target: str) -> None:
    answer, _ = novnc.get(target, Cookie=f"token={GOOD}")
    assert "Set-Cookie" not in answer.headers


def test_plain_words_of_a_good_token_say_so(novnc: Proxy) -> None:
    answer, text = novnc.get(NOVNC_PAGE, Accept="text/plain")
    assert answer.status == 200 and text == "This console can be opened.\n"


def test_file_is_served_with_type_and_kept_while_it_is_the_same(novnc: Proxy) -> None:
    answer, text = novnc.get("/app/ui.js")
    assert (answer.status, len(text)) == (200, 100_000)
    assert answer.headers["Content-Type"].startswith("text/javascript")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    again, _ = novnc.get("/app/ui.js", If_None_Match=answer.headers["ETag"])
    assert again.status == 304
    dated, _ = novnc.get("/app/ui.js", If_Modified_Since=answer.headers["Last-Modified"])
    assert dated.status == 304
    head, empty = novnc.get("/app/ui.js", method="HEAD")
    assert (head.status, head.headers["Content-Length"], empty) == (200, "100000", "")
    ours, _ = novnc.get("/.nova/session.js")
    assert novnc.get("/.nova/session.js", If_None_Match=ours.headers["ETag"])[0].status == 304


@pytest.mark.parametrize(("target", "status"), [
    ("//evil.example/%2e%2e", 400), ("//", 400), ("/%2fevil.example/", 400), ("/\\evil.example/", 400),
    ("/%5cevil.example", 400), ("/..%2f..%2fetc/passwd", 404), ("/%2e%2e/%2e%2e/etc/passwd", 404),
    ("/%252e%252e/etc/passwd", 404), ("/app", 404), ("/app/", 404), ("/none", 404), ("/.nova/", 404),
    ("/.nova/../vnc_auto.html", 404), ("/.nova/error.html", 404), ("/app/ui.js%00.html", 404),
])
def test_tricks_with_paths_give_neither_files_nor_redirects(novnc: Proxy, target: str, status: int) -> None:
    answer, _ = novnc.get(target)
    assert answer.status == status
    assert "Location" not in answer.headers


def test_other_methods_are_not_answered(novnc: Proxy) -> None:
    assert novnc.get("/", method="POST")[0].status == 405
    assert novnc.get("/app/ui.js", method="DELETE")[0].status == 405


def test_serial_page_is_our_own(serial: Proxy) -> None:
    answer, text = serial.get(f"/?token={GOOD}")
    assert answer.status == 200 and ".nova/serial.js" in text
    for name in ("why.js", "serial.js", "serial.css", "terminal.js", "terminal.css"):
        assert name in text and serial.get(f"/.nova/{name}")[0].status == 200
    assert serial.get("/?token=bad")[0].status == 404
    assert serial.get("/")[0].status == 200
    assert serial.get("/other")[0].status == 404


# -- WebSockets


def test_websocket_with_a_good_token_reaches_the_guest(serial: Proxy) -> None:
    client = Client(serial.port, f"/?token={GOOD}")
    assert client.status == 101 and "Sec-WebSocket-Protocol: binary" in client.head
    assert client.received(10).decode().startswith("Grüße")
    client.close()


def test_websocket_reads_the_token_of_a_cookie_too(serial: Proxy) -> None:
    client = Client(serial.port, "/websockify", {"Cookie": f"x; token={GOOD}"})
    assert client.status == 101
    client.close()


@pytest.mark.parametrize(("target", "headers", "status"), [
    ("/", {}, 403), ("/?token=bad", {}, 403), ("/?token=" + "a" * 999, {}, 403),
    (f"/?token={GOOD}", {"Origin": "http://evil.example"}, 403), (f"/?token={GOOD}", {"Origin": "null"}, 403),
    (f"/?token={GOOD}", {"Origin": "https://127.0.0.1"}, 403),
    (f"/?token={GOOD}", {"Sec-WebSocket-Version": "12"}, 400), (f"/?token={GOOD}", {"Sec-WebSocket-Key": "x"}, 400),
])
def test_websocket_that_may_not_is_refused_in_words_before_the_guest_is_reached(
        serial: Proxy, target: str, headers: dict[str, str], status: int) -> None:
    client = Client(serial.port, target, headers)
    assert client.status == status and len(client.words.split()) > 2
    assert client.body == b"", "programs take what comes behind the head for a console's first bytes"
    assert serial.end.count == 0


def test_websocket_when_nobody_can_check_then_503(serial: Proxy) -> None:
    serial.auth.error = errors.Unavailable("broker")
    client = Client(serial.port, f"/?token={GOOD}")
    assert client.status == 503 and client.words == access.NOT_NOW


def test_open_session_goes_on_when_nobody_can_check(serial: Proxy) -> None:
    client = Client(serial.port, f"/?token={GOOD}")
    client.received(40)
    serial.auth.error = errors.Unavailable("broker")
    client.send(b"still here")
    assert client.received(10) == b"still here"
    client.close()


def test_second_session_of_a_serial_port_closes_the_first_in_words(serial: Proxy) -> None:
    first = Client(serial.port, f"/?token={GOOD}")
    first.received(10)
    second = Client(serial.port, f"/?token={GOOD}")
    second.received(10)
    assert first.closing() == (codes.ELSEWHERE, sessions.OPENED_ELSEWHERE)
    second.close()


def test_limit_closes_with_words(novnc: Proxy) -> None:
    clients = [Client(novnc.port, f"/?token={GOOD}") for _ in range(3)]
    code, words = clients[2].closing()
    assert code == codes.POLICY and "maximum number of open consoles" in words
    for client in clients:
        client.close()


def test_drain_refuses_new_ones_and_tells_those_that_run(serial: Proxy) -> None:
    client = Client(serial.port, f"/?token={GOOD}")
    client.received(10)
    draining = threading.Thread(target=serial.sessions.drain, args=(0.01,))
    draining.start()
    assert client.closing() == (codes.GOING_AWAY, sessions.DRAINING)
    client.close()
    draining.join(2)
    assert len(serial.sessions) == 0
    late = Client(serial.port, f"/?token={GOOD}")
    assert late.status == 503 and "restarted" in late.words


def test_host_that_takes_no_connection_is_told_in_the_close(serial: Proxy) -> None:
    serial.end.close()
    serial.auth.give(port=1)
    code, words = Client(serial.port, f"/?token={GOOD}").closing()
    assert code == 1011 and words and "127.0.0.1" not in words


def test_bytes_that_come_too_early_do_not_use_a_token_up(novnc: Proxy) -> None:
    novnc.auth.once = True
    key = "dGhlIHNhbXBsZSBub25jZQ=="
    with socket.create_connection(("127.0.0.1", novnc.port), timeout=5) as early:
        early.sendall(f"GET /?token={GOOD} HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                      f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\nearly".encode())
        assert early.recv(100).startswith(b"HTTP/1.1 400 ")
    client = Client(novnc.port, f"/?token={GOOD}")
    assert client.received(12) == b"RFB 003.008\n"
    client.close()


# -- logs


def test_only_what_becomes_of_tokens_is_news(novnc: Proxy, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger=app.LOG.name):
        for target in ("/wp-login.php", "/none", "/vnc_auto.html", "//x"):
            novnc.get(target)
        Client(novnc.port, "/").close()
        assert caplog.messages == []
        novnc.get("/vnc_auto.html?token=bad")
        Client(novnc.port, "/?token=" + "x" * 999).close()
    assert [message[-3:] for message in caplog.messages] == ["404", "403"]


def test_no_log_line_has_a_token(novnc: Proxy, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        for target in (NOVNC_PAGE, f"/?token={GOOD}", f"/%3Ftoken%3D{GOOD}", f"/x/{GOOD}", f"//{GOOD}",
                       f"/{GOOD.replace('-', '')}", f"/vnc_auto.html?token={GOOD}&x=1", "/token=plainsecret"):
            novnc.get(target, Cookie=f"token={GOOD}; <malformed {GOOD}>", Referer=f"http://x/?token={GOOD}")
            Client(novnc.port, target, {"Origin": f"http://{GOOD}.example/", "Host": "x"}).close()
        novnc.auth.error = errors.NotFound("Gone.")
        Client(novnc.port, f"/?token={GOOD}").close()
    said = "\n".join(f"{record.getMessage()} {record.__dict__}" for record in caplog.records)
    assert "GET /***" in said and "with Origin http://***.example" in said
    assert GOOD not in said and GOOD.replace("-", "") not in said and "plainsecret" not in said
