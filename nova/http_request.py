"""What comes to our HTTP server: a request's head and body, taken apart by llhttp (of node.js; httptools binds it).

llhttp is strict as we leave it: lines end by CRLF, headers are not folded, one Content-Length, none beside a
Transfer-Encoding. What it has no bounds for is bounded here. It is given no byte beyond what it is asked about: a head
ends behind a blank line, a body in chunks behind some line, so that nothing is taken from the next request, or from
another protocol that the connection is handed over to.
"""

from __future__ import annotations

import io
import math
import socket
import ssl
import urllib.parse
from collections.abc import Callable
from typing import NamedTuple

import httptools

from nova.model.base import Json

MAX_LINE = 16384  # a token with a large catalog is long
MAX_HEADERS = 100
MAX_HEAD = 65536
MAX_LEFT_OVER = 65536  # of an unread body: more is not read for the next request's sake
MAX_FRAMING = 16  # bytes around one of a body in chunks; chunks of one byte have 5
PROTOCOLS = {"1.1": "HTTP/1.1", "1.0": "HTTP/1.0"}
BLANK = b"\r\n\r\n"


class BadRequest(Exception):
    """What came is no request we take: (status, reason)."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(status, reason)
        self.status, self.reason = status, reason


class SocketSource(io.RawIOBase):
    """The bytes of a socket. ``dry``: no more are read, so that a reader above shows what it already has."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__()
        self._sock, self.dry = sock, False

    def readable(self) -> bool:
        """True, as ``io.RawIOBase`` wants it."""
        return True

    def readinto(self, buffer: Json) -> int:
        """How many bytes came; 0 at the end, or when ``dry``. ConnectionResetError for a failure of TLS."""
        try:
            return 0 if self.dry else self._sock.recv_into(buffer)
        except ssl.SSLError as error:  # within a body it would pass for a failure of the application's
            raise ConnectionResetError(str(error)) from None


class Head(NamedTuple):
    """``protocol``: HTTP/1.1 or HTTP/1.0. ``headers``: HTTP_NAME -> value, values of a repeated name joined by commas.
    """

    method: str
    target: str
    protocol: str
    headers: dict[str, str]


class _Found:
    """What llhttp tells of a message. ``refusal``: why it was stopped from here."""

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
            self.refuse(431, "There are too many headers.")
        if len(name) + len(value) > MAX_LINE:
            self.refuse(431, "A header is too long.")
        if b"_" in name:  # in the environment it would pass for "-"
            return
        key = "HTTP_" + name.decode("ascii").upper().replace("-", "_")
        text = value.strip(b" \t").decode("latin-1")
        self.headers[key] = f"{self.headers[key]},{text}" if key in self.headers else text

    def on_headers_complete(self) -> None:
        self.whole = True


class _FoundChunks(_Found):
    """Trailers are not asked for."""

    def __init__(self, most: float) -> None:
        super().__init__()
        self.body, self.size = bytearray(), 0
        self._most = most

    def on_body(self, part: bytes) -> None:
        self.body += part
        self.size += len(part)
        if self.size > self._most:
            self.refuse(413, f"The body is too large: at most {self._most} bytes are taken in chunks.")

    def on_message_complete(self) -> None:
        self.whole = True


def _feed(parser: httptools.HttpRequestParser, data: bytes, found: _Found) -> None:
    """BadRequest."""
    try:
        parser.feed_data(data)
    except httptools.HttpParserUpgrade:  # of a whole head: whether it is heard is the application's to say
        pass
    except httptools.HttpParserError as error:
        raise found.refusal or BadRequest(400, f"The request is malformed: {error}.") from None


def head(reader: io.BufferedReader) -> Head:
    """The head of the request that begins here. BadRequest; ConnectionError when it never ends."""
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
            raise BadRequest(431, f"The head of the request is too long: at most {MAX_HEAD} bytes are taken.")
    protocol = PROTOCOLS.get(parser.get_http_version())
    if protocol is None:
        raise BadRequest(400, "The request is malformed: it is of no version of HTTP that is spoken here.")
    return Head(parser.get_method().decode("ascii"), _target(found.url.decode("latin-1")), protocol, found.headers)


def _some(reader: io.BufferedReader) -> bytes:
    """What has come and was not read yet; waits for it."""
    data = reader.peek(1)
    if not data:
        raise ConnectionResetError("the client went away within a request")
    return data


def _target(target: str) -> str:
    """Path and query, also of a target with a host, as proxies get it. BadRequest."""
    if target.startswith("/"):
        return target
    try:
        split = urllib.parse.urlsplit(target)
    except ValueError:  # brackets around what is no address
        split = urllib.parse.urlsplit("")
    if split.scheme not in ("http", "https"):
        raise BadRequest(400, "The request's target is malformed.")
    return (split.path or "/") + (f"?{split.query}" if split.query else "")


def body(head: Head, reader: io.BufferedReader, most: int | None, before: Callable[[], None], whole: int = 0
         ) -> BodyStream:
    """The body that a head announces. One in chunks is read here and now, of at most ``most`` bytes, and is one of
    known length for the application; with ``most`` None it is read by the application, without a bound. One of known
    length is read here and now when it has at most ``whole`` bytes.
    ``before`` gives the client leave to send it, where it waits for that. BadRequest.
    """
    waits = head.protocol == "HTTP/1.1" and head.headers.get("HTTP_EXPECT", "").lower() == "100-continue"
    coding = head.headers.pop("HTTP_TRANSFER_ENCODING", None)
    if coding is None:
        found = BodyStream(reader, int(head.headers.get("HTTP_CONTENT_LENGTH", 0)), before if waits else None)
        return found.kept() if 0 < found.left <= whole else found
    if head.protocol != "HTTP/1.1":
        raise BadRequest(400, "Only HTTP/1.1 has a Transfer-Encoding.")
    if coding.lower() != "chunked":
        raise BadRequest(501, "Of Transfer-Encodings only 'chunked' is taken.")
    if most is None:
        return ChunkStream(reader, before if waits else None)
    if waits:
        before()
    content = chunks(reader, most)
    head.headers["HTTP_CONTENT_LENGTH"] = str(len(content))
    return BodyStream(io.BytesIO(content), len(content), None)


def chunks(reader: io.BufferedReader, most: int) -> bytes:
    """The content of a body in chunks that begins here, without trailers. BadRequest: 400 when it is broken, 413 when
    it is of more than ``most`` bytes; ConnectionError when it never ends.
    """
    taking = _Chunks(reader, most)
    while not taking.found.whole:
        taking.more()
    return bytes(taking.found.body)


class _Chunks:
    """A body in chunks that is being read. ``found.body``: what has come and was not taken yet."""

    def __init__(self, reader: io.BufferedReader, most: float) -> None:
        self.found = _FoundChunks(most)
        self._reader, self._size = reader, 0
        # not the parser of the head: where that asks for an upgrade, httptools takes no body
        self._parser = httptools.HttpRequestParser(self.found)
        self._parser.feed_data(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")

    def more(self) -> None:
        """Read what has come by now; waits for it."""
        data, at = _some(self._reader), 0
        while at < len(data) and not self.found.whole:
            end = data.find(b"\n", at) + 1 or len(data)
            _feed(self._parser, data[at:end], self.found)
            at = end
        self._reader.read(at)
        self._size += at
        if self._size > MAX_LEFT_OVER + MAX_FRAMING * self.found.size:  # extensions and trailers without end
            raise BadRequest(400, "There is far more around the chunks of the body than in them.")


class BodyStream(io.RawIOBase):
    """A request's body: as many bytes as were announced, and no byte of the next request."""

    def __init__(self, reader: io.BufferedReader | io.BytesIO, length: int, before: Callable[[], None] | None) -> None:
        super().__init__()
        self._reader, self._left, self._before = reader, length, before

    def readable(self) -> bool:
        """True, as ``io.RawIOBase`` wants it."""
        return True

    def read(self, size: int | None = -1) -> bytes:
        """``size`` bytes (None, or less than 0: all), fewer only at the body's end. ConnectionResetError: the client
        went before that."""
        if self._left and self._before is not None:
            self._before()
            self._before = None
        wanted = self._left if size is None or size < 0 else min(size, self._left)
        data = self._reader.read(wanted) if wanted else b""
        if len(data) < wanted:
            raise ConnectionResetError("the client went away within a body")
        self._left -= len(data)
        return data

    def readinto(self, buffer: Json) -> int:
        """How many bytes were read into ``buffer``; 0 at the body's end. Errors as of :meth:`read`."""
        data = self.read(len(buffer))
        buffer[:len(data)] = data
        return len(data)

    @property
    def left(self) -> int:
        """How many bytes were not read yet."""
        return self._left

    def kept(self) -> BodyStream:
        """The same, read to its end. ConnectionResetError."""
        content = self.read()
        return BodyStream(io.BytesIO(content), len(content), None)

    @property
    def is_short(self) -> bool:
        """Whether what is left can be read away, so that another request may follow: it is not too much, and the client
        does not wait for leave to send it."""
        return not (self._left > MAX_LEFT_OVER or (self._left and self._before is not None))

    def finish(self) -> bool:
        """Read what is left; False when it is not short."""
        if not self.is_short:
            return False
        self.read()
        return True


class ChunkStream(BodyStream):
    """A body in chunks, of a length that is not known before its end."""

    def __init__(self, reader: io.BufferedReader, before: Callable[[], None] | None) -> None:
        super().__init__(reader, 0, before)
        self._chunks = _Chunks(reader, math.inf)

    def read(self, size: int | None = -1) -> bytes:
        """As of BodyStream. ConnectionResetError also when the chunks are malformed."""
        if self._before is not None:
            self._before()
            self._before = None
        found, wanted = self._chunks.found, math.inf if size is None or size < 0 else size
        while len(found.body) < wanted and not found.whole:
            try:
                self._chunks.more()
            except BadRequest as error:
                raise ConnectionResetError(error.reason) from None
        data = bytes(found.body[:size]) if wanted < math.inf else bytes(found.body)
        del found.body[:len(data)]
        return data

    @property
    def is_short(self) -> bool:
        """As of BodyStream, as far as one can know: an application that has read something has read most of it."""
        return self._before is None and bool(self._chunks.found.size or self._chunks.found.whole)

    def finish(self) -> bool:
        """As of BodyStream."""
        if not self.is_short:
            return False
        self.read(MAX_LEFT_OVER)
        return self._chunks.found.whole and not self._chunks.found.body
