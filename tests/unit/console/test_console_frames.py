"""Frames of browsers, good and hostile: each is taken or refused at a constant cost."""

from __future__ import annotations

import os
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nova.console import frames
from nova.console.stream import Violation
from tests.fakes.console_peers import frame, masked


def payload(found: list[frames.Frame]) -> bytes:
    return b"".join(one.payload for one in found if one.opcode == frames.BINARY)


def held(reader: frames.FrameReader) -> int:
    return len(reader._held)


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 125, 126, 127, 4096, 70_001])
def test_unmask_of_any_length_gives_the_payload(count: int) -> None:
    data = os.urandom(count)
    assert frames.unmask(masked(data, b"\x00\xff\x10\x80"), b"\x00\xff\x10\x80") == data


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=300), max_size=6), st.lists(st.integers(1, 50), min_size=1, max_size=20))
def test_feed_in_any_pieces_gives_all_payload_in_order(messages: list[bytes], sizes: list[int]) -> None:
    stream = b"".join(frame(2, message) for message in messages)
    reader, found, at, turn = frames.FrameReader(), [], 0, 0
    while at < len(stream):
        size = sizes[turn % len(sizes)]
        found += reader.feed(stream[at:at + size])
        at, turn = at + size, turn + 1
    assert payload(found) == b"".join(messages)


def test_message_of_several_frames_with_a_ping_between_is_taken() -> None:
    reader = frames.FrameReader()
    found = reader.feed(frame(2, b"one ", final=False) + frame(9, b"?") + frame(0, b"two"))
    assert payload(found) == b"one two"
    assert [one.opcode for one in found] == [frames.BINARY, frames.PING, frames.BINARY]


@pytest.mark.parametrize(("sent", "code"), [
    (frame(2, b"x", mask=None), 1002),
    (frame(0, b"x"), 1002),
    (frame(2, b"x", final=False) + frame(2, b"y"), 1002),
    (b"\xc2" + frame(2, b"x")[1:], 1002),
    (frame(9, b"x", final=False), 1002),
    (frame(9, b"x" * 126), 1002),
    (frame(8, b"x" * 126), 1002),
    (frame(1, b"words"), 1003),
    (frame(3, b"x"), 1003),
    (frame(11, b"x"), 1003),
    (frame(2, length=frames.MAX_MESSAGE + 1), 1009),
    (frame(2, length=2 ** 63 - 1), 1009),
    (b"\x82\xff" + struct.pack(">Q", 2 ** 64 - 1), 1009),
], ids=["unmasked", "nothing to continue", "new message within one", "reserved bit", "ping in parts", "long ping",
        "long close", "text", "unknown data", "unknown control", "too long", "2^63", "2^64"])
def test_frame_against_the_rules_is_refused_with_its_code(sent: bytes, code: int) -> None:
    with pytest.raises(Violation) as refused:
        frames.FrameReader().feed(sent)
    assert refused.value.code == code


def test_long_frame_that_is_allowed_is_passed_on_in_pieces_and_kept_nowhere() -> None:
    reader = frames.FrameReader()
    reader.feed(frame(2, length=frames.MAX_MESSAGE))
    for _ in range(10):
        assert len(payload(reader.feed(b"x" * 4096))) == 4096
        assert held(reader) == 0


def test_endless_continuation_is_refused_when_the_message_is_too_long() -> None:
    reader, seen = frames.FrameReader(), 0
    reader.feed(frame(2, b"", final=False))
    part = frame(0, b"x" * 65535, final=False)
    with pytest.raises(Violation) as refused:
        for _ in range(1000):
            seen += len(payload(reader.feed(part)))
            assert held(reader) == 0
    assert refused.value.code == 1009
    assert seen <= frames.MAX_MESSAGE


@pytest.mark.parametrize("part", [frame(9, b"?" * 125), frame(10), frame(0, final=False)],
                         ids=["ping", "pong", "empty continuation"])
def test_flood_of_frames_that_carry_nothing_is_refused_and_a_few_a_second_are_not(part: bytes) -> None:
    clock = [100.0]
    reader = frames.FrameReader(lambda: clock[0])
    reader.feed(frame(2, b"x", final=False))
    for _ in range(300):
        reader.feed(part)
        clock[0] += 0.1
    with pytest.raises(Violation) as refused:
        reader.feed(part * 200)
    assert refused.value.code == 1008


def test_head_byte_by_byte_is_kept_until_it_is_whole_and_no_longer() -> None:
    reader = frames.FrameReader()
    sent = frame(9, b"y" * 125)
    found = []
    for at in range(len(sent)):
        found += reader.feed(sent[at:at + 1])
        assert held(reader) <= 139
    assert found == [frames.Frame(frames.PING, b"y" * 125)]
    assert held(reader) == 0
