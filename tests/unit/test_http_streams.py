"""Bodies in chunks that an application reads itself, answers before a body was read, and the path as it was sent."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from nova import http_server
from nova.http_request import MAX_LEFT_OVER

HEAD = b"PUT %s HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n%s\r\n"
NEXT = b"GET /next HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"


def tell(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    """How many bytes there were; none are read at ``/unread``."""
    body, size, line = environ["wsgi.input"], 0, b""
    if environ["PATH_INFO"] == "/lines":
        line = body.readline(100)
    while environ["PATH_INFO"] != "/unread" and (part := body.read(1000)):
        size += len(part)
    text = f"<{environ['RAW_URI']} {size} {environ['wsgi.input_terminated']} {line!r}>".encode()
    start_response("200 OK", [("Content-Length", str(len(text)))])
    return [text]


@pytest.fixture(scope="module")
def server() -> Iterator[http_server.Server]:
    bounds = http_server.ClientBounds(chunked_bytes=None, whole_bytes=0)
    made = http_server.Server(http_server.bind("127.0.0.1", 0), tell, bounds)
    made.start()
    yield made
    made.stop(1)
    made.sock.close()


def asked(server: http_server.Server, *parts: bytes) -> bytes:
    """What comes until the server closes."""
    with socket.create_connection(server.sock.getsockname(), timeout=5) as sock:
        for part in parts:
            sock.sendall(part)
        found = b""
        while part := sock.recv(65536):
            found += part
        return found


def test_stream_when_it_is_far_larger_than_any_bound_then_the_application_gets_it_and_the_next_request_follows(
        server: http_server.Server) -> None:
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    answer = asked(server, HEAD % (b"/a", b""), *[chunk] * 32, b"0\r\nX-Trailer: 1\r\n\r\n", NEXT)
    assert b"</a 2097152 True b''>" in answer and answer.endswith(b"</next 0 False b''>")


def test_stream_when_it_is_read_by_lines_then_none_of_it_is_lost(server: http_server.Server) -> None:
    answer = asked(server, HEAD % (b"/lines", b""), b"3\r\nab\n\r\n4\r\ncdef\r\n0\r\n\r\n", NEXT)
    assert b"</lines 4 True b'ab\\n'>" in answer and answer.endswith(b"</next 0 False b''>")


@pytest.mark.parametrize("chunks", [b"x\r\nabc\r\n", b"3\r\nabcd\r\n0\r\n\r\n", b"3;" + b"x" * 100_000,
                                    b"0\r\n" + b"X-Trailer: 1\r\n" * 8_000])
def test_stream_when_its_chunks_are_broken_then_the_connection_ends_without_an_answer(
        server: http_server.Server, chunks: bytes) -> None:
    try:
        answer = asked(server, HEAD % (b"/a", b""), chunks + NEXT)
    except ConnectionError:
        answer = b""
    assert b"200 OK" not in answer


def test_stream_when_the_client_waits_for_leave_then_it_gets_it_once_the_application_reads(
        server: http_server.Server) -> None:
    with socket.create_connection(server.sock.getsockname(), timeout=5) as sock:
        sock.sendall(HEAD % (b"/a", b"Expect: 100-continue\r\nConnection: close\r\n"))
        assert sock.recv(65536).startswith(b"HTTP/1.1 100 Continue")
        sock.sendall(b"1\r\na\r\n0\r\n\r\n")
        assert b"</a 1 True b''>" in sock.recv(65536)


@pytest.mark.parametrize("head", [
    b"PUT /unread HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n",
    b"PUT /unread HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % (MAX_LEFT_OVER + 1),
    HEAD % (b"/unread", b"Expect: 100-continue\r\n"), HEAD % (b"/unread", b"")],
    ids=["waits", "large", "waits with chunks", "chunks"])
def test_answer_when_the_body_was_not_read_then_it_says_that_the_connection_ends(server: http_server.Server,
                                                                                head: bytes) -> None:
    answer = asked(server, head)
    assert b"Connection: close\r\n" in answer and b"</unread 0" in answer and b"100 Continue" not in answer


def test_answer_when_a_large_body_is_sent_all_the_same_then_the_client_still_gets_it(
        server: http_server.Server) -> None:
    answer = asked(server, b"PUT /unread HTTP/1.1\r\nHost: h\r\nContent-Length: 4000000\r\n\r\n", b"x" * 4_000_000)
    assert b"</unread 0 False" in answer


def test_answer_when_a_short_body_was_not_read_then_the_next_request_follows(server: http_server.Server) -> None:
    answer = asked(server, b"PUT /unread HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc" + NEXT)
    assert b"Connection: keep-alive\r\n" in answer and answer.endswith(b"</next 0 False b''>")


@pytest.mark.parametrize(("target", "raw"), [
    (b"/a%2Fb/%c3%BC+%20?x=%20&y", "/a%2Fb/%c3%BC+%20?x=%20&y"), (b"//a/../b", "//a/../b"),
    (b"http://other.example/a%20b?x", "/a%20b?x")])
def test_path_when_it_is_sent_encoded_then_the_application_has_it_as_it_was_sent(server: http_server.Server,
                                                                                target: bytes, raw: str) -> None:
    assert f"<{raw} 0".encode() in asked(server, b"GET %s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n" % target)
