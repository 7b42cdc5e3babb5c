from __future__ import annotations

import base64
import zlib

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nova import errors
from nova.model.base import utcnow
from nova.model.host.hosts import HostState, HostStates
from nova.rpc import codec


class Full(errors.Conflict):
    code, message = "cupboard.full", "{count} of {what}"


def raw(text):
    return base64.b64decode(text)


@settings(deadline=None)
@given(st.binary(max_size=3 * codec.COMPRESS_ABOVE))
def test_text_of_any_bytes_gives_them_back(data):
    assert codec.from_text(codec.to_text(data)) == data


@pytest.mark.parametrize(("size", "packing"), [
    (0, b"r"), (codec.COMPRESS_ABOVE, b"r"), (codec.COMPRESS_ABOVE + 1, b"z")])
def test_to_text_compresses_what_is_large(size, packing):
    text = codec.to_text(b"x" * size)
    assert raw(text)[:1] == packing
    assert len(text) <= 2 * codec.COMPRESS_ABOVE


@pytest.mark.parametrize("text", [
    None, 7, [], "", "not base64!", base64.b64encode(b"q123").decode(), base64.b64encode(b"znonsense").decode(),
    "r" * 5, "\N{SNOWMAN}"])
def test_from_text_when_it_is_no_text_of_ours_then_malformed(text):
    with pytest.raises(errors.daemon.RpcMalformed):
        codec.from_text(text)


def test_from_text_when_it_would_unpack_to_too_much_then_malformed():
    bomb = base64.b64encode(b"z" + zlib.compress(b"\0" * (codec.LARGEST + 1), 9)).decode()
    assert len(bomb) < codec.LARGEST / 500
    with pytest.raises(errors.daemon.RpcMalformed, match="more than"):
        codec.from_text(bomb)


def test_from_text_when_the_compressed_text_is_cut_then_malformed():
    text = codec.to_text(codec.pack(["x" * 9999]))
    cut = base64.b64encode(raw(text)[:-8]).decode()
    with pytest.raises(errors.daemon.RpcMalformed):
        codec.from_text(cut)


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x81", msgspec.msgpack.encode({"states": 7}),
                                  msgspec.msgpack.encode([1]), b"\x91" * 100_000])
def test_unpack_when_the_bytes_are_no_such_value_then_malformed(data):
    with pytest.raises(errors.daemon.RpcMalformed):
        codec.unpack(data, HostStates)


def test_unpack_gives_back_what_was_packed():
    states = HostStates(states=(HostState(host="h", node="n", provider_id=1, capabilities={"a": "b"}),), now=utcnow())
    assert codec.unpack(codec.pack(states), HostStates) == states


def test_text_when_it_is_larger_than_any_message_then_malformed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "LARGEST", 100)
    assert codec.from_text(codec.to_text(b"x" * 99)) == b"x" * 99
    with pytest.raises(errors.Bug):
        codec.from_text(codec.to_text(b"x" * 100))


def test_error_to_wire_when_data_is_no_scalar_then_its_text():
    wire = codec.error_to_wire(Full(count=3, what=("a", 1)))
    assert wire == ("conflict", "cupboard.full", "3 of ('a', 1)", {"count": 3, "what": "('a', 1)"})
    answer = codec.unpack(codec.pack(codec.CallReply(error=wire)), codec.CallReply)
    assert answer.error == wire


def test_proof_differs_with_every_part_and_with_the_secret():
    parts = ("host", "topic", "method", "body")
    proofs = {codec.proof("s", *parts), codec.proof("t", *parts),
              *(codec.proof("s", *parts[:at], "x", *parts[at + 1:]) for at in range(4))}
    assert len(proofs) == 6
    assert codec.proof("s", "ab", "c") != codec.proof("s", "a", "bc")
    assert codec.proof("s", *parts) == codec.proof("s", *parts)
