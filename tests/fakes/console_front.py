"""Fakes for tests of the console proxies: nova-consoleauth with a table of tokens, console servers, and a client."""

from __future__ import annotations

import base64
import contextlib
import os
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

from nova import errors
from nova.model.guest.consoles import ConsoleAddress, ConsoleConnection, ConsoleType, TokenCheck, token_hash

GOOD = "4b1f0a9e-55a5-4f3c-9e0f-6ad1a1f5b0c7"
SERVER, USER, PROJECT = "0e3f6c1a-7d5b-4f64-9a5e-3c1f0b2d4e5f", "user-1", "project-1"


class FakeConsoleAuth:
    """ConsoleAuthRPC's check. ``once``: tokens are valid one time; ``error``: raised instead of an answer."""

    def __init__(self, type_: ConsoleType = ConsoleType.NOVNC, once: bool = False) -> None:
        self.type, self.once = type_, once
        self.grants: dict[str, ConsoleConnection] = {}
        self.used: set[str] = set()
        self.error: errors.NovaError | None = None
        self.checks: list[TokenCheck] = []

    def give(self, token: str = GOOD, *, port: int | None = 5900, server: str = SERVER, user: str = USER,
             base: str = "http://127.0.0.1/", expires_at: int = 2**40) -> str:
        self.grants[token_hash(token)] = ConsoleConnection(
            type=self.type, server_uuid=server, user_id=user, project_id=PROJECT, expires_at=expires_at,
            address=ConsoleAddress(access_url_base=base, host="127.0.0.1", port=port), host="here")
        return token

    def check_token(self, check: TokenCheck) -> ConsoleConnection:
        self.checks.append(check)
        if self.error is not None:
            raise self.error
        if check.token_hash not in self.grants:
            raise errors.NotFound("This console's address has expired, or its server is gone.")
        if check.token_hash in self.used:
            raise errors.Conflict("This console's address has been used already.")
        if check.redeem and self.once:
            self.used.add(check.token_hash)
        return self.grants[check.token_hash]


class FakeEnd:
    """Console server of a hypervisor: it listens, and runs ``talk(sock)`` for each client in a separate thread."""

    def __init__(self, talk: Callable[[socket.socket], Any], port: int = 0) -> None:
        self.talk = talk
        self.count = 0
        self.sock = socket.create_server(("127.0.0.1", port))
        self.port: int = self.sock.getsockname()[1]
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                client, _ = self.sock.accept()
            except OSError:
                return
            self.count += 1
            threading.Thread(target=self._talk, args=(client,), daemon=True).start()

    def _talk(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            self.talk(client)

    def close(self) -> None:
        """Stop accepting; the shutdown wakes the waiting thread, which would accept one more client otherwise."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()


def echo(sock: socket.socket) -> None:
    """Serve a serial port that sends a greeting and echoes its input."""
    sock.sendall("Grüße \u2603 \x1b[1;32mbold\x1b[0m\r\nguest login: ".encode())
    while data := sock.recv(65536):
        sock.sendall(data)


def rfb(sock: socket.socket, width: int = 640, height: int = 400) -> None:
    """Serve RFB 3.8 without security; its screen is a colour ramp, sent once. (noVNC 1.3 needs its alpha channel.)"""
    sock.sendall(b"RFB 003.008\n")
    _exactly(sock, 12)
    sock.sendall(b"\x01\x01")
    _exactly(sock, 1)
    sock.sendall(bytes(4))
    _exactly(sock, 1)
    name = b"fake guest"
    sock.sendall(struct.pack(">HH", width, height) + struct.pack(">BBBBHHHBBB3x", 32, 24, 0, 1, 255, 255, 255, 16, 8, 0)
                 + struct.pack(">I", len(name)) + name)
    picture = b"".join(struct.pack("<I", 255 << 24 | (x * 255 // width) << 16 | (y * 255 // height) << 8 | 96)
                       for y in range(height) for x in range(width))
    sent = False
    while True:
        kind = _exactly(sock, 1)[0]
        if kind == 0:
            _exactly(sock, 19)
        elif kind == 2:
            _exactly(sock, 4 * struct.unpack(">xH", _exactly(sock, 3))[0])
        elif kind == 3:
            incremental = _exactly(sock, 9)[0]
            if not (sent and incremental):
                sent = True
                sock.sendall(struct.pack(">BxHHHHHi", 0, 1, 0, 0, width, height, 0) + picture)
        elif kind in (4, 5):
            _exactly(sock, 7 if kind == 4 else 5)
        elif kind == 6:
            _exactly(sock, struct.unpack(">3xI", _exactly(sock, 7))[0])
        else:
            return


def _exactly(sock: socket.socket, count: int) -> bytes:
    have = b""
    while len(have) < count:
        part = sock.recv(count - len(have))
        if not part:
            raise ConnectionResetError
        have += part
    return have


class Client:
    """A WebSocket client on a plain socket. ``status``: of the answer to its request; for a refusal also its
    ``words`` and the ``body``."""

    def __init__(self, port: int, target: str, headers: dict[str, str] | None = None) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=5)
        wanted = {"Host": f"127.0.0.1:{port}", "Upgrade": "websocket", "Connection": "Upgrade",
                  "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
                  "Sec-WebSocket-Protocol": "binary", **(headers or {})}
        lines = [f"GET {target} HTTP/1.1", *(f"{name}: {value}" for name, value in wanted.items())]
        self.sock.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += _exactly(self.sock, 1)
        self.head = head.decode("latin-1")
        self.status = int(self.head.split(" ")[1])
        self.words = self.head.partition("X-Console-Refused: ")[2].partition("\r\n")[0]
        self.body = b""
        if self.status != 101:
            while part := self.sock.recv(65536):
                self.body += part

    def send(self, data: bytes) -> None:
        assert len(data) < 126
        self.sock.sendall(bytes((0x82, 0x80 | len(data))) + bytes(4) + data)

    def frame(self) -> tuple[int, bytes]:
        """Return (opcode, payload) of the next frame."""
        first, length = _exactly(self.sock, 2)
        if length == 126:
            length = struct.unpack(">H", _exactly(self.sock, 2))[0]
        elif length == 127:
            length = struct.unpack(">Q", _exactly(self.sock, 8))[0]
        return first & 15, _exactly(self.sock, length)

    def received(self, count: int) -> bytes:
        """Receive at least this many bytes of payload."""
        have = b""
        while len(have) < count:
            have += self.frame()[1]
        return have

    def closing(self) -> tuple[int, str]:
        """Return (code, reason) of the next close frame."""
        while True:
            opcode, payload = self.frame()
            if opcode == 8:
                return int.from_bytes(payload[:2], "big"), payload[2:].decode()

    def close(self) -> None:
        self.sock.close()
