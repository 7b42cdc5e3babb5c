"""Frames of browsers, good and hostile: each is taken or refused at a constant cost."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, Event, Ping

from nova.console import frames
from nova.console.stream import Violation
from tests.fakes.console_peers import frame


class Reader:
    """The proxy's side after a handshake."""

    def __init__(self, clock: Callable[[], float] = lambda: 0.0) -> None:
        self._bounds = frames.FrameBounds(clock)
        self._connection = Connection(ConnectionType.SERVER, [self._bounds])

    def feed(self, data: bytes) -> list[Event]:
        return list(frames.received(self._connection, self._bounds, data))


def payload(found: list[Event]) -> bytes:
    return b"".join(one.data for one in found if isinstance(one, BytesMessage))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=300), max_size=6), st.lists(st.integers(1, 50), min_size=1, max_size=20))
def test_feed_in_any_pieces_gives_all_payload_in_order(messages: list[bytes], sizes: list[int]) -> None:
    stream = b"".join(frame(2, message) for message in messages)
    reader, found, at, turn = Reader(), [], 0, 0
    while at < len(stream):
        size = sizes[turn % len(sizes)]
        found += reader.feed(stream[at:at + size])
        at, turn = at + size, turn + 1
    assert payload(found) == b"".join(messages)


def test_message_of_several_frames_with_a_ping_between_is_taken() -> None:
    reader = Reader()
    found = reader.feed(frame(2, b"one ", final=False) + frame(9, b"?") + frame(0, b"two"))
    assert payload(found) == b"one two"
    assert [type(one) for one in found] == [BytesMessage, Ping, BytesMessage]


@pytest.mark.parametrize(("sent", "code"), [
    (frame(2, b"x", mask=None), 1002),
    (frame(0, b"x"), 1002),
    (frame(2, b"x", final=False) + frame(2, b"y"), 1002),
    (b"\xc2" + frame(2, b"x")[1:], 1002),
    (frame(9, b"x", final=False), 1002),
    (frame(9, b"x" * 126), 1002),
    (frame(8, b"x" * 126), 1002),
    (frame(1, b"words"), 1003),
    (frame(3, b"x"), 1002),
    (frame(11, b"x"), 1002),
    (frame(2, length=frames.MAX_MESSAGE + 1), 1009),
    (frame(2, length=2 ** 63 - 1), 1009),
    (b"\x82\xff" + struct.pack(">Q", 2 ** 64 - 1), 1002),
    (b"\x82\xfe\x00\x05", 1002),
    (frame(8, b"\x03"), 1002),
    (frame(8, b"\x03\xed"), 1002),
], ids=["unmasked", "nothing to continue", "new message within one", "reserved bit", "ping in parts", "long ping",
        "long close", "text", "unknown data", "unknown control", "too long", "2^63", "no length",
        "length longer than it must be", "half a code", "code that is never sent"])
def test_frame_against_the_rules_is_refused_with_its_code(sent: bytes, code: int) -> None:
    with pytest.raises(Violation) as refused:
        Reader().feed(sent)
    assert refused.value.code == code


def held(reader: Reader, data: bytes, times: int) -> tuple[int, int]:
    """(bytes of payload, the most memory that was in use at once), when it gets ``data`` so many times."""
    tracemalloc.start()
    try:
        seen = sum(len(payload(reader.feed(data))) for _ in range(times))
        return seen, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_long_frame_that_is_allowed_is_passed_on_in_pieces_and_kept_nowhere() -> None:
    reader = Reader()
    reader.feed(frame(2, length=frames.MAX_MESSAGE))
    seen, most = held(reader, b"x" * 4096, 200)
    assert seen == 200 * 4096
    assert most < 100_000


def test_endless_continuation_is_refused_when_the_message_is_too_long() -> None:
    reader, seen = Reader(), 0
    reader.feed(frame(2, b"", final=False))
    part = frame(0, b"x" * 65535, final=False)
    with pytest.raises(Violation) as refused:
        for _ in range(1000):
            seen += len(payload(reader.feed(part)))
    assert refused.value.code == 1009
    assert 0 < seen <= frames.MAX_MESSAGE


def test_messages_one_after_the_other_have_each_their_own_bound() -> None:
    reader = Reader()
    for _ in range(3):
        reader.feed(frame(2, length=frames.MAX_MESSAGE))
        for _ in range(16):
            reader.feed(bytes(1 << 20))
    assert payload(reader.feed(frame(2, b"more"))) == b"more"


@pytest.mark.parametrize("part", [frame(9, b"?" * 125), frame(10), frame(0, final=False)],
                         ids=["ping", "pong", "empty continuation"])
def test_flood_of_frames_that_carry_nothing_is_refused_and_a_few_a_second_are_not(part: bytes) -> None:
    clock = [100.0]
    reader = Reader(lambda: clock[0])
    reader.feed(frame(2, b"x", final=False))
    for _ in range(300):
        reader.feed(part)
        clock[0] += 0.1
    with pytest.raises(Violation) as refused:
        reader.feed(part * 200)
    assert refused.value.code == 1008


def test_frames_byte_by_byte_are_taken_once() -> None:
    reader = Reader()
    found: list[Event] = []
    for piece in frame(2, b"z" * 70_000, final=False) + frame(9, b"y" * 125) + frame(0, b"end"):
        found += reader.feed(bytes((piece,)))
    assert payload(found) == b"z" * 70_000 + b"end"
    assert [bytes(one.payload) for one in found if isinstance(one, Ping)] == [b"y" * 125]


def test_half_a_head_or_control_frame_costs_no_more_than_itself() -> None:
    reader = Reader()
    reader.feed(frame(9, b"y" * 125)[:-1])
    assert held(reader, b"", 1000)[1] < 10_000
    assert [one.payload for one in reader.feed(frame(9, b"y" * 125)[-1:])] == [b"y" * 125]
