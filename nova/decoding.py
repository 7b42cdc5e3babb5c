"""Typed decoding of JSON and msgpack, safe on native threads.

msgspec resolves the fields of a Struct when the first decoder of it is built, and publishes the result before it is
complete: two native threads that build decoders of types with a common Struct crash the process (msgspec 0.22). This
module therefore builds all decoders, one at a time. A test keeps other modules from building their own. Decoding itself
needs no lock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from nova import concurrency

T = TypeVar("T")
D = TypeVar("D")
Raw = bytes | bytearray | memoryview | msgspec.Raw

#: Native in both modes: green threads share it with native threads that run C libraries. Its holder never blocks.
_resolving = concurrency.native_threading().Lock()


class _Decoders(Generic[D]):
    """Decoders of one format, by the type of their values."""

    def __init__(self, make: Callable[[Any], D]) -> None:
        self._make = make
        self._made: dict[object, D] = {}

    def of(self, kind: object) -> D:
        found = self._made.get(kind)
        if found is None:
            with _resolving:
                found = self._made.get(kind)
                if found is None:
                    found = self._made[kind] = self._make(kind)
        return found


_json: _Decoders[msgspec.json.Decoder[Any]] = _Decoders(msgspec.json.Decoder)
_msgpack: _Decoders[msgspec.msgpack.Decoder[Any]] = _Decoders(msgspec.msgpack.Decoder)


def from_json(raw: Raw | str, kind: type[T]) -> T:
    """Decode a JSON text as ``kind``. Raises msgspec.DecodeError if it is not JSON, msgspec.ValidationError if it does
    not match the kind."""
    decoded: T = _json.of(kind).decode(raw)
    return decoded


def json_decoder(kind: type[T]) -> Callable[[Raw | str], T]:
    """Return :func:`from_json` for one kind, for many texts: it does not look for the decoder each time."""
    decode: Callable[[Raw | str], T] = _json.of(kind).decode
    return decode


def from_msgpack(raw: Raw, kind: type[T]) -> T:
    """Decode msgpack bytes as ``kind``. Raises msgspec.DecodeError and msgspec.ValidationError as for JSON."""
    decoded: T = _msgpack.of(kind).decode(raw)
    return decoded


def convert(value: object, kind: type[T], *, strict: bool = True) -> T:
    """Convert decoded values (dicts, lists, texts, numbers) to ``kind``. Raises msgspec.ValidationError if they do not
    match.

    ``strict``: text is not accepted as a number.
    """
    _msgpack.of(kind)  # resolves the type
    return msgspec.convert(value, kind, strict=strict)
