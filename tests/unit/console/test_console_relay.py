"""A session: bytes both ways, and what ends it - each side slow, hostile or gone. None holds it, or costs memory."""

from __future__ import annotations

import os
import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from nova.console import relay
from nova.console.stream import Stream
from tests.fakes.console_peers import Session, browser, buffered_bytes, close, exactly, frame, reset, tcp_pair

SOON = relay.Times(ping_s=0.1, stall_s=0.15)


@pytest.fixture
def start() -> Iterator[type[Session]]:
    """Makes sessions that end with the test."""
    made: list[Session] = []

    class Kept(Session):
        def __init__(self, *args: object, **others: object) -> None:
            super().__init__(*args, **others)  # type: ignore[arg-type]
            made.append(self)

    yield Kept
    for session in made:
        session.close()


def flood(sock: socket.socket, piece: bytes, seconds: float = 5) -> threading.Thread:
    """Send without end, until it fails."""
    def run() -> None:
        until = time.monotonic() + seconds
        with suppress(OSError):
            while time.monotonic() < until:
                sock.sendall(piece)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def held(session: Session) -> int:
    return buffered_bytes(session.front) + buffered_bytes(session.target)


# -- bytes


def test_bytes_go_both_ways_and_are_counted(start: type[Session]) -> None:
    session = start()
    session.console.sendall(b"RFB 003.008\n")
    assert session.browser.see(12) == b"RFB 003.008\n"
    session.browser.type(b"answer")
    assert exactly(session.console, 6) == b"answer"
    session.browser.sock.sendall(frame(8, b"\x03\xe8"))
    assert session.browser.last_words()[0] == 1000
    session.browser.sock.close()
    ending = session.ending()
    assert (ending.code, ending.words, ending.sent, ending.received) == (1000, relay.BROWSER_CLOSED, 12, 6)
    assert session.console.recv(1) == b""


def test_megabytes_arrive_whole_and_in_order_both_ways_at_once(start: type[Session]) -> None:
    session = start()
    down, up = os.urandom(3_000_001), os.urandom(700_001)
    sending = threading.Thread(target=session.console.sendall, args=(down,))
    typing = threading.Thread(target=lambda: [session.browser.type(up[at:at + 9000]) for at in range(0, len(up), 9000)])
    got: list[bytes] = []
    taking = threading.Thread(target=lambda: got.append(exactly(session.console, len(up))))
    for thread in (sending, typing, taking):
        thread.start()
    assert session.browser.see(len(down)) == down
    for thread in (sending, typing, taking):
        thread.join(5)
    assert got == [up]


def test_bytes_that_came_before_the_session_are_carried_first() -> None:
    user, front = browser()
    console, back = tcp_pair()
    front.early, target = b"typed early, ", Stream(back, b"shown early, ")
    user.type(b"typed")
    console.sendall(b"shown")
    control = relay.Control()
    running = threading.Thread(target=relay.carry, args=(front, target, relay.Times(), control), daemon=True)
    running.start()
    assert user.see(18) == b"shown early, shown"
    assert exactly(console, 18) == b"typed early, typed"
    control.end(1001, "")
    user.sock.close()
    running.join(5)


# -- how it ends


def test_console_that_closes_ends_the_session_after_its_last_bytes_and_says_why(start: type[Session]) -> None:
    session = start()
    session.console.sendall(b"last" * 100_000)
    session.console.shutdown(socket.SHUT_WR)
    assert session.browser.see(400_000) == b"last" * 100_000
    assert session.browser.last_words() == (1011, relay.CONSOLE_CLOSED)
    session.browser.sock.close()
    assert session.ending()[:2] == (1011, relay.CONSOLE_CLOSED)


def test_console_that_resets_ends_the_session_and_says_why(start: type[Session]) -> None:
    session = start()
    session.console.sendall(b"x")
    session.browser.see(1)
    reset(session.console)
    assert session.browser.last_words() == (1011, relay.CONSOLE_CLOSED)


def test_browser_that_closes_after_typing_has_its_last_words_delivered(start: type[Session]) -> None:
    session = start()
    session.browser.sock.sendall(frame(2, b"y" * 300_000) + frame(8, b"\x03\xe8"))
    assert exactly(session.console, 300_000) == b"y" * 300_000
    assert session.console.recv(1) == b""
    session.browser.sock.close()
    assert session.ending().received == 300_000


@pytest.mark.parametrize("leave", [reset, close])
def test_browser_that_goes_without_a_word_ends_the_session(start: type[Session], leave: object) -> None:
    session = start()
    leave(session.browser.sock)  # type: ignore[operator]
    assert session.ending()[:2] == (1006, relay.BROWSER_GONE)
    assert session.console.recv(1) == b""


def test_control_ends_a_session_from_another_thread_with_its_words(start: type[Session]) -> None:
    session = start()
    session.console.sendall(b"x")
    session.browser.see(1)
    session.control.end(1001, "The proxy restarts.")
    session.control.end(4001, "later words do not count")
    assert session.browser.last_words() == (1001, "The proxy restarts.")
    session.browser.sock.close()
    assert session.ending()[:2] == (1001, "The proxy restarts.")


def test_control_asked_before_the_session_begins_ends_it_at_once() -> None:
    control = relay.Control()
    control.end(1001, "drained")
    bell = control.attach()
    assert os.eventfd_read(bell) == 1
    control.detach()
    control.end(1001, "after its end: harmless")
    assert control.ending is not None and control.ending.words == "drained"


def test_session_on_which_nothing_moves_is_closed_after_its_idle_time(start: type[Session]) -> None:
    session = start(relay.Times(idle_s=0.1))
    assert session.browser.last_words() == (4000, relay.IDLE.format("0.1 seconds"))


def test_answers_to_pings_do_not_count_as_use(start: type[Session]) -> None:
    session = start(relay.Times(idle_s=0.15, ping_s=0.03))
    while True:
        opcode, payload = session.browser.frame()
        if opcode == 8:
            break
        session.browser.sock.sendall(frame(10, payload))
    assert int.from_bytes(payload[:2], "big") == 4000


def test_session_in_use_is_closed_after_its_total_time(start: type[Session]) -> None:
    session = start(relay.Times(total_s=0.15))
    thread = flood(session.console, b"x")
    code, words = session.browser.last_words()
    assert (code, words) == (4000, relay.TOTAL.format("0.15 seconds"))
    session.browser.sock.close()
    thread.join(5)


@pytest.mark.parametrize(("seconds", "words"), [
    (3600, "1 hour"), (7200, "2 hours"), (60, "1 minute"), (90, "2 minutes"), (45, "45 seconds")])
def test_times_are_told_as_people_say_them(seconds: float, words: str) -> None:
    assert relay._in_words(seconds) == words


# -- hostile and slow browsers


def test_browser_that_does_not_answer_pings_is_given_up(start: type[Session]) -> None:
    session = start(SOON)
    assert session.browser.frame() == (9, b"")
    assert session.ending()[:2] == (1006, relay.BROWSER_SILENT)


def test_browser_that_answers_pings_stays(start: type[Session]) -> None:
    session = start(SOON)
    for _ in range(4):
        opcode, payload = session.browser.frame()
        assert opcode == 9
        session.browser.sock.sendall(frame(10, payload))
    assert not session.result.done()


def test_browser_that_reads_nothing_of_an_endless_console_is_closed_and_costs_one_buffer(start: type[Session]) -> None:
    session = start(relay.Times(stall_s=0.2, linger_s=0.05))
    flood(session.console, b"x" * 65536)
    most = 0
    until = time.monotonic() + 3
    while not session.result.done() and time.monotonic() < until:
        most = max(most, held(session))
        time.sleep(0.005)
    ending = session.ending()
    assert ending[:2] == (1006, relay.BROWSER_STUCK)
    assert 0 < most <= relay.DOWN_BYTES + 16
    assert held(session) == 0


def test_console_that_takes_nothing_ends_the_session_and_costs_one_buffer(start: type[Session]) -> None:
    session = start(relay.Times(stall_s=0.2, linger_s=0.05))
    flood(session.browser.sock, frame(2, b"x" * 60_000))
    most = 0
    until = time.monotonic() + 3
    while not session.result.done() and time.monotonic() < until:
        most = max(most, held(session))
        time.sleep(0.005)
    assert session.ending()[:2] == (1011, relay.CONSOLE_STUCK)
    assert 0 < most <= 2 * 65536 + 150


def test_browser_that_sends_byte_by_byte_is_understood(start: type[Session]) -> None:
    session = start()
    session.browser.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in frame(2, b"slow") + frame(2, b"ly"):
        session.browser.sock.sendall(bytes((byte,)))
    assert exactly(session.console, 6) == b"slowly"


@pytest.mark.parametrize(("sent", "code"), [
    (frame(2, length=2 ** 62), 1009), (frame(1, b"text"), 1003), (frame(2, b"x", mask=None), 1002),
    (frame(9, b"x" * 125) * 150, 1008), (frame(2, b"", final=False) + frame(0, final=False) * 150, 1008),
    (b"\xff" * 1000, 1002)], ids=["giant", "text", "unmasked", "pings", "empty frames", "garbage"])
def test_hostile_frames_end_the_session_with_their_code(start: type[Session], sent: bytes, code: int) -> None:
    session = start()
    session.browser.sock.sendall(sent)
    assert session.browser.last_words()[0] == code
    session.browser.sock.close()
    assert session.ending().code == code
    assert session.console.recv(1) == b""


def test_endless_continuation_ends_the_session(start: type[Session]) -> None:
    session = start(relay.Times(linger_s=0.05))
    session.browser.sock.sendall(frame(2, b"x", final=False))
    eaten = threading.Thread(target=lambda: [None for _ in iter(lambda: session.console.recv(1 << 20), b"")])
    eaten.start()
    flood(session.browser.sock, frame(0, b"x" * 60_000, final=False))
    ending = session.ending()
    eaten.join(5)
    assert ending.code == 1009
    assert ending.received < 17 << 20


# -- a client without frames


def test_raw_viewer_that_ends_writing_still_reads_what_the_console_shows(start: type[Session]) -> None:
    session = start(framed=False)
    session.viewer.sendall(b"question")
    session.viewer.shutdown(socket.SHUT_WR)
    assert exactly(session.console, 8) == b"question"
    assert session.console.recv(1) == b""
    session.console.sendall(b"answer")
    assert exactly(session.viewer, 6) == b"answer"
    session.console.close()
    assert session.viewer.recv(1) == b""
    assert session.ending()[2:4] == (6, 8)


def test_raw_viewer_can_still_write_when_the_console_has_ended_writing(start: type[Session]) -> None:
    session = start(framed=False)
    session.console.sendall(b"bye")
    session.console.shutdown(socket.SHUT_WR)
    assert exactly(session.viewer, 3) == b"bye"
    assert session.viewer.recv(1) == b""
    session.viewer.sendall(b"last words")
    assert exactly(session.console, 10) == b"last words"
    session.viewer.close()
    session.ending()


def test_raw_viewer_that_has_ended_writing_gets_all_that_a_closing_console_sent(start: type[Session]) -> None:
    session = start(framed=False)
    session.viewer.shutdown(socket.SHUT_WR)
    assert session.console.recv(1) == b""
    sending = threading.Thread(target=lambda: (session.console.sendall(b"z" * 9_000_000), session.console.close()))
    sending.start()
    time.sleep(0.05)  # the viewer is slower than the console
    assert exactly(session.viewer, 9_000_000) == b"z" * 9_000_000
    assert session.viewer.recv(1) == b""
    sending.join(5)
    assert session.ending()[:3] == (1000, relay.BROWSER_CLOSED, 9_000_000)


def test_raw_viewer_that_resets_ends_the_session(start: type[Session]) -> None:
    session = start(framed=False)
    session.viewer.sendall(b"x")
    assert exactly(session.console, 1) == b"x"
    reset(session.viewer)
    session.ending()
    assert session.console.recv(1) == b""


# -- many


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 4096), hard), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_two_hundred_idle_sessions_hold_no_buffers_and_leave_nothing_behind(
        start: type[Session], many_descriptors: None) -> None:
    descriptors = len(os.listdir("/proc/self/fd"))
    sessions = [start() for _ in range(200)]
    for session in sessions:
        session.console.sendall(b"x" * 10_000)
        session.browser.see(10_000)
    until = time.monotonic() + 2
    while sum(held(session) for session in sessions) and time.monotonic() < until:
        time.sleep(0.01)
    assert sum(held(session) for session in sessions) == 0
    assert sum(session.thread.is_alive() for session in sessions) == 200
    for session in sessions:
        session.control.end(1001, "done")
        session.browser.sock.close()
    for session in sessions:
        session.ending()
        session.close()
    assert len(os.listdir("/proc/self/fd")) <= descriptors
