"""The part of libvirt's protocol (https://libvirt.org/kbase/internals/rpc.html) that a migration needs: messages in a
stream, XDR (RFC 4506) within them. Free of I/O.

Numbers of programs and procedures are part of the protocol and never change.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from nova import failures

REMOTE_PROGRAM, REMOTE_VERSION = 0x20008086, 1
KEEPALIVE_PROGRAM = 0x6B656570
MAX_MESSAGE = 16 << 20  # bytes; libvirt's own limit is 32 MiB
MAX_PARAMETERS = 64
ERROR_DOMAIN_RPC, ERROR_ACCESS_DENIED, LEVEL_ERROR = 7, 88, 2

_HEADER = struct.Struct(">IIIIIII")  # the total length, program, version, procedure, type, serial, status


class Procedure(IntEnum):
    """Procedures of the remote program for a peer-to-peer migration of the current version (v3, with parameters)."""

    OPEN = 1
    CLOSE = 2
    SUPPORTS_FEATURE = 60
    AUTH_LIST = 66
    PREPARE = 303
    FINISH = 306
    REGISTER_CLOSE_CALLBACK = 360
    UNREGISTER_CLOSE_CALLBACK = 361


class Type(IntEnum):
    CALL = 0
    REPLY = 1
    EVENT = 2


class Status(IntEnum):
    OK = 0
    ERROR = 1


class BadMessage(Exception):
    """The peer violates the protocol."""


class Message(NamedTuple):
    """A call, a reply, or an event. ``type``, ``status``: see :class:`Type`, :class:`Status`."""

    program: int
    version: int
    procedure: int
    type: int
    serial: int
    status: int
    payload: bytes

    def encode(self) -> bytes:
        """Return the message in its wire format."""
        return _HEADER.pack(_HEADER.size + len(self.payload), *self[:-1]) + self.payload


class Messages:
    """A splitter of a stream into messages. Raises BadMessage."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[Message]:
        """Add data, and return the complete messages."""
        self._rest += data
        found = []
        while len(self._rest) >= 4:
            length = int.from_bytes(self._rest[:4])
            if not _HEADER.size <= length <= MAX_MESSAGE:
                raise BadMessage(f"a message of {length} bytes")
            if len(self._rest) < length:
                break
            header = _HEADER.unpack_from(self._rest)
            found.append(Message._make((*header[1:], bytes(self._rest[_HEADER.size:length]))))
            del self._rest[:length]
        return found


class XdrReader:
    """Reader of XDR data, in order. Raises BadMessage for malformed data."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def number(self) -> int:
        """Read an unsigned number of 32 bits."""
        return int.from_bytes(self._take(4))

    def opaque(self) -> bytes:
        """Read bytes with a length prefix."""
        length = self.number()
        found = self._take(length)
        self._take(-length % 4)
        return found

    def text(self) -> str:
        """Read bytes with a length prefix as UTF-8 text."""
        with failures.translated(UnicodeDecodeError, lambda _: BadMessage("a text that is not valid UTF-8")):
            return self.opaque().decode()

    def optional_text(self) -> str | None:
        """Read an optional text; None if it is absent."""
        return self.text() if self.number() else None

    def parameters(self) -> list[tuple[str, str | int]]:
        """Read typed parameters, which may repeat; 64-bit numbers and doubles are returned as their bits."""
        count = self.number()
        if count > MAX_PARAMETERS:
            raise BadMessage(f"{count} parameters")
        return [self._parameter() for _ in range(count)]

    def end(self) -> None:
        """Check that no data remain."""
        if self._at != len(self._data):
            raise BadMessage("more data than the call has")

    def _parameter(self) -> tuple[str, str | int]:
        name, kind = self.text(), self.number()
        if kind == 7:
            return name, self.text()
        if kind in (3, 4, 5):
            return name, int.from_bytes(self._take(8))
        if kind in (1, 2, 6):
            return name, self.number()
        raise BadMessage(f"a parameter of type {kind}")

    def _take(self, length: int) -> bytes:
        if length > len(self._data) - self._at:
            raise BadMessage("a truncated message")
        self._at += length
        return self._data[self._at - length:self._at]


def refusal(call: Message, reason: str) -> Message:
    """Return the error reply to ``call`` with the reason of the refusal, in the format of libvirt's clients."""
    text = reason.encode()[:1000]
    message = _numbers(1, len(text)) + text + bytes(-len(text) % 4)
    nothing = _numbers(0, 0, 0, 0) + _numbers(0xFFFFFFFF, 0xFFFFFFFF) + _numbers(0)  # domain, texts; ints; network
    payload = _numbers(ERROR_ACCESS_DENIED, ERROR_DOMAIN_RPC) + message + _numbers(LEVEL_ERROR) + nothing
    return call._replace(type=Type.REPLY, status=Status.ERROR, payload=payload)


def _numbers(*values: int) -> bytes:
    return b"".join(value.to_bytes(4) for value in values)
