"""libvirt's own protocol (https://libvirt.org/kbase/internals/rpc.html), as far as a migration needs it: messages in a
stream, XDR (RFC 4506) within them. Pure.

Numbers of programs and procedures are part of the protocol and never change.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

REMOTE_PROGRAM, REMOTE_VERSION = 0x20008086, 1
KEEPALIVE_PROGRAM = 0x6B656570
MAX_MESSAGE = 16 << 20  # bytes; libvirt's own bound is 32 MiB
MAX_PARAMETERS = 64
ERROR_DOMAIN_RPC, ERROR_ACCESS_DENIED, LEVEL_ERROR = 7, 88, 2

_HEADER = struct.Struct(">IIIIIII")  # the length (of all), program, version, procedure, type, serial, status


class Procedure(IntEnum):
    """Of the remote program, those of a peer-to-peer migration of today's version (v3, with parameters)."""

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
    """The peer does not speak the protocol."""


class Message(NamedTuple):
    """A call, an answer, or an event. ``type``, ``status``: see :class:`Type`, :class:`Status`."""

    program: int
    version: int
    procedure: int
    type: int
    serial: int
    status: int
    payload: bytes

    def encode(self) -> bytes:
        """As it stands in a stream."""
        return _HEADER.pack(_HEADER.size + len(self.payload), *self[:-1]) + self.payload


class Messages:
    """A stream cut into messages. BadMessage."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[Message]:
        """What is whole by now."""
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
    """XDR read from the front. BadMessage at whatever does not fit."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def number(self) -> int:
        """Of 32 bits, without a sign."""
        return int.from_bytes(self._take(4))

    def opaque(self) -> bytes:
        """Bytes with their length before them."""
        length = self.number()
        found = self._take(length)
        self._take(-length % 4)
        return found

    def text(self) -> str:
        """The same in UTF-8."""
        try:
            return self.opaque().decode()
        except UnicodeDecodeError as error:
            raise BadMessage("a text that is no UTF-8") from error

    def optional_text(self) -> str | None:
        """None where there is none."""
        return self.text() if self.number() else None

    def parameters(self) -> list[tuple[str, str | int]]:
        """Typed parameters, which may repeat; numbers of 64 bits and doubles by their bits."""
        count = self.number()
        if count > MAX_PARAMETERS:
            raise BadMessage(f"{count} parameters")
        return [self._parameter() for _ in range(count)]

    def end(self) -> None:
        """Nothing may follow."""
        if self._at != len(self._data):
            raise BadMessage("more than the call has")

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
            raise BadMessage("a message that ends too early")
        self._at += length
        return self._data[self._at - length:self._at]


def refusal(call: Message, reason: str) -> Message:
    """The reply to ``call`` that says why it was not passed on, as libvirt's callers read it."""
    text = reason.encode()[:1000]
    message = _numbers(1, len(text)) + text + bytes(-len(text) % 4)
    nothing = _numbers(0, 0, 0, 0) + _numbers(0xFFFFFFFF, 0xFFFFFFFF) + _numbers(0)  # domain, texts; ints; network
    payload = _numbers(ERROR_ACCESS_DENIED, ERROR_DOMAIN_RPC) + message + _numbers(LEVEL_ERROR) + nothing
    return call._replace(type=Type.REPLY, status=Status.ERROR, payload=payload)


def _numbers(*values: int) -> bytes:
    return b"".join(value.to_bytes(4) for value in values)
