"""The browser's side of a console: handshake, closing words, pings, and what a hostile browser costs."""

from __future__ import annotations

import base64
import hashlib
import socket
import threading
import time

import pytest

from nova.console import websocket
from nova.console.stream import TooSlow, Violation
from tests.fakes.console_peers import browser, buffered_bytes, frame, handshake, tcp_pair


def answered(**headers: str) -> str:
    mine, theirs = tcp_pair()
    websocket.BrowserSocket.accept(theirs, handshake(**headers))
    with mine, theirs:
        return mine.recv(4096).decode()


def test_accept_answers_with_the_keys_digest() -> None:
    key = base64.b64encode(b"k" * 16).decode()
    digest = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
    head = answered(HTTP_SEC_WEBSOCKET_KEY=key)
    assert head.startswith("HTTP/1.1 101 ")
    assert f"Sec-WebSocket-Accept: {base64.b64encode(digest).decode()}\r\n" in head
    assert "Sec-WebSocket-Protocol" not in head


@pytest.mark.parametrize("offered", ["binary", "base64, binary", " binary ,base64", "base64 ,  binary"])
def test_accept_when_binary_is_offered_with_any_spaces_chooses_it(offered: str) -> None:
    assert "Sec-WebSocket-Protocol: binary\r\n" in answered(HTTP_SEC_WEBSOCKET_PROTOCOL=offered)


@pytest.mark.parametrize("wrong", [
    {"HTTP_SEC_WEBSOCKET_PROTOCOL": "base64"}, {"HTTP_SEC_WEBSOCKET_KEY": "short"}, {"HTTP_SEC_WEBSOCKET_KEY": ""},
    {"HTTP_SEC_WEBSOCKET_VERSION": "8"}, {"HTTP_UPGRADE": "h2c"}, {"HTTP_CONNECTION": "close"},
    {"REQUEST_METHOD": "POST"}, {"SERVER_PROTOCOL": "HTTP/1.0"}, {"HTTP_SEC_WEBSOCKET_KEY": "ä" * 24}])
def test_accept_of_a_bad_handshake_sends_nothing(wrong: dict[str, str]) -> None:
    mine, theirs = tcp_pair()
    with pytest.raises(websocket.BadHandshake):
        websocket.BrowserSocket.accept(theirs, handshake(**wrong))
    theirs.close()
    assert mine.recv(100) == b""


def test_wanted_tells_a_request_for_a_websocket_from_one_for_a_page() -> None:
    assert websocket.wanted(handshake())
    assert not websocket.wanted({"HTTP_UPGRADE": "h2c"})
    assert not websocket.wanted({})


def test_frames_behind_the_handshake_are_read_first() -> None:
    mine, theirs = tcp_pair()
    front = websocket.BrowserSocket.accept(theirs, handshake(), early=frame(2, b"early"))
    assert front.buffered()
    assert front.read() == b"early"
    assert front.read() == b""
    mine.close()
    assert front.exactly(0, time.monotonic() + 1) == b""


def test_exactly_keeps_what_came_behind_it() -> None:
    user, front = browser()
    user.type(b"RFB 003.008\n\x01more")
    until = time.monotonic() + 2
    assert front.exactly(12, until) == b"RFB 003.008\n"
    assert front.exactly(1, until) == b"\x01"
    assert front.read() == b"more"


def test_exactly_when_the_browser_sends_nothing_is_too_slow() -> None:
    user, front = browser()
    with pytest.raises(TooSlow):
        front.exactly(1, time.monotonic() + 0.05)
    user.sock.close()


def test_close_says_code_and_words_and_waits_for_them_to_arrive() -> None:
    user, front = browser()
    user.type(b"x" * 1000)  # unread: a plain close would reset the connection and lose the words
    closing = threading.Thread(target=front.close, args=(1011, "ä" * 200))
    closing.start()
    code, words = user.last_words()
    user.sock.close()
    closing.join(3)
    assert (code, words) == (1011, "ä" * 61)
    front.close(1000, "again")  # harmless


def test_close_of_a_browser_that_reads_nothing_takes_a_bounded_time() -> None:
    user, front = browser()
    user.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    front.put(memoryview(bytearray(8 << 20)), 10, 8 << 20)
    front.flush()
    began = time.monotonic()
    front.close(1011, "nobody hears it", linger_s=0.1)
    assert time.monotonic() - began < 1
    assert buffered_bytes(front) == 0
    user.sock.close()


def test_close_by_the_browser_ends_reading_with_its_code() -> None:
    user, front = browser()
    user.sock.sendall(frame(2, b"last") + frame(8, b"\x03\xe9bye") + frame(2, b"nothing counts any more"))
    time.sleep(0.02)
    assert front.read() == b"last"
    assert front.read() is None
    assert (front.code, front.reason) == (1001, "bye")


def test_close_behind_a_ping_is_answered_by_a_close_alone() -> None:
    user, front = browser()
    user.sock.sendall(frame(9, b"there?") + frame(8, b"\x03\xe8"))
    time.sleep(0.02)
    assert front.read() is None
    closing = threading.Thread(target=front.close, args=(1000,))
    closing.start()
    assert user.frame()[0] == 8
    user.sock.close()
    closing.join(3)


def test_lost_connection_is_told_by_code_1006() -> None:
    user, front = browser()
    user.sock.close()
    time.sleep(0.02)
    assert front.read() is None
    assert front.code == 1006


def test_ping_is_answered_with_its_payload() -> None:
    user, front = browser()
    user.sock.sendall(frame(9, b"there?"))
    time.sleep(0.02)
    assert front.read() == b""
    assert user.frame() == (10, b"there?")


def test_pings_of_a_browser_that_reads_nothing_cost_one_answer() -> None:
    user, front = browser()
    user.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    front.put(memoryview(bytearray(8 << 20)), 10, 8 << 20)
    front.flush()
    held = buffered_bytes(front)
    user.sock.sendall(frame(9, b"x" * 125) * 90)
    time.sleep(0.02)
    while front.read(1 << 20):
        pass
    assert buffered_bytes(front) == held
    user.sock.sendall(frame(9, b"x" * 125) * 90)
    time.sleep(0.02)
    with pytest.raises(Violation):
        front.read()
    assert buffered_bytes(front) == held
    user.sock.close()


@pytest.mark.parametrize("count", [1, 125, 126, 65535, 65536, 200_000])
def test_put_frames_any_length(count: int) -> None:
    user, front = browser()
    room = memoryview(bytearray(10) + b"z" * count)
    front.put(room, 10, 10 + count)
    sending = threading.Thread(target=front.drain, args=(time.monotonic() + 3,))
    sending.start()
    assert user.frame() == (2, b"z" * count)
    sending.join(3)
    assert front.drained
