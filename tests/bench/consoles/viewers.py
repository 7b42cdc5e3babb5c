"""Viewers of a VNC console, many in one process: each asks for the whole screen, raw, again and again.

Pictures are counted and not looked at: a viewer costs little beside what it measures. Directly, or through a proxy's
WebSocket; both take the same way through the same code.
"""

from __future__ import annotations

import base64
import os
import selectors
import socket
import struct
import time
from typing import NamedTuple

CHUNK = 1 << 20
TIMEOUT_S = 30.0
VERSION = b"RFB 003.008\n"
#: 32 bits a pixel, little endian, true colour: what QEMU has anyway, so that it converts nothing.
PIXELS = struct.pack(">BBBBHHHBBBxxx", 32, 24, 0, 1, 255, 255, 255, 16, 8, 0)


class Where(NamedTuple):
    """``token``: of a console behind a proxy at ``port``; empty: the console itself."""

    port: int
    token: str = ""


class Viewer:
    """One connection. ``bytes`` and ``updates`` count what was shown."""

    def __init__(self, where: Where) -> None:
        self.sock = socket.create_connection(("127.0.0.1", where.port), TIMEOUT_S)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.framed = bool(where.token)
        self._early = b""
        self.bytes = self.updates = 0
        self._head, self._rectangles, self._skip = b"", 0, 0  # of the update that comes
        self._frame_head, self._frame_left = b"", 0
        if self.framed:
            self._upgrade(where.token)

    def _upgrade(self, token: str) -> None:
        key = base64.b64encode(os.urandom(16)).decode()
        self.sock.sendall((f"GET /websockify?token={token} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
                           f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
                           "Sec-WebSocket-Protocol: binary\r\n\r\n").encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self._recv(1)
        assert head.startswith(b"HTTP/1.1 101 "), head

    def _recv(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self.sock.recv(count - len(data))
            assert part, "the connection was closed"
            data += part
        return data

    def send(self, data: bytes) -> None:
        if self.framed:  # masked with zeros, which changes nothing
            size = bytes((0x80 | len(data),)) if len(data) < 126 else struct.pack(">BH", 0xFE, len(data))
            data = b"\x82" + size + bytes(4) + data
        self.sock.sendall(data)

    def take(self, count: int) -> bytes:
        """So many bytes of the console's."""
        while len(self._early) < count:
            self._early += self._message() if self.framed else self._recv(count - len(self._early))
        data, self._early = self._early[:count], self._early[count:]
        return data

    def _message(self) -> bytes:
        first, length = self._recv(2)
        if length >= 126:
            form, size = (">H", 2) if length == 126 else (">Q", 8)
            length, = struct.unpack(form, self._recv(size))
        data = self._recv(length)
        assert first == 0x82, (first, data[:200])
        return data

    def security(self) -> None:
        assert self.take(12) == VERSION
        self.send(VERSION)
        assert 1 in self.take(self.take(1)[0])
        self.send(b"\1")
        assert self.take(4) == bytes(4)

    def enter(self) -> tuple[int, int]:
        """Through the handshake; the screen's size."""
        self.security()
        self.send(b"\1")  # shared
        width, height = struct.unpack(">HH", self.take(4))
        self.take(struct.unpack(">16xI", self.take(20))[0])
        self.send(b"\0\0\0\0" + PIXELS)
        self.send(struct.pack(">BxHi", 2, 1, 0))  # raw alone
        self.screen = width, height
        return self.screen

    def ask(self) -> None:
        self.send(struct.pack(">BBHHHH", 3, 0, 0, 0, *self.screen))

    # -- pictures, as they come

    def come(self, room: memoryview) -> None:
        """Take what is there; ask for the next picture when one is whole."""
        count = self.sock.recv_into(room)
        assert count, "the connection was closed"
        at = 0
        while at < count:
            at = self._framed(room, at, count) if self.framed else self._shown(room, at, count)

    def _framed(self, room: memoryview, at: int, end: int) -> int:
        if self._frame_left:
            until = min(end, at + self._frame_left)
            self._frame_left -= until - at
            while at < until:
                at = self._shown(room, at, until)
            return until
        self._frame_head += bytes(room[at:at + 1])
        wanted = 2 if len(self._frame_head) < 2 else {126: 4, 127: 10}.get(self._frame_head[1], 2)
        if len(self._frame_head) == wanted:
            head, self._frame_head = self._frame_head, b""
            if head[0] == 0x89:  # a ping without payload
                self.sock.sendall(b"\x8a\x80" + bytes(4))
            else:
                assert head[0] == 0x82, head
                self._frame_left = head[1] if wanted == 2 else int.from_bytes(head[2:], "big")
        return at + 1

    def _shown(self, room: memoryview, at: int, end: int) -> int:
        """Bytes of an update: heads are looked at, pixels are counted."""
        if self._skip:
            until = min(end, at + self._skip)
            self._skip -= until - at
            self.bytes += until - at
            if not self._skip and not self._rectangles:
                self._whole()
            return until
        size = 12 if self._rectangles else 4
        more = min(size - len(self._head), end - at)
        self._head += bytes(room[at:at + more])
        if len(self._head) == size:
            head, self._head = self._head, b""
            self._read_head(head)
        return at + more

    def _read_head(self, head: bytes) -> None:
        if len(head) == 4:
            assert head[0] == 0, f"message {head[0]}"
            self._rectangles, = struct.unpack(">xxH", head)
            if not self._rectangles:
                self._whole()
            return
        width, height, encoding = struct.unpack(">4xHHi", head)
        assert encoding == 0, encoding
        self._rectangles -= 1
        self._skip = width * height * 4

    def _whole(self) -> None:
        self.updates += 1
        self.ask()


class Crowd:
    """Viewers at one console, entered one after the other."""

    def __init__(self, where: Where, count: int) -> None:
        self.viewers = []
        for _ in range(count):
            viewer = Viewer(where)
            viewer.enter()
            self.viewers.append(viewer)

    def watch(self, seconds: float) -> tuple[float, int, int]:
        """For so long: (megabytes a second of all, pictures of all, of the viewer that saw the fewest)."""
        room = memoryview(bytearray(CHUNK))
        for viewer in self.viewers:
            viewer.sock.settimeout(TIMEOUT_S)
            viewer.bytes = viewer.updates = 0
            viewer.ask()
        with selectors.DefaultSelector() as ready:
            for viewer in self.viewers:
                ready.register(viewer.sock, selectors.EVENT_READ, viewer)
            began = time.monotonic()
            while (now := time.monotonic()) < began + seconds:
                for key, _ in ready.select(seconds):
                    key.data.come(room)
        total = sum(viewer.bytes for viewer in self.viewers)
        counts = [viewer.updates for viewer in self.viewers]
        return total / (now - began) / 1e6, sum(counts), min(counts)

    def close(self) -> None:
        for viewer in self.viewers:
            viewer.sock.close()


def round_trips(where: Where, count: int) -> list[float]:
    """Seconds that each of so many small messages took to an echoing console and back."""
    viewer = Viewer(where)
    viewer.security()
    times = []
    for _ in range(count):
        began = time.perf_counter()
        viewer.send(b"key press")
        assert viewer.take(9) == b"key press"
        times.append(time.perf_counter() - began)
        time.sleep(0.002)
    viewer.sock.close()
    return times
