"""Limits on a browser's WebSocket frames, in addition to wsproto's own.

wsproto passes data on as they arrive, so a frame needs no memory for its declared length. It buffers only a
frame's head and the payload of a control frame (139 bytes) until they are complete. All other limits are checked here,
at the point where wsproto passes each frame to its extensions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from wsproto.connection import Connection, ConnectionState
from wsproto.events import BytesMessage, CloseConnection, Event
from wsproto.extensions import Extension
from wsproto.frame_protocol import CloseReason, FrameDecoder, FrameProtocol, Opcode, RsvBits

from nova.console.stream import Violation

MAX_MESSAGE = 16 << 20  # bytes; a paste is thousands
MAX_IDLE_FRAMES = 100  # per second: pings, pongs and frames without payload

NOT_BINARY = "Consoles accept binary frames, not text."
TOO_LONG = "A message is too long."
TOO_MANY = "Too many frames without payload."


class FrameBounds(Extension):
    """A wsproto extension that is not negotiated, and that a browser never sees. ``words``: the reason why it refused a
    frame."""

    name = "bounds"

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.words = ""
        self._clock = clock
        self._control, self._size = False, 0  # of the current frame
        self._message = 0  # bytes so far
        self._idle, self._second = 0, 0.0

    def enabled(self) -> bool:
        """Return True: these limits apply to every connection."""
        return True

    def offer(self) -> bool:
        """Return False: the handshake does not mention the extension."""
        return False

    def frame_inbound_header(self, _proto: FrameDecoder | FrameProtocol, opcode: Opcode, _rsv: RsvBits,
                             payload_length: int) -> CloseReason | RsvBits:
        """Check a frame's head. May be called again for the same frame while its head is incomplete."""
        self._control, self._size = opcode.iscontrol(), payload_length
        if opcode is Opcode.TEXT:
            return self._refuse(CloseReason.UNSUPPORTED_DATA, NOT_BINARY)
        if not self._control and self._message + payload_length > MAX_MESSAGE:
            return self._refuse(CloseReason.MESSAGE_TOO_BIG, TOO_LONG)
        return RsvBits(False, False, False)

    def frame_inbound_complete(self, _proto: FrameDecoder | FrameProtocol, fin: bool) -> CloseReason | None:
        """Count a message's bytes, and control or empty frames: more than MAX_IDLE_FRAMES of these in a second are
        refused."""
        if not self._control:
            self._message = 0 if fin else self._message + self._size
        if self._size and not self._control:
            return None
        now = self._clock()
        if now - self._second >= 1:
            self._idle, self._second = 0, now
        self._idle += 1
        return self._refuse(CloseReason.POLICY_VIOLATION, TOO_MANY) if self._idle > MAX_IDLE_FRAMES else None

    def _refuse(self, code: CloseReason, words: str) -> CloseReason:
        self.words = words
        return code


def received(connection: Connection, bounds: FrameBounds, data: bytes) -> Iterator[Event]:
    """Yield the events in ``data``: pieces of data, pings, pongs, and a close, which is the last one. Raises
    Violation."""
    connection.receive_data(data)
    for event in connection.events():
        if isinstance(event, CloseConnection) and connection.state is not ConnectionState.REMOTE_CLOSING:
            raise Violation(int(event.code), bounds.words or f"{event.reason}.")
        if not isinstance(event, BytesMessage) or event.data:
            yield event
