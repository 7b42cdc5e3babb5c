"""WebSocket frames as a browser sends them (RFC 6455), taken apart as they come.

Data is passed on piece by piece: a console is a stream of bytes, where frames and messages begin is of no matter, so
a frame costs no memory, however long it says it is. What costs is bounded: a head and the payload of a control frame
(139 bytes) are kept until they are whole, and frames that carry nothing are counted.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from typing import NamedTuple

from nova.console.codes import POLICY, PROTOCOL_ERROR, TOO_BIG, UNSUPPORTED
from nova.console.stream import Violation

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
DATA = (CONTINUATION, TEXT, BINARY)
CONTROL = (CLOSE, PING, PONG)

MAX_MESSAGE = 16 << 20  # bytes; a paste is thousands
MAX_CONTROL = 125  # bytes, by the protocol
MAX_IDLE_FRAMES = 100  # a second: pings, pongs and frames without payload


class Frame(NamedTuple):
    """A control frame, or a piece of a data frame."""

    opcode: int
    payload: bytes


class Head(NamedTuple):
    opcode: int
    final: bool
    mask: bytes
    length: int
    size: int  # of the head itself


def unmask(data: bytes, mask: bytes) -> bytes:
    """XOR with the mask over and over: as one large number, for Python is slow at bytes."""
    count = len(data)
    key = (mask * (count // 4 + 1))[:count]
    return (int.from_bytes(data, "little") ^ int.from_bytes(key, "little")).to_bytes(count, "little")


def head(data: bytes, at: int) -> Head | None:
    """The frame's head at ``at``; None when it is not whole. Violation."""
    if len(data) - at < 2:
        return None
    first, second = data[at], data[at + 1]
    if first & 0x70:
        raise Violation(PROTOCOL_ERROR, "A frame has bits that mean nothing.")
    if not second & 0x80:
        raise Violation(PROTOCOL_ERROR, "A frame is not masked.")
    length, size = second & 0x7F, 2
    if length >= 126:
        form, more = (">H", 2) if length == 126 else (">Q", 8)
        if len(data) - at < size + more:
            return None
        length, = struct.unpack_from(form, data, at + size)
        size += more
    if length > MAX_MESSAGE:
        raise Violation(TOO_BIG, "A frame is too long.")
    if len(data) - at < size + 4:
        return None
    mask = data[at + size:at + size + 4]
    return Head(first & 0x0F, bool(first & 0x80), mask, length, size + 4)


class FrameReader:
    """Frames out of what arrives, in the order it does."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._held = b""  # the beginning of a head or control frame
        self._left, self._mask = 0, b""  # of the data frame that is being received
        self._open, self._message = False, 0  # a message of several frames, and its bytes so far
        self._idle, self._second = 0, 0.0

    def feed(self, data: bytes) -> list[Frame]:
        """Violation when something is not allowed: what came before it in ``data`` is lost with it."""
        if self._held:
            data, self._held = self._held + data, b""
        found: list[Frame] = []
        at, end = 0, len(data)
        while at < end:
            if self._left:
                at += self._piece(data, at, found)
                continue
            known = head(data, at)
            if known is None:
                break
            if known.opcode in CONTROL:
                if not self._control(known, data, at, found):
                    break
                at += known.size + known.length
            else:
                self._begin(known)
                at += known.size
        self._held = data[at:]
        return found

    def _piece(self, data: bytes, at: int, found: list[Frame]) -> int:
        piece = data[at:at + self._left]
        found.append(Frame(BINARY, unmask(piece, self._mask)))
        turn = len(piece) % 4
        self._mask = self._mask[turn:] + self._mask[:turn]
        self._left -= len(piece)
        return len(piece)

    def _begin(self, known: Head) -> None:
        """A data frame's head."""
        if known.opcode not in DATA:
            raise Violation(UNSUPPORTED, "A frame is of an unknown kind.")
        if known.opcode == TEXT:
            raise Violation(UNSUPPORTED, "Consoles take binary frames, not text.")
        if self._open != (known.opcode == CONTINUATION):
            raise Violation(PROTOCOL_ERROR, "A frame does not follow the one before it.")
        self._message = (self._message if self._open else 0) + known.length
        if self._message > MAX_MESSAGE:
            raise Violation(TOO_BIG, "A message is too long.")
        self._open = not known.final
        self._left, self._mask = known.length, known.mask
        if not known.length:
            self._count()

    def _control(self, known: Head, data: bytes, at: int, found: list[Frame]) -> bool:
        """A frame of control, whole or not at all."""
        if not known.final or known.length > MAX_CONTROL:
            raise Violation(PROTOCOL_ERROR, "A control frame is too long or in parts.")
        start = at + known.size
        if len(data) < start + known.length:
            return False
        self._count()
        found.append(Frame(known.opcode, unmask(data[start:start + known.length], known.mask)))
        return True

    def _count(self) -> None:
        now = self._clock()
        if now - self._second >= 1:
            self._idle, self._second = 0, now
        self._idle += 1
        if self._idle > MAX_IDLE_FRAMES:
            raise Violation(POLICY, "There are too many frames that carry nothing.")
