"""What Go and Java clients send: bodies in chunks, upgrades that nobody asked for; and what is smuggled in such."""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nova import http_server
from nova.http_request import MAX_HEAD
from tests.fakes.console_papers import Authority

TOP = Path(__file__).resolve().parents[2]
LIMIT = 1000  # bytes of a body in chunks

#: As net/http sends a body of unknown length.
GO = (b"POST /v2.1/servers HTTP/1.1\r\nHost: 127.0.0.1:8774\r\nUser-Agent: Go-http-client/1.1\r\n"
      b"Transfer-Encoding: chunked\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n"
      b"e\r\n{\"server\": {}}\r\n0\r\n\r\n")
#: As java.net.http sends one to a server that it does not know: it would like HTTP/2.
JAVA_HEAD = (b"POST /v2.1/servers HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nHost: 127.0.0.1:8774\r\n"
             b"HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\n%s\r\nUpgrade: h2c\r\n"
             b"User-Agent: Java-http-client/17.0.9\r\n\r\n")
JAVA_CHUNKED = JAVA_HEAD % b"Transfer-encoding: chunked" + b"e\r\n{\"server\": {}}\r\n0\r\n\r\n"
JAVA_LENGTH = JAVA_HEAD % b"Content-Length: 14" + b"{\"server\": {}}"
NEXT = b"GET /next HTTP/1.1\r\nConnection: close\r\n\r\n"


def tell(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    """Path, length and body, as an application gets them."""
    length = environ.get("CONTENT_LENGTH")
    body = environ["wsgi.input"].read(int(length or 0))
    text = f"<{environ['PATH_INFO']} {length} {environ.get('HTTP_TRANSFER_ENCODING')} {body.decode()}>".encode()
    start_response("200 OK", [("Content-Length", str(len(text)))])
    return [text]


@pytest.fixture(scope="module")
def server() -> Iterator[http_server.Server]:
    made = http_server.Server(http_server.bind("127.0.0.1", 0), tell, http_server.ClientBounds(chunked_bytes=LIMIT))
    made.start()
    yield made
    made.stop(1)
    made.sock.close()


def connected(server: http_server.Server) -> socket.socket:
    return socket.create_connection(server.sock.getsockname(), timeout=3)


def to_the_end(sock: socket.socket) -> bytes:
    found = b""
    while part := sock.recv(65536):
        found += part
    return found


def asked(server: http_server.Server, request: bytes, size: int = 0) -> bytes:
    """What comes until the server closes. ``size``: of the pieces that the request is sent in."""
    with connected(server) as sock:
        for at in range(0, len(request), size or len(request)):
            sock.sendall(request[at:at + (size or len(request))])
        return to_the_end(sock)


@pytest.mark.parametrize("size", [0, 1, 7], ids=["at once", "byte by byte", "in pieces"])
@pytest.mark.parametrize("request_", [GO, JAVA_CHUNKED, JAVA_LENGTH], ids=["go", "java", "java, length"])
def test_body_of_a_go_or_java_client_is_taken_and_the_next_request_too(
        server: http_server.Server, request_: bytes, size: int) -> None:
    answer = asked(server, request_ + NEXT, size)
    assert b'</v2.1/servers 14 None {"server": {}}>' in answer
    assert answer.count(b"HTTP/1.1 200 ") == 2 and answer.endswith(b"</next None None >")


def in_chunks(content: bytes, **headers: str) -> bytes:
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return (b"POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + lines.encode() + b"\r\n") + content


@pytest.mark.parametrize(("content", "body"), [
    (b"0\r\n\r\n", b"0 None "),
    (b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", b"5 None abcde"),
    (b"003;name=value;other\r\n\r\n\n\r\n0\r\n\r\n", b"3 None \r\n\n"),
    (b"1\r\na\r\n0\r\nX-Trailer: 1\r\nCookie: 9\r\n\r\n", b"1 None a"),
    (b"1\r\na\r\n" * LIMIT + b"0\r\n\r\n", b"1000 None " + b"a" * LIMIT),
], ids=["empty", "two", "extensions and line ends", "trailers", "small ones"])
def test_chunks_when_they_are_whole_then_the_application_gets_a_body_of_known_length(
        server: http_server.Server, content: bytes, body: bytes) -> None:
    answer = asked(server, in_chunks(content) + NEXT)
    assert b"</c " + body + b">" in answer
    assert answer.endswith(b"</next None None >")


@pytest.mark.parametrize(("content", "status"), [
    (b"x\r\nabc\r\n0\r\n\r\n", b"400"),
    (b"-1\r\nabc\r\n0\r\n\r\n", b"400"),
    (b"0x3\r\nabc\r\n0\r\n\r\n", b"400"),
    (b"3 \r\nabc\r\n0\r\n\r\n", b"400"),
    (b"3\nabc\n0\n\n", b"400"),
    (b"3\r\nabcd\r\n0\r\n\r\n", b"400"),
    (b"\r\n\r\n", b"400"),
    (b"fffffffffffffffff\r\nabc", b"400"),
    (b"0\r\nX Trailer: 1\r\n\r\n", b"400"),
    (b"1\r\na\r\n0\r\nContent-Length: 9\r\n\r\n", b"400"),
    (b"3;" + b"x" * 100_000, b"400"),
    (b"0\r\n" + b"X-Trailer: 1\r\n" * 8_000, b"400"),
    (b"%x\r\n" % (LIMIT + 1) + b"a" * (LIMIT + 1), b"413"),
    ((b"%x\r\n" % LIMIT) + b"a" * LIMIT + b"\r\n1\r\na\r\n", b"413"),
], ids=["no size", "minus", "0x", "space", "bare line feeds", "longer than its size", "nothing", "2^68", "bad trailer",
        "length in a trailer", "endless extension", "endless trailers", "too large", "too large in two"])
def test_chunks_when_they_are_broken_or_too_many_then_they_are_refused_and_the_connection_ends(
        server: http_server.Server, content: bytes, status: bytes) -> None:
    answer = asked(server, in_chunks(content) + NEXT)
    assert answer.startswith(b"HTTP/1.1 " + status) and b"Connection: close\r\n" in answer
    assert b"next" not in answer


@pytest.mark.parametrize("head", [
    b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
    b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    b"Connection: Upgrade\r\nUpgrade: h2c\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: chunked, identity\r\n",
    b"Transfer-Encoding: gzip\r\n",
    b"Transfer-Encoding: xchunked\r\n",
    b"Transfer-Encoding:\x0bchunked\r\n",
    b"Transfer-Encoding : chunked\r\n",
    b"Transfer-Encoding\r\n : chunked\r\n",
    b"X: y\r\n Transfer-Encoding: chunked\r\n",
    b"X: y\nTransfer-Encoding: chunked\r\n",
    b"X: y\rTransfer-Encoding: chunked\r\n",
    b"X: \0\r\n",
    b"Content-Length: 5\r\nContent-Length: 5\r\n",
    b"Content-Length: 5, 5\r\n",
    b"Content-Length: +5\r\n",
    b"Content-Length: 0x5\r\n",
    b"Content-Length: 5 5\r\n",
    b"Content-Length:\r\n",
    b"Content-Length: 99999999999999999999\r\n",
    b": 5\r\n",
    b"no colon\r\n",
])
def test_smuggled_length_is_refused_and_nothing_behind_it_is_heard(server: http_server.Server, head: bytes) -> None:
    answer = asked(server, b"POST / HTTP/1.1\r\n" + head + b"\r\n0\r\n\r\n" + NEXT)
    assert answer.startswith(b"HTTP/1.1 400 "), answer
    assert answer.count(b"HTTP/1.1 ") == 1 and b"next" not in answer


@pytest.mark.parametrize(("request_", "status"), [
    (b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", b"501"),
    (b"POST / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n", b"501"),
    (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"400"),
    (b"GET / HTTP/2.0\r\n\r\n", b"400"),
    (b"GET / HTTP/0.9\r\n\r\n", b"400"),
    (b"GET /\r\n\r\n", b"400"),
    (b"GET / HTTP/1.1\n\n", b"400"),
    (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"400"),
    (b"CONNECT a:1 HTTP/1.1\r\n\r\n", b"400"),
    (b"OPTIONS * HTTP/1.1\r\n\r\n", b"400"),
    (b"GET /a b HTTP/1.1\r\n\r\n", b"400"),
    (b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: %s\r\n" % (one, b"a" * 9000) for one in range(20)) + b"\r\n", b"431"),
    (b"GET / HTTP/1.1\r\nX: " + b"a" * (MAX_HEAD + 9), b"431"),
    (b"GET /" + b"a" * (MAX_HEAD + 9), b"414"),
    (b"\r\n" * MAX_HEAD, b"431"),
])
def test_request_that_is_none_of_ours_is_refused(server: http_server.Server, request_: bytes, status: bytes) -> None:
    answer = asked(server, request_)
    assert answer.startswith(b"HTTP/1.1 " + status), answer
    assert answer.count(b"Content-Length: ") == 1


def test_requests_one_behind_the_other_are_answered_in_their_order(server: http_server.Server) -> None:
    requests = [b"GET /1 HTTP/1.1\r\n\r\n", in_chunks(b"1\r\n2\r\n0\r\n\r\n"), b"\r\nGET /3 HTTP/1.1\r\n\r\n",
                b"POST /4 HTTP/1.1\r\nContent-Length: 1\r\n\r\n4", NEXT]
    answer = asked(server, b"".join(requests))
    assert [part.partition(b">")[0] for part in answer.split(b"<")[1:]] == [
        b"/1 None None ", b"/c 1 None 2", b"/3 None None ", b"/4 1 None 4", b"/next None None "]


def test_client_that_waits_for_leave_to_send_chunks_gets_it_once(server: http_server.Server) -> None:
    with connected(server) as sock:
        sock.sendall(in_chunks(b"", Expect="100-continue", Connection="close"))
        assert sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(b"2\r\nab\r\n0\r\n\r\n")
        assert to_the_end(sock).endswith(b"</c 2 None ab>")


def test_client_that_sends_far_too_much_still_learns_why_it_is_refused(server: http_server.Server) -> None:
    with connected(server) as sock:
        sock.sendall(in_chunks(b"100000\r\n" + bytes(1 << 20)))
        assert to_the_end(sock).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("begun", [b"GET / HT", b"GET / HTTP/1.1\r\nX: 1\r\n", in_chunks(b"5\r\nab"),
                                   in_chunks(b"0\r\n")])
def test_client_that_leaves_within_a_request_gets_no_answer(server: http_server.Server, begun: bytes,
                                                            caplog: pytest.LogCaptureFixture) -> None:
    with connected(server) as sock:
        sock.sendall(begun)
        sock.shutdown(socket.SHUT_WR)
        assert to_the_end(sock) == b""
    assert [record for record in caplog.records if record.name.startswith("nova.http")] == []


def test_chunks_over_tls_are_taken(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*Authority(tmp_path).issue("server", server=True))
    made = http_server.Server(http_server.bind("127.0.0.1", 0), tell, tls=context)
    made.start()
    trusting = ssl._create_unverified_context()
    with connected(made) as plain, trusting.wrap_socket(plain) as sock:
        sock.sendall(GO + NEXT)
        answer = to_the_end(sock)
    assert b'14 None {"server": {}}>' in answer and answer.endswith(b"</next None None >")
    made.stop(1)
    made.sock.close()


@pytest.mark.parametrize("mode", ["eventlet", "threads"])
def test_server_in_a_process_of_either_kind_of_threads_serves_chunks_and_hands_over(mode: str) -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-m", "tests.fakes.http_in_mode", mode], cwd=TOP,
                          capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "ok"), done.stdout + done.stderr
