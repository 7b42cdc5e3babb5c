"""What comes to our HTTP server: a request's line, headers and body, taken strictly."""

from __future__ import annotations

import io
import re
import socket
import ssl
import urllib.parse
from collections.abc import Callable
from typing import Any

MAX_LINE = 16384  # a token with a large catalog is long
MAX_HEADERS = 100
MAX_LEFT_OVER = 65536  # of an unread body: more is not read for the next request's sake
_TOKEN = re.compile(rb"[!#$%&'*+.^`|~0-9A-Za-z-]+")


class BadRequest(Exception):
    """What came is no request we take: (status, reason)."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(status, reason)
        self.status, self.reason = status, reason


class Source(io.RawIOBase):
    """The bytes of a socket. ``dry``: no more are read, so that a reader above shows what it already has."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__()
        self._sock, self.dry = sock, False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            return 0 if self.dry else self._sock.recv_into(buffer)
        except ssl.SSLError as error:  # within a body it would pass for a failure of the application's
            raise ConnectionResetError(str(error)) from None


def request_line(line: bytes) -> tuple[str, str, str]:
    """(method, target, protocol), or BadRequest."""
    if len(line) > MAX_LINE:
        raise BadRequest(414, "The request line is too long.")
    parts = line.rstrip(b"\r\n").split(b" ")
    if len(parts) != 3 or not _TOKEN.fullmatch(parts[0]) or parts[2] not in (b"HTTP/1.1", b"HTTP/1.0"):
        raise BadRequest(400, "The request line is malformed.")
    target = parts[1].decode("latin-1")
    if not target.startswith("/"):
        try:
            split = urllib.parse.urlsplit(target)
        except ValueError:  # brackets around what is no address
            split = urllib.parse.urlsplit("")
        if split.scheme not in ("http", "https"):
            raise BadRequest(400, "The request's target is malformed.")
        target = (split.path or "/") + (f"?{split.query}" if split.query else "")
    return parts[0].decode("ascii"), target, parts[2].decode("ascii")


def headers(reader: io.BufferedReader) -> dict[str, str]:
    """HTTP_NAME -> value; values of a repeated name are joined by commas. BadRequest."""
    found: dict[str, str] = {}
    for _ in range(MAX_HEADERS + 1):
        line = reader.readline(MAX_LINE + 1)
        if line in (b"\r\n", b"\n"):
            return found
        if len(line) > MAX_LINE:
            raise BadRequest(431, "A header is too long.")
        name, colon, value = line.partition(b":")
        if not colon or not line.endswith(b"\n") or (b"_" not in name and not _TOKEN.fullmatch(name)):
            raise BadRequest(400, "A header is malformed.")
        if b"_" in name:
            continue
        key = "HTTP_" + name.decode("ascii").upper().replace("-", "_")
        text = value.strip(b" \t\r\n").decode("latin-1")
        if "\r" in text or "\0" in text:
            raise BadRequest(400, "A header is malformed.")
        found[key] = f"{found[key]},{text}" if key in found else text
    raise BadRequest(431, "There are too many headers.")


def length(headers: dict[str, str]) -> int:
    if "HTTP_TRANSFER_ENCODING" in headers:
        raise BadRequest(411, "Send the body with a Content-Length, not in chunks.")
    length = headers.get("HTTP_CONTENT_LENGTH", "0")
    if not (length.isascii() and length.isdigit()) or len(length) > 18:
        raise BadRequest(400, "Content-Length is malformed.")
    return int(length)


class Body(io.RawIOBase):
    """A request's body: as many bytes as were announced, and no byte of the next request."""

    def __init__(self, reader: io.BufferedReader, length: int, before: Callable[[], None] | None) -> None:
        super().__init__()
        self._reader, self._left, self._before = reader, length, before

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        if self._left and self._before is not None:
            self._before()
            self._before = None
        wanted = self._left if size is None or size < 0 else min(size, self._left)
        data = self._reader.read(wanted) if wanted else b""
        if len(data) < wanted:
            raise ConnectionResetError("the client went away within a body")
        self._left -= len(data)
        return data

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[:len(data)] = data
        return len(data)

    def finish(self) -> bool:
        """Read what is left; False when it is too much, or the client waits for leave to send it."""
        if self._left > MAX_LEFT_OVER or (self._left and self._before is not None):
            return False
        self.read()
        return True
