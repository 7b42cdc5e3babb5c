"""Requests to nova's HTTP server: parsing of head and body by llhttp (of node.js; bound by httptools).

llhttp runs in its strict mode: lines end in CRLF, headers are not folded, there is at most one Content-Length, and none
next to a Transfer-Encoding. This module adds the size limits that llhttp lacks. It passes no bytes beyond the current
part: a head ends after a blank line, a chunked body after some line. So it takes nothing from the next request, or from
another protocol that the connection is handed over to.
"""

from __future__ import annotations

import io
import math
import socket
import ssl
import urllib.parse
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import httptools

from nova import failures

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAX_LINE = 16384  # a token with a large catalog is long
MAX_HEADERS = 100
MAX_HEAD = 65536
MAX_LEFT_OVER = 65536  # of an unread body: with more, the connection is closed
MAX_FRAMING = 16  # bytes of framing per byte of a chunked body; one-byte chunks have 5
PROTOCOLS = {"1.1": "HTTP/1.1", "1.0": "HTTP/1.0"}
BLANK = b"\r\n\r\n"


class BadRequest(Exception):
    """Error for an invalid or unsupported request: (status, reason)."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(status, reason)
        self.status, self.reason = status, reason


class SocketSource(io.RawIOBase):
    """Reader of a socket. ``dry``: read no more bytes, so that a reader on top of it only returns buffered ones."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__()
        self._sock, self.dry = sock, False

    def readable(self) -> bool:
        """Return True, as ``io.RawIOBase`` requires."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Return the number of bytes read; 0 at the end, or if ``dry``. Raises ConnectionResetError if TLS fails."""
        # within a body it would look like a failure of the application
        with failures.replaced(ssl.SSLError, lambda error: ConnectionResetError(str(error))):
            return 0 if self.dry else self._sock.recv_into(buffer)


class Head(NamedTuple):
    """The head of a request. ``protocol``: HTTP/1.1 or HTTP/1.0. ``headers``: HTTP_NAME -> value; values of a repeated
    name are joined by commas."""

    method: str
    target: str
    protocol: str
    headers: dict[str, str]


class _Found:
    """Callbacks of llhttp for a message. ``refusal``: the reason if a callback stopped the parser."""

    def __init__(self) -> None:
        self.whole = False
        self.refusal: BadRequest | None = None

    def refuse(self, status: int, reason: str) -> None:
        self.refusal = BadRequest(status, reason)
        raise self.refusal


class _FoundHead(_Found):
    def __init__(self) -> None:
        super().__init__()
        self.url, self.headers = b"", {}  # type: bytes, dict[str, str]
        self._count = 0

    def on_url(self, part: bytes) -> None:
        self.url += part
        if len(self.url) > MAX_LINE:
            self.refuse(414, "The request line is too long.")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count += 1
        if self._count > MAX_HEADERS:
            self.refuse(431, "The request has too many headers.")
        if len(name) + len(value) > MAX_LINE:
            self.refuse(431, "A header is too long.")
        if b"_" in name:  # in the environment it would be equal to "-"
            return
        key = "HTTP_" + name.decode("ascii").upper().replace("-", "_")
        text = value.strip(b" \t").decode("latin-1")
        self.headers[key] = f"{self.headers[key]},{text}" if key in self.headers else text

    def on_headers_complete(self) -> None:
        self.whole = True


class _FoundChunks(_Found):
    """Callbacks for a chunked body. Trailers are ignored."""

    def __init__(self, most: float) -> None:
        super().__init__()
        self.body, self.size = bytearray(), 0
        self._most = most

    def on_body(self, part: bytes) -> None:
        self.body += part
        self.size += len(part)
        if self.size > self._most:
            self.refuse(413, f"The body is too large: at most {self._most} bytes are accepted in chunks.")

    def on_message_complete(self) -> None:
        self.whole = True


def _feed(parser: httptools.HttpRequestParser, data: bytes, found: _Found) -> None:
    """Pass data to the parser. Raises BadRequest."""
    try:
        parser.feed_data(data)
    except httptools.HttpParserUpgrade:  # after a complete head: the application decides about the upgrade
        pass
    except httptools.HttpParserError as error:
        raise found.refusal or BadRequest(400, f"The request is malformed: {error}.") from None


def head(reader: io.BufferedReader) -> Head:
    """Read the head of the next request. Raises BadRequest, or ConnectionError if it is incomplete."""
    found = _FoundHead()
    parser = httptools.HttpRequestParser(found)
    size, last = 0, b""
    while not found.whole:
        seen = last + _some(reader)
        end = seen.find(BLANK) + len(BLANK)
        seen = seen if end < len(BLANK) else seen[:end]
        part = reader.read(len(seen) - len(last))
        size, last = size + len(part), seen[-3:]
        _feed(parser, part, found)
        if size > MAX_HEAD:
            raise BadRequest(431, f"The head of the request is too long: at most {MAX_HEAD} bytes are accepted.")
    protocol = PROTOCOLS.get(parser.get_http_version())
    if protocol is None:
        raise BadRequest(400, "The request is malformed: its HTTP version is not supported.")
    return Head(parser.get_method().decode("ascii"), _target(found.url.decode("latin-1")), protocol, found.headers)


def _some(reader: io.BufferedReader) -> bytes:
    """Return the bytes that have arrived and are unread; waits for some."""
    data = reader.peek(1)
    if not data:
        raise ConnectionResetError("the client disconnected during a request")
    return data


def _target(target: str) -> str:
    """Return path and query, also of a target with a host, as proxies receive it. Raises BadRequest."""
    if target.startswith("/"):
        return target
    try:
        split = urllib.parse.urlsplit(target)
    except ValueError:  # brackets around an invalid address
        split = urllib.parse.urlsplit("")
    if split.scheme not in ("http", "https"):
        raise BadRequest(400, "The request's target is malformed.")
    return (split.path or "/") + (f"?{split.query}" if split.query else "")


def body(head: Head, reader: io.BufferedReader, most: int | None, before: Callable[[], None], whole: int = 0
         ) -> BodyStream:
    """Return the body that a head announces. A chunked body of at most ``most`` bytes is read immediately, and has a
    known length for the application. With ``most`` None, the application reads it, without a limit. A body of known
    length is read immediately if it has at most ``whole`` bytes. ``before`` sends the client permission to continue,
    if it waits for that. Raises BadRequest."""
    waits = head.protocol == "HTTP/1.1" and head.headers.get("HTTP_EXPECT", "").lower() == "100-continue"
    coding = head.headers.pop("HTTP_TRANSFER_ENCODING", None)
    if coding is None:
        found = BodyStream(reader, int(head.headers.get("HTTP_CONTENT_LENGTH", 0)), before if waits else None)
        return found.kept() if 0 < found.left <= whole else found
    if head.protocol != "HTTP/1.1":
        raise BadRequest(400, "Transfer-Encoding requires HTTP/1.1.")
    if coding.lower() != "chunked":
        raise BadRequest(501, "The only supported Transfer-Encoding is 'chunked'.")
    if most is None:
        return ChunkStream(reader, before if waits else None)
    if waits:
        before()
    content = chunks(reader, most)
    head.headers["HTTP_CONTENT_LENGTH"] = str(len(content))
    return BodyStream(io.BytesIO(content), len(content), None)


def chunks(reader: io.BufferedReader, most: int) -> bytes:
    """Read a chunked body, without trailers. Raises BadRequest (400 if it is malformed, 413 if it exceeds ``most``
    bytes), or ConnectionError if it is incomplete."""
    taking = _Chunks(reader, most)
    while not taking.found.whole:
        taking.more()
    return bytes(taking.found.body)


class _Chunks:
    """Reader of a chunked body. ``found.body``: bytes that have arrived and are unread."""

    def __init__(self, reader: io.BufferedReader, most: float) -> None:
        self.found = _FoundChunks(most)
        self._reader, self._size = reader, 0
        # not the head's parser: after a request for an upgrade, httptools parses no body
        self._parser = httptools.HttpRequestParser(self.found)
        self._parser.feed_data(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")

    def more(self) -> None:
        """Read the bytes that have arrived; waits for some."""
        data, at = _some(self._reader), 0
        while at < len(data) and not self.found.whole:
            end = data.find(b"\n", at) + 1 or len(data)
            _feed(self._parser, data[at:end], self.found)
            at = end
        self._reader.read(at)
        self._size += at
        if self._size > MAX_LEFT_OVER + MAX_FRAMING * self.found.size:  # endless extensions and trailers
            raise BadRequest(400, "The body has too much chunk framing for its content.")


class BodyStream(io.RawIOBase):
    """Body of a request: exactly the announced number of bytes, none of the next request."""

    def __init__(self, reader: io.BufferedReader | io.BytesIO, length: int, before: Callable[[], None] | None) -> None:
        super().__init__()
        self._reader, self._left, self._before = reader, length, before

    def readable(self) -> bool:
        """Return True, as ``io.RawIOBase`` requires."""
        return True

    def read(self, size: int | None = -1) -> bytes:
        """Return ``size`` bytes (None or negative: all), fewer only at the body's end. Raises ConnectionResetError if
        the client disconnects before."""
        if self._left and self._before is not None:
            self._before()
            self._before = None
        wanted = self._left if size is None or size < 0 else min(size, self._left)
        data = self._reader.read(wanted) if wanted else b""
        if len(data) < wanted:
            raise ConnectionResetError("the client disconnected during a body")
        self._left -= len(data)
        return data

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Return the number of bytes read into ``buffer``; 0 at the body's end. Raises the errors of :meth:`read`."""
        view = memoryview(buffer)
        data = self.read(len(view))
        view[:len(data)] = data
        return len(data)

    @property
    def left(self) -> int:
        """Number of unread bytes."""
        return self._left

    def kept(self) -> BodyStream:
        """Return the same body, read to its end into memory. Raises ConnectionResetError."""
        content = self.read()
        return BodyStream(io.BytesIO(content), len(content), None)

    @property
    def is_short(self) -> bool:
        """True if the rest of the body can be skipped, so that another request may follow: it is not too long, and the
        client does not wait for permission to send it."""
        return not (self._left > MAX_LEFT_OVER or (self._left and self._before is not None))

    def finish(self) -> bool:
        """Skip the rest of the body; return False if it is not short."""
        if not self.is_short:
            return False
        self.read()
        return True


class ChunkStream(BodyStream):
    """A chunked body, whose length is only known at its end."""

    def __init__(self, reader: io.BufferedReader, before: Callable[[], None] | None) -> None:
        super().__init__(reader, 0, before)
        self._chunks = _Chunks(reader, math.inf)

    def read(self, size: int | None = -1) -> bytes:
        """Return ``size`` bytes, like BodyStream. Raises ConnectionResetError also for malformed chunks."""
        if self._before is not None:
            self._before()
            self._before = None
        found, wanted = self._chunks.found, math.inf if size is None or size < 0 else size
        while len(found.body) < wanted and not found.whole:
            with failures.replaced(BadRequest, lambda error: ConnectionResetError(error.reason)):
                self._chunks.more()
        data = bytes(found.body[:size]) if wanted < math.inf else bytes(found.body)
        del found.body[:len(data)]
        return data

    @property
    def is_short(self) -> bool:
        """Likely value, as the length is unknown: an application that has read some of the body has usually read most
        of it."""
        return self._before is None and bool(self._chunks.found.size or self._chunks.found.whole)

    def finish(self) -> bool:
        """Skip the rest of the body, like BodyStream."""
        if not self.is_short:
            return False
        self.read(MAX_LEFT_OVER)
        return self._chunks.found.whole and not self._chunks.found.body
