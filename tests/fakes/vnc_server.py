"""The handshake of a VNC server (RFB 3.8), optionally with VeNCrypt; a test can set each of its messages."""

from __future__ import annotations

import socket
import ssl
import struct
from typing import Any

from tests.fakes.console_papers import Authority
from tests.fakes.console_peers import exactly

VERSION = b"RFB 003.008\n"
NONE, VENCRYPT = 1, 19
OK = struct.pack(">I", 0)


def greet(sock: socket.socket, types: bytes) -> None:
    sock.sendall(VERSION)
    assert exactly(sock, 12) == VERSION
    sock.sendall(bytes((len(types),)) + types)


class Hypervisor:
    """A VeNCrypt server, each of whose messages can be set."""

    def __init__(self, authority: Authority, version: bytes = b"\0\2", acked: bytes = b"\0",
                 subtypes: tuple[int, ...] = (260,), taken: bytes = b"\1", ahead: bytes = b"",
                 trusts: str | None = None) -> None:
        self.version, self.acked, self.subtypes, self.taken, self.ahead = version, acked, subtypes, taken, ahead
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        own = authority.issue("server", server=True)
        self.context.load_cert_chain(own.cert, own.key)
        self.context.load_verify_locations(trusts or authority.ca)
        self.context.verify_mode = ssl.CERT_REQUIRED
        self.client: dict[str, Any] | None = None

    def __call__(self, sock: socket.socket) -> None:
        greet(sock, bytes((VENCRYPT, 2)))
        assert exactly(sock, 1) == bytes((VENCRYPT,))
        sock.sendall(self.version)
        assert exactly(sock, 2) == b"\0\2"
        sock.sendall(self.acked)
        sock.sendall(bytes((len(self.subtypes),)) + struct.pack(f">{len(self.subtypes)}I", *self.subtypes))
        assert exactly(sock, 4) == struct.pack(">I", 260)
        sock.sendall(self.taken + self.ahead)
        with self.context.wrap_socket(sock, server_side=True) as inside:
            inside.sendall(OK)
            self.client = inside.getpeercert()  # type: ignore[assignment]
            self.talk(inside)

    def talk(self, sock: ssl.SSLSocket) -> None:
        sock.sendall(b"inside " + sock.recv(100))
