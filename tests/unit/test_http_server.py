"""The HTTP server: keep-alive, bodies, what is refused, and how it stops."""

from __future__ import annotations

import contextlib
import http.client
import io
import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from nova import http_request, http_server
from nova.http_connection_limit import HOLDER
from tests.fakes.console_papers import Authority


def echo(environ: dict[str, Any], start_response: Any) -> Any:
    """Answers with what it got; the path chooses how."""
    path = environ["PATH_INFO"]
    if path == "/fail":
        raise ZeroDivisionError("secret")
    if path == "/slow":
        time.sleep(0.3)
    body = environ["wsgi.input"].read() if path != "/unread" else b""
    text = f"{environ['REQUEST_METHOD']} {path}?{environ['QUERY_STRING']} {environ.get('HTTP_X_A')} ".encode() + body
    if path == "/parts":
        start_response("200 OK", [])
        return iter([b"one", b"", b"two"])
    start_response("200 OK", [("Content-Length", str(len(text))), ("X-Line", "a\r\nX-Evil: 1")])
    return [text]


@pytest.fixture
def server() -> Iterator[http_server.Server]:
    made = http_server.Server(http_server.bind("127.0.0.1", 0), echo)
    made.start()
    yield made
    made.stop(2)
    made.sock.close()


def port(server: http_server.Server) -> int:
    return server.sock.getsockname()[1]


def raw(server: http_server.Server, request: bytes) -> bytes:
    """Everything that comes back until the server closes, or 1 s."""
    with socket.create_connection(("127.0.0.1", port(server)), timeout=1) as sock:
        sock.sendall(request)
        found = b""
        try:
            while part := sock.recv(65536):
                found += part
        except TimeoutError:
            pass
        return found


def test_several_requests_go_over_one_connection(server: http_server.Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port(server), timeout=5)
    for number in range(3):
        connection.request("POST", f"/a%20b?n={number}", body=b"data", headers={"X-A": "x"})
        sock = connection.sock
        assert connection.getresponse().read() == f"POST /a b?n={number} x data".encode()
        assert connection.sock is sock


def test_unread_body_does_not_become_the_next_request(server: http_server.Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port(server), timeout=5)
    connection.request("POST", "/unread", body=b"GET /evil HTTP/1.1\r\n\r\n")
    assert connection.getresponse().read() == b"POST /unread? None "
    connection.request("GET", "/next")
    assert connection.getresponse().read() == b"GET /next? None "


def test_body_that_the_application_replaced_does_not_end_the_connection(server: http_server.Server) -> None:
    def replacing(environ: dict[str, Any], start_response: Any) -> Any:
        environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read())  # as webob does to read it twice
        return echo(environ, start_response)
    server.application = replacing
    connection = http.client.HTTPConnection("127.0.0.1", port(server), timeout=5)
    for _ in range(2):
        connection.request("POST", "/", body=b"data")
        sock = connection.sock
        assert connection.getresponse().read().endswith(b"data")
        assert connection.sock is sock


def test_answer_of_unknown_length_goes_in_chunks(server: http_server.Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port(server), timeout=5)
    connection.request("GET", "/parts")
    answer = connection.getresponse()
    assert answer.headers["Transfer-Encoding"] == "chunked"
    assert answer.read() == b"onetwo"


def test_head_has_no_body(server: http_server.Server) -> None:
    assert raw(server, b"HEAD / HTTP/1.1\r\nConnection: close\r\n\r\n").endswith(b"\r\n\r\n")


def test_http_1_0_closes(server: http_server.Server) -> None:
    assert raw(server, b"GET / HTTP/1.0\r\n\r\n").endswith(b"GET /? None ")


@pytest.mark.parametrize(("request_", "status"), [
    (b"NONSENSE\r\n\r\n", b"400"),
    (b"GET / HTTP/3.0\r\n\r\n", b"400"),
    (b"GET ftp://x/ HTTP/1.1\r\n\r\n", b"400"),
    (b"GET / HTTP/1.1\r\nX-A: 1\r\n folded\r\n\r\n", b"400"),
    (b"GET / HTTP/1.1\r\nX-A : 1\r\n\r\n", b"400"),
    (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", b"400"),
    (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"400"),
    (b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\n\r\n", b"414"),
    (b"GET / HTTP/1.1\r\nX-A: " + b"a" * 20000 + b"\r\n\r\n", b"431"),
    (b"GET / HTTP/1.1\r\n" + b"X-A: 1\r\n" * 200 + b"\r\n", b"431"),
])
def test_doubtful_request_is_refused(server: http_server.Server, request_: bytes, status: bytes) -> None:
    answer = raw(server, request_)
    assert answer.startswith(b"HTTP/1.1 " + status)
    assert answer.count(b"-request-id: req-") == 2, "also what no application answers has its ids"


def test_header_with_underscore_is_dropped(server: http_server.Server) -> None:
    assert raw(server, b"GET / HTTP/1.0\r\nX_A: spoofed\r\n\r\n").endswith(b"GET /? None ")


def test_line_end_in_an_answers_header_makes_no_header(server: http_server.Server) -> None:
    assert b"\r\nX-Evil" not in raw(server, b"GET / HTTP/1.0\r\n\r\n")


def test_failing_application_is_500_without_internals(server: http_server.Server) -> None:
    answer = raw(server, b"GET /fail HTTP/1.1\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 500") and b"secret" not in answer


def test_expect_100_continue_is_answered_before_the_body(server: http_server.Server) -> None:
    with socket.create_connection(("127.0.0.1", port(server)), timeout=2) as sock:
        sock.sendall(b"POST / HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        assert sock.recv(100).startswith(b"HTTP/1.1 100")
        sock.sendall(b"ab")
        assert sock.recv(1000).endswith(b"POST /? None ab")


def test_stop_lets_running_requests_end_and_drops_idle_connections(server: http_server.Server) -> None:
    idle = http.client.HTTPConnection("127.0.0.1", port(server), timeout=5)
    idle.request("GET", "/")
    idle.getresponse().read()
    answers: list[bytes] = []

    def slow() -> None:
        answers.append(raw(server, b"GET /slow HTTP/1.1\r\nConnection: close\r\n\r\n"))
    thread = threading.Thread(target=slow)
    thread.start()
    time.sleep(0.1)
    began = time.monotonic()
    server.stop(5)
    assert time.monotonic() - began < 2
    thread.join(2)
    assert answers[0].endswith(b"GET /slow? None ")
    assert idle.sock is None or idle.sock.recv(10) == b""


def test_closed_socket_ends_the_server() -> None:
    sock = http_server.bind("127.0.0.1", 0)
    server = http_server.Server(sock, echo)
    thread = threading.Thread(target=server.run)
    thread.start()
    server.stop(1)
    thread.join(2)
    assert not thread.is_alive()
    sock.close()


def test_taken_port_is_an_os_error() -> None:
    first = http_server.bind("127.0.0.1", 0)
    with pytest.raises(OSError):
        http_server.bind("127.0.0.1", first.getsockname()[1])
    first.close()


def test_target_when_its_brackets_hold_no_address_then_it_is_refused(server: http_server.Server) -> None:
    assert raw(server, b"GET http://[ HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 400 ")


# -- connections that an application takes over, deadlines, TLS


class Taker:
    """Takes over what asks for ``/take``: says hello, then gives back what comes until it ends."""

    def __init__(self) -> None:
        self.running = threading.Semaphore(0)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        if environ["PATH_INFO"] != "/take":
            return echo({**environ, "HTTP_X_A": environ["wsgi.url_scheme"]}, start_response)
        return http_server.TakeOver(self.work)

    def work(self, sock: socket.socket) -> None:
        self.running.release()
        sock.sendall(b"hello")
        while data := sock.recv(100):
            if data == b"fail":
                raise ZeroDivisionError
            sock.sendall(data)


def serving(bounds: http_server.ClientBounds | None = None, **how: Any) -> tuple[http_server.Server, Taker]:
    taker = Taker()
    made = http_server.Server(http_server.bind("127.0.0.1", 0), taker, bounds, **how)
    made.start()
    return made, taker


def taken(server: http_server.Server, more: bytes = b"") -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port(server)), timeout=3)
    sock.sendall(b"GET /take HTTP/1.1\r\n\r\n" + more)
    return sock


def test_connection_when_taken_over_then_all_bytes_are_the_applications() -> None:
    server, _ = serving()
    with taken(server) as sock:
        assert sock.recv(100) == b"hello"
        sock.sendall(b"\x00raw")
        assert sock.recv(100) == b"\x00raw"
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(100) == b"", "the server closes when the work is done"
    server.stop(1)


def test_taken_connection_when_more_was_sent_than_the_request_then_it_is_refused() -> None:
    server, taker = serving()
    with taken(server, b"early") as sock:
        assert sock.recv(1000).startswith(b"HTTP/1.1 400 ")
    assert not taker.running.acquire(blocking=False)
    server.stop(1)


def test_taken_connections_use_no_slot_and_do_not_hold_up_stop() -> None:
    server, taker = serving(http_server.ClientBounds(workers=1, max_connections=1))
    socks = []
    for _ in range(3):
        socks.append(taken(server))
        assert taker.running.acquire(timeout=3)
    assert raw(server, b"GET /x HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200")
    began = time.monotonic()
    server.stop(5)
    assert time.monotonic() - began < 1
    for sock in socks:
        assert sock.recv(5) == b"hello"
        sock.sendall(b"still")
        assert sock.recv(100) == b"still", "stop does not touch it"
        sock.close()


def test_taken_connection_when_its_work_fails_then_it_is_closed() -> None:
    server, _ = serving()
    with taken(server) as sock:
        assert sock.recv(100) == b"hello"
        sock.sendall(b"fail")
        assert sock.recv(100) == b""
    server.stop(1)


def test_head_when_it_comes_byte_by_byte_then_it_has_one_deadline() -> None:
    server, _ = serving(http_server.ClientBounds(head_s=0.3))
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", port(server)), timeout=3) as sock:
        with contextlib.suppress(OSError):
            for _ in range(60):
                sock.sendall(b"G")
                time.sleep(0.05)
        assert time.monotonic() - began < 2.5, "the client could go on for as long as it liked"
    server.stop(1)


def test_slow_head_takes_nothing_from_connections_that_were_taken_over() -> None:
    server, _ = serving(http_server.ClientBounds(head_s=0.1))
    with taken(server) as sock:
        assert sock.recv(100) == b"hello"
        time.sleep(0.2)
        sock.sendall(b"here")
        assert sock.recv(100) == b"here"
    server.stop(1)


@pytest.fixture(scope="module")
def tls_context(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(*Authority(tmp_path_factory.mktemp("tls")).issue("server", server=True))
    return made


def over_tls(server: http_server.Server, request: bytes) -> bytes:
    trusting = ssl._create_unverified_context()
    with socket.create_connection(("127.0.0.1", port(server)), timeout=3) as plain, \
            trusting.wrap_socket(plain) as sock:
        sock.sendall(request)
        found = b""
        with contextlib.suppress(TimeoutError):
            while part := sock.recv(65536):
                found += part
        return found


def test_one_port_when_tls_is_not_the_only_way_then_both_are_served_and_told(tls_context: ssl.SSLContext) -> None:
    server, _ = serving(tls=tls_context, tls_only=False)
    assert over_tls(server, b"GET /x HTTP/1.0\r\n\r\n").endswith(b"GET /x? https ")
    assert raw(server, b"GET /x HTTP/1.0\r\n\r\n").endswith(b"GET /x? http ")
    server.stop(1)


def test_plain_http_when_tls_is_the_only_way_then_nothing_is_answered(tls_context: ssl.SSLContext) -> None:
    server, _ = serving(tls=tls_context)
    answer = b""
    with contextlib.suppress(ConnectionResetError):
        answer = raw(server, b"GET /x HTTP/1.0\r\n\r\n")
    assert not answer.startswith(b"HTTP/")
    server.stop(1)


def test_handshake_when_it_never_ends_then_it_has_the_heads_deadline(tls_context: ssl.SSLContext) -> None:
    server, _ = serving(http_server.ClientBounds(head_s=0.3), tls=tls_context)
    with socket.create_connection(("127.0.0.1", port(server)), timeout=3) as sock:
        sock.sendall(b"\x16\x03\x01\x02\x00")
        assert sock.recv(100) == b""
    server.stop(1)


def test_application_that_wants_the_connection_closed_has_it_closed() -> None:
    def closing(_environ: dict[str, Any], start_response: Any) -> Any:
        start_response("403 Forbidden", [("Connection", "close")])
        return [b"no"]
    server = http_server.Server(http_server.bind("127.0.0.1", 0), closing)
    server.start()
    began = time.monotonic()
    answer = raw(server, b"GET / HTTP/1.1\r\n\r\n")
    assert answer.lower().count(b"connection:") == 1 and answer.endswith(b"no")
    assert time.monotonic() - began < 0.9, "raw reads to the end"
    server.stop(1)


def test_connections_that_only_wait_do_not_keep_others_out() -> None:
    server, _ = serving(http_server.ClientBounds(head_s=5, max_connections=2))
    idle = [socket.create_connection(("127.0.0.1", port(server)), timeout=3) for _ in range(2)]
    assert raw(server, b"GET /x HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200")
    assert idle[0].recv(10) == b"", "the one that waited longest was let go"
    for sock in idle:
        sock.close()
    server.stop(1)


@pytest.mark.parametrize("head", ["Content-Length: 100", "Transfer-Encoding: chunked"])
def test_bodies_that_are_read_whole_and_never_come_then_keep_nobody_out_and_have_a_deadline(head: str) -> None:
    server, _ = serving(http_server.ClientBounds(workers=1, head_s=1, whole_bytes=100, max_connections=3))
    slow = [socket.create_connection(("127.0.0.1", port(server)), timeout=5) for _ in range(3)]
    for sock in slow:
        sock.sendall(f"POST /x HTTP/1.1\r\nHost: a\r\n{head}\r\n\r\n".encode())
    time.sleep(0.2)
    assert raw(server, b"POST /x HTTP/1.0\r\nContent-Length: 4\r\n\r\nbody").endswith(b"body")
    began = time.monotonic()
    assert [sock.recv(10) for sock in slow] == [b""] * 3 and time.monotonic() - began < 3
    for sock in slow:
        sock.close()
    server.stop(1)


LARGE = b"x" * (8 << 20)  # more than the kernel keeps for a client that reads nothing


def large(environ: dict[str, Any], start_response: Any) -> Any:
    start_response("200 OK", [])
    if environ["PATH_INFO"] == "/parts":
        return (LARGE for _ in range(3))
    return [LARGE if environ["PATH_INFO"] == "/large" else b"small"]


def of_project(environ: dict[str, Any], start_response: Any) -> Any:
    """An application that learns its client's project from the request."""
    environ[HOLDER] = environ["HTTP_X_PROJECT"]
    return large(environ, start_response)


def test_slow_bodies_when_one_client_has_all_connections_of_them_then_others_are_answered() -> None:
    """With the bounds as they are by default, which every API has."""
    server, _ = serving(http_server.ClientBounds(head_s=30, max_connections=20))
    slow = [socket.create_connection(("127.0.0.1", port(server)), timeout=5) for _ in range(40)]
    for sock in slow:
        sock.sendall(b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nx")
    assert raw(server, b"GET /x HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200")
    for sock in slow:
        sock.close()
    server.stop(1)


def test_slow_readers_when_one_project_has_all_connections_of_them_then_others_are_answered() -> None:
    bounds = http_server.ClientBounds(head_s=30, max_connections=20)
    server = http_server.Server(http_server.bind("127.0.0.1", 0), of_project, bounds)
    server.start()
    slow = [socket.create_connection(("127.0.0.1", port(server)), timeout=5) for _ in range(20)]
    for sock in slow:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.sendall(b"GET /large HTTP/1.1\r\nHost: a\r\nX-Project: slow\r\n\r\n")
    assert all(sock.recv(100).startswith(b"HTTP/1.1 200") for sock in slow), "each takes its answer"
    assert raw(server, b"GET /x HTTP/1.0\r\nX-Project: other\r\n\r\n").endswith(b"small")
    for sock in slow:
        sock.close()
    server.stop(1)


@pytest.mark.parametrize("path", ["/large", "/parts"])
def test_clients_that_read_nothing_hold_no_slot(path: str) -> None:
    server = http_server.Server(http_server.bind("127.0.0.1", 0), large, http_server.ClientBounds(workers=1))
    server.start()
    with contextlib.ExitStack() as why_not_receiving:
        for _ in range(3):
            sock = why_not_receiving.enter_context(socket.create_connection(("127.0.0.1", port(server)), timeout=3))
            sock.sendall(f"GET {path} HTTP/1.1\r\n\r\n".encode() * 5)
            assert sock.recv(4) == b"HTTP", "its answer is on the way"
        assert raw(server, b"GET /x HTTP/1.0\r\n\r\n").endswith(b"small")
    server.stop(1)


def test_generators_work_is_done_within_the_slots() -> None:
    running: list[int] = []
    most: list[int] = []

    def parts() -> Iterator[bytes]:
        for _ in range(3):
            running.append(1)
            most.append(len(running))
            time.sleep(0.02)
            running.pop()
            yield b"x"

    def working(_environ: dict[str, Any], start_response: Any) -> Any:
        start_response("200 OK", [])
        return parts()
    server = http_server.Server(http_server.bind("127.0.0.1", 0), working, http_server.ClientBounds(workers=1))
    server.start()
    clients = [threading.Thread(target=raw, args=(server, b"GET / HTTP/1.0\r\n\r\n")) for _ in range(3)]
    for client in clients:
        client.start()
    for client in clients:
        client.join(3)
    assert (len(most), max(most)) == (9, 1)
    server.stop(1)


@pytest.mark.parametrize("error", [ssl.SSLEOFError(8, "EOF occurred"), OSError(107, "not connected")])
def test_client_that_leaves_within_an_answer_is_no_failure_of_the_application(
        error: OSError, caplog: pytest.LogCaptureFixture) -> None:
    class Gone:
        def sendall(self, _data: bytes) -> None:
            raise error

    exchange = http_server.Exchange(Gone(), True, False, True)  # type: ignore[arg-type]
    with pytest.raises(ConnectionError):
        exchange.run(large, {"PATH_INFO": "/"}, threading.BoundedSemaphore(1))
    assert not caplog.records


def test_client_that_leaves_within_a_body_is_no_failure_of_the_application(caplog: pytest.LogCaptureFixture) -> None:
    class Gone:
        def recv_into(self, _buffer: Any) -> int:
            raise ssl.SSLEOFError(8, "EOF occurred")

    body = http_request.BodyStream(io.BufferedReader(http_request.SocketSource(Gone())), 9, None)  # type: ignore[arg-type]
    environ = {"PATH_INFO": "/", "REQUEST_METHOD": "POST", "QUERY_STRING": "", "wsgi.input": body}
    with pytest.raises(ConnectionError):
        http_server.Exchange(Gone(), True, False, True).run(echo, environ, threading.BoundedSemaphore(1))  # type: ignore
    assert not caplog.records


def test_clients_that_break_off_tls_leave_no_traceback(tls_context: ssl.SSLContext,
                                                       caplog: pytest.LogCaptureFixture) -> None:
    server = http_server.Server(http_server.bind("127.0.0.1", 0), large, tls=tls_context)
    ended = threading.Event()
    server.forget = lambda connection: ended.set()  # type: ignore[method-assign]
    server.start()
    trusting = ssl._create_unverified_context()
    for request in (b"GET /large HTTP/1.1\r\n\r\n" * 3, b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc"):
        ended.clear()
        plain = socket.create_connection(("127.0.0.1", port(server)), timeout=3)
        with trusting.wrap_socket(plain) as sock:
            sock.sendall(request)
            if b"large" in request:
                sock.recv(10)
        assert ended.wait(3)
    server.stop(0)
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_servers_when_they_have_stopped_then_no_file_of_theirs_is_open() -> None:
    def open_files() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = open_files()
    for _ in range(20):
        server, _sock = serving()
        assert raw(server, b"GET /x HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200")
        server.stop(1)
        server.sock.close()
    until = time.monotonic() + 5
    while open_files() > before + 5 and time.monotonic() < until:
        time.sleep(0.05)
    assert open_files() <= before + 5
