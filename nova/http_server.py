"""A small HTTP/1.1 server for WSGI applications: one thread (native or green) a connection, keep-alive, clean stops.

Strict where leniency has made holes elsewhere: no folded or doubtful headers, no ``_`` in header names (they would
pass for ``-`` in the environment, where the token check's results stand), one Content-Length, no chunked requests.
The access log is the application's own.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import select
import socket
import ssl
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterable
from http.client import responses
from typing import Any

from nova import concurrency, context

LOG = logging.getLogger(__name__)

Application = Callable[..., Iterable[bytes]]

MAX_LINE = 16384  # a token with a large catalog is long
MAX_HEADERS = 100
MAX_LEFT_OVER = 65536  # of an unread body: more is not read for the next request's sake
MAX_CONNECTIONS = 1000
ACCEPT_S = 0.05  # another worker may have been faster (not "non-blocking": eventlet then gives sockets that block all)
_TOKEN = re.compile(rb"[!#$%&'*+.^`|~0-9A-Za-z-]+")


def bind(address: str, port: int, backlog: int = 1024) -> socket.socket:
    """A listening TCP socket, to be shared by the workers forked after it. OSError: it can not be had."""
    family, _, _, _, where = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(where)
        sock.listen(backlog)
    except OSError:
        sock.close()
        raise
    return sock


def serve_threads(sock: socket.socket, application: Application, workers: int = 64) -> None:
    """Serve until ``sock`` is closed; at most ``workers`` requests run at a time."""
    Server(sock, application, workers).run()


class BadRequest(Exception):
    """What came is no request we take: (status, reason)."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(status, reason)
        self.status, self.reason = status, reason


class Server:
    """Serves one listening socket. ``stop`` ends accepting at once and waits for the requests that run."""

    def __init__(self, sock: socket.socket, application: Application, workers: int = 1000, idle_s: float = 900,
                 tls: ssl.SSLContext | None = None) -> None:
        self.sock, self.application, self.tls, self.idle_s = sock, application, tls, idle_s
        self.slots = threading.BoundedSemaphore(workers)
        self.closing = False
        self._connections: set[Connection] = set()
        self._lock = threading.Lock()
        self._wake_read, self._wake_write = os.pipe()

    def start(self) -> None:
        concurrency.spawn(self.run, name="http")

    def run(self) -> None:
        """Accept until :meth:`stop`, or until the socket is closed."""
        self.sock.settimeout(ACCEPT_S)
        while not self.closing and self.sock.fileno() >= 0:
            try:
                ready, _, _ = select.select([self.sock, self._wake_read], [], [], 5)
                if self.sock in ready and not self.closing:
                    self._accept()
            except (OSError, ValueError):
                if not self.closing and self.sock.fileno() >= 0:
                    LOG.exception("Accepting connections failed; trying again")
                    time.sleep(0.5)  # out of file descriptors, mostly

    def _accept(self) -> None:
        if len(self._connections) >= MAX_CONNECTIONS:
            time.sleep(0.05)
            return
        try:
            sock, peer = self.sock.accept()
        except (TimeoutError, BlockingIOError, ConnectionAbortedError):
            return  # another worker was faster, or the client has gone
        connection = Connection(self, sock, peer)
        with self._lock:
            self._connections.add(connection)
        concurrency.spawn(connection.run, name="http-connection")

    def forget(self, connection: Connection) -> None:
        with self._lock:
            self._connections.discard(connection)

    def stop(self, seconds: float = 5) -> None:
        """Take no more connections or requests; return when those that run are done, or after ``seconds``."""
        self.closing = True
        with contextlib.suppress(OSError):
            os.write(self._wake_write, b"x")
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with self._lock:
                held = list(self._connections)
            for connection in held:
                connection.close_if_idle()
            if not any(connection.busy for connection in held):
                break
            time.sleep(0.02)


class Connection:
    """One client's connection: requests one after the other."""

    def __init__(self, server: Server, sock: socket.socket, peer: Any) -> None:
        self.server, self.sock, self.peer = server, sock, peer
        self.busy = False

    def run(self) -> None:
        try:
            self.sock.settimeout(self.server.idle_s or None)
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.server.tls is not None:
                self.sock = self.server.tls.wrap_socket(self.sock, server_side=True)
            with self.sock.makefile("rb") as reader:
                while not self.server.closing and self._one(reader):
                    pass
        except (ConnectionError, TimeoutError, ssl.SSLError):
            pass  # the client has gone
        except OSError as error:
            LOG.debug("Connection from %s ended: %s", self.peer[0], error)
        finally:
            self.busy = False
            self.server.forget(self)
            with contextlib.suppress(OSError):
                self.sock.close()

    def close_if_idle(self) -> None:
        """Wake a thread that waits for a next request that shall not come."""
        if not self.busy:
            with contextlib.suppress(OSError):
                self.sock.shutdown(socket.SHUT_RD)

    def _one(self, reader: io.BufferedReader) -> bool:
        """Read and answer one request; whether another may follow."""
        try:
            line = reader.readline(MAX_LINE + 1)
            if line in (b"\r\n", b"\n"):  # a stray line end after a body is allowed
                line = reader.readline(MAX_LINE + 1)
            if not line:
                return False
            self.busy = True
            environ, keep = self._parse(line, reader)
        except BadRequest as error:
            self._refuse(error)
            return False
        exchange = Exchange(self.sock, environ["SERVER_PROTOCOL"] == "HTTP/1.1",
                            environ["REQUEST_METHOD"] == "HEAD", keep)
        body = environ["wsgi.input"]  # the application may put another in its place
        with self.server.slots:
            exchange.run(self.server.application, environ)
        self.busy = False
        return bool(exchange.keep and body.finish())

    def _parse(self, line: bytes, reader: io.BufferedReader) -> tuple[dict[str, Any], bool]:
        """(the WSGI environment, whether the client wants to go on)."""
        method, target, protocol = _request_line(line)
        headers = _headers(reader)
        length = _length(headers)
        path, _, query = target.partition("?")
        host, port = self.sock.getsockname()[:2]
        send_continue = self._continue if headers.get("HTTP_EXPECT", "").lower() == "100-continue" else None
        environ: dict[str, Any] = {
            "REQUEST_METHOD": method, "SCRIPT_NAME": "", "QUERY_STRING": query, "SERVER_PROTOCOL": protocol,
            "PATH_INFO": urllib.parse.unquote_to_bytes(path).decode("latin-1"), "SERVER_NAME": str(host),
            "SERVER_PORT": str(port), "REMOTE_ADDR": str(self.peer[0]), "wsgi.version": (1, 0),
            "wsgi.url_scheme": "https" if self.server.tls else "http", "wsgi.errors": sys.stderr,
            "wsgi.input": Body(reader, length, send_continue), "wsgi.multithread": True, "wsgi.multiprocess": True,
            "wsgi.run_once": False, **headers}
        for name in ("CONTENT_TYPE", "CONTENT_LENGTH"):
            if f"HTTP_{name}" in environ:
                environ[name] = environ.pop(f"HTTP_{name}")
        wish = headers.get("HTTP_CONNECTION", "").lower()
        return environ, "close" not in wish if protocol == "HTTP/1.1" else "keep-alive" in wish

    def _continue(self) -> None:
        self.sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _refuse(self, error: BadRequest) -> None:
        request_id = context.new_request_id()
        LOG.debug("Request %s from %s refused: %s", request_id, self.peer[0], error.reason)
        text = f"{error.status} {responses[error.status]}\n\n{error.reason}\n".encode()
        ids = "".join(f"{name}: {value}\r\n" for name, value in _named(request_id))
        self.sock.sendall(f"HTTP/1.1 {error.status} {responses[error.status]}\r\nContent-Type: text/plain\r\n{ids}"
                          f"Content-Length: {len(text)}\r\nConnection: close\r\n\r\n".encode() + text)


def _request_line(line: bytes) -> tuple[str, str, str]:
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


def _headers(reader: io.BufferedReader) -> dict[str, str]:
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


def _length(headers: dict[str, str]) -> int:
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


class Exchange:
    """One answer on its way out."""

    def __init__(self, sock: socket.socket, is_11: bool, is_head: bool, keep: bool) -> None:
        self.sock, self.is_11, self.is_head, self.keep = sock, is_11, is_head, keep
        self.status, self.headers = "", []  # type: str, list[tuple[str, str]]
        self.sent = self.chunked = False

    def start_response(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Callable[..., None]:
        if exc_info and self.sent:
            raise exc_info[1]
        self.status, self.headers = status, headers
        return lambda data: self._send(data, last=False)

    def run(self, application: Application, environ: dict[str, Any]) -> None:
        """Call the application and send its answer. A failure before the first byte is a plain 500."""
        try:
            content = application(environ, self.start_response)
            try:
                parts = content if isinstance(content, (list, tuple)) else None
                if parts is not None:
                    self._send(b"".join(parts), last=True)
                else:
                    for part in content:
                        self._send(part, last=False)
                    self._send(b"", last=True)
            finally:
                close = getattr(content, "close", None)
                if close is not None:
                    close()
        except (ConnectionError, TimeoutError):
            raise
        except Exception:
            request_id = context.new_request_id()
            LOG.exception("An application failed while answering %s as %s", environ["PATH_INFO"], request_id)
            self.keep = False
            if not self.sent:
                self.status = "500 Internal Server Error"
                self.headers = [("Content-Type", "text/plain"), *_named(request_id)]
                self._send(b"500 Internal Server Error\n", last=True)

    def _send(self, data: bytes, last: bool) -> None:
        """Send a part; the head goes out with the first one. Answers of unknown length go in chunks, or end the
        connection.
        """
        head = b""
        if not self.sent:
            head = self._head(len(data) if last else None)
            self.sent = True
        if self.is_head or not self._has_body():
            data = b""
        elif self.chunked:
            data = (b"%x\r\n%s\r\n" % (len(data), data) if data else b"") + (b"0\r\n\r\n" if last else b"")
        if head or data:
            self.sock.sendall(head + data)

    def _has_body(self) -> bool:
        return not self.status.startswith(("1", "204", "304"))

    def _head(self, length: int | None) -> bytes:
        names = {name.lower() for name, _ in self.headers}
        extra = []
        if "content-length" not in names and self._has_body():
            if length is not None:
                extra.append(("Content-Length", str(length)))
            elif self.is_11:
                self.chunked = True
                extra.append(("Transfer-Encoding", "chunked"))
            else:
                self.keep = False
        extra.append(("Connection", "keep-alive" if self.keep else "close"))
        lines = [f"HTTP/1.1 {self.status}", *(f"{name}: {_clean(value)}" for name, value in [*self.headers, *extra])]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def _named(request_id: str) -> list[tuple[str, str]]:
    """The headers of an answer that no application gave: the operator finds this one, too."""
    return [("x-openstack-request-id", request_id), ("x-compute-request-id", request_id)]


def _clean(value: str) -> str:
    """A header's value without line ends: what a client sent may come back in one."""
    return value.replace("\r", " ").replace("\n", " ")
