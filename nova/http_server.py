"""HTTP/1.1 server for WSGI applications: one thread (native or green) per connection, keep-alive, clean stops.

This module handles sockets, deadlines, limits, TLS and draining. Input of unknown clients is parsed strictly, by llhttp
(:mod:`nova.http_request`). doc/contributing.rst compares this server with others. Applications write their own access
log. An application may keep a connection for another protocol: ``TakeOver``.
"""

from __future__ import annotations

import contextlib
import io
import logging
import math
import os
import select
import socket
import ssl
import sys
import threading
import time
import urllib.parse
from http.client import responses
from typing import NamedTuple
from wsgiref.types import WSGIEnvironment

from nova import concurrency, context, failures, http_request
from nova.http_answer import Application, Exchange, TakeOver, ids
from nova.http_connection_limit import HOLDER, Stage, select_evicted
from nova.http_request import BadRequest, SocketSource

__all__ = ["Application", "ClientBounds", "Exchange", "Server", "TakeOver", "bind", "serve_threads"]

LOG = logging.getLogger(__name__)

MAX_CONNECTIONS = 1000
BODY_BYTES = 114688  # the limit of oslo.middleware
LINGER_S = 1.0  # for a client to read the refusal while it is still sending
HANDSHAKE = b"\x16"  # first byte of TLS, but not of HTTP
LEAVE_S = 0.05  # for the end of closed connections
ACCEPT_S = 0.05  # another worker may accept first (not non-blocking: eventlet's accepted sockets would then block all)


def bind(address: str, port: int, backlog: int = 1024) -> socket.socket:
    """Return a listening TCP socket, which workers forked later share. Raises OSError if the address cannot be
    bound."""
    family, _, _, _, where = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    sock = socket.socket(family, socket.SOCK_STREAM)
    with failures.on_failure(sock.close, on=OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(where)
        sock.listen(backlog)
    return sock


def serve_threads(sock: socket.socket, application: Application, workers: int = 64) -> None:
    """Serve until ``sock`` is closed; at most ``workers`` requests run at a time."""
    Server(sock, application, ClientBounds(workers)).run()


class ClientBounds(NamedTuple):
    """Limits for clients.

    ``workers``: requests in progress at a time; responses that clients receive are only limited by ``max_connections``.
    ``idle_s``: seconds that a client may send nothing. ``head_s``: total seconds for the TLS handshake and a request's
    head, for any sending rate; 0 is unlimited. ``answer_s``: seconds to create and receive a response, if heads have a
    deadline. ``chunked_bytes``: size of a chunked body, which is read completely before the application is called;
    None: the application reads it (``wsgi.input_terminated``) and limits it. ``whole_bytes``: a body of known length up
    to this size is also read before the application is called. Such bodies share the head's deadline, so that a client
    that stops sending occupies no worker. Both sizes are the most that applications accept; applications that stream
    large bodies set their own values, and limit their clients themselves.
    """

    workers: int = 1000
    idle_s: float = 900
    head_s: float = 0
    answer_s: float = 120
    max_connections: int = MAX_CONNECTIONS
    chunked_bytes: int | None = BODY_BYTES
    whole_bytes: int = BODY_BYTES


class Server:
    """Server for one listening socket. ``stop`` stops accepting immediately and waits for requests in progress.

    ``tls_only``: with ``tls``, refuse plain HTTP on the port.
    """

    def __init__(self, sock: socket.socket, application: Application, bounds: ClientBounds | None = None,
                 tls: ssl.SSLContext | None = None, tls_only: bool = True) -> None:
        self.sock, self.application, self.tls, self.tls_only = sock, application, tls, tls_only
        self.bounds = bounds or ClientBounds()
        self.slots = threading.BoundedSemaphore(self.bounds.workers)
        self.closing = False
        self._connections: set[ClientConnection] = set()
        self._looked = 0.0
        self._lock = threading.Lock()
        self._wakes, self._wake = socket.socketpair()

    def start(self) -> None:
        concurrency.spawn(self.run, name="http")

    def run(self) -> None:
        """Accept connections until :meth:`stop`, or until the socket is closed."""
        self.sock.settimeout(ACCEPT_S)
        with self._wakes, self._wake:
            self._accept_all([self.sock, self._wakes])

    def _accept_all(self, doors: list[socket.socket]) -> None:
        while not self.closing and self.sock.fileno() >= 0:
            try:
                ready, _, _ = select.select(doors, [], [], min(1, self.bounds.head_s / 4) or 5)
                if self.sock in ready and not self.closing:
                    self._accept()
                self._close_expired()
            except (OSError, ValueError):
                if not self.closing and self.sock.fileno() >= 0:
                    LOG.exception("Could not accept connections; retrying")
                    time.sleep(0.5)  # usually out of file descriptors

    def _accept(self) -> None:
        if self._is_full():
            self._evict()
            return
        try:
            sock, peer = self.sock.accept()
        except (TimeoutError, BlockingIOError, ConnectionAbortedError):
            return  # another worker accepted first, or the client has disconnected
        connection = ClientConnection(self, sock, peer)
        with self._lock:
            self._connections.add(connection)
        concurrency.spawn(connection.run, name="http-connection")

    def forget(self, connection: ClientConnection) -> None:
        with self._lock:
            self._connections.discard(connection)

    def _evict(self) -> None:
        """Close some connections that wait for their clients, if connections have deadlines, so that they do not block
        others."""
        with self._lock:
            for one in select_evicted(self._connections, self.bounds.max_connections) if self.bounds.head_s else ():
                one.hang_up()
        until = time.monotonic() + LEAVE_S
        while self._is_full() and time.monotonic() < until:
            time.sleep(LEAVE_S / 20)

    def _is_full(self) -> bool:
        return len(self._connections) >= self.bounds.max_connections

    def _close_expired(self) -> None:
        """Close connections that exceed their deadline. Socket timeouts would not suffice: a client that sends a byte
        now and then never exceeds them."""
        now = time.monotonic()
        if not self.bounds.head_s or now < self._looked + min(0.5, self.bounds.head_s / 8):
            return
        self._looked = now
        with self._lock:  # so that no socket is closed and its number reused meanwhile
            for connection in self._connections:
                if connection.until < now:
                    connection.hang_up()

    def stop(self, seconds: float = 5) -> None:
        """Accept no more connections or requests; return when running requests are done, or after ``seconds``."""
        self.closing = True
        with contextlib.suppress(OSError):
            self._wake.send(b"x")
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with self._lock:
                held = list(self._connections)
            for connection in held:
                connection.close_if_idle()
            if not any(connection.busy for connection in held):
                break
            time.sleep(0.02)


class ClientConnection:
    """Connection of one client, with one request after another."""

    def __init__(self, server: Server, sock: socket.socket, peer: tuple[str | int, ...]) -> None:
        self.server, self.sock, self.peer = server, sock, peer
        self.holder = str(peer[0])
        self.stage, self.secure = Stage.WAITING, False
        self.until = math.inf  # deadline of the present stage
        self._allow(server.bounds.head_s)

    @property
    def busy(self) -> bool:
        """True if a request has arrived and is not answered yet."""
        return self.stage is not Stage.WAITING

    def run(self) -> None:
        try:
            self.sock.settimeout(self.server.bounds.idle_s or None)
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._secure()
            source = SocketSource(self.sock)
            reader: io.BufferedReader = io.BufferedReader(source)
            while not self.server.closing and self._one(reader, source):
                pass
        except (ConnectionError, TimeoutError, ssl.SSLError):
            pass  # the client has disconnected
        except OSError as error:
            LOG.debug("Connection from %s ended: %s", self.peer[0], error)
        finally:
            self.stage = Stage.WAITING
            self.server.forget(self)
            with contextlib.suppress(OSError):
                self.sock.close()

    def _allow(self, seconds: float) -> None:
        """Set the deadline of the next stage; unlimited if the server has no deadlines."""
        self.until = time.monotonic() + seconds if self.server.bounds.head_s else math.inf

    def _secure(self) -> None:
        """Start TLS, unless plain HTTP is allowed and the client's first byte shows that it uses it."""
        tls = self.server.tls
        if tls is None or not (self.server.tls_only or self.sock.recv(1, socket.MSG_PEEK) == HANDSHAKE):
            return
        # in two steps, so that the deadline closes the socket in use
        self.sock = tls.wrap_socket(self.sock, server_side=True, do_handshake_on_connect=False)
        self.sock.do_handshake()
        self.secure = True

    def close_if_idle(self) -> None:
        """Wake a thread that waits for a next request."""
        if not self.busy:
            self._shut(socket.SHUT_RD)

    def hang_up(self) -> None:
        """Shut down the connection's socket, which wakes its thread in every stage."""
        self._shut(socket.SHUT_RDWR)

    def _shut(self, how: int) -> None:
        """Shut down the socket below TLS, whose own method would detach the socket while its thread reads from it."""
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(self.sock.fileno())) as same:
            same.shutdown(how)

    def _one(self, reader: io.BufferedReader, source: SocketSource) -> bool:
        """Read and answer one request; return whether another may follow."""
        try:
            if not reader.peek(1):
                return False
            self._allow(self.server.bounds.head_s)
            head = http_request.head(reader)
            bounds = self.server.bounds
            body = http_request.body(head, reader, bounds.chunked_bytes, self._continue, bounds.whole_bytes)
            self.stage = Stage.WORKING
            self._allow(bounds.answer_s)
            environ = self._environ(head, body)
        except BadRequest as error:
            self._refuse(error)
            return False
        exchange = Exchange(self.sock, head.protocol == "HTTP/1.1", head.method == "HEAD", _goes_on(head),
                            lambda: body.is_short)
        taken = exchange.run(self.server.application, environ, _Turn(self, environ))
        if taken is not None:
            self._hand_over(taken, reader, source)
            return False
        is_read = body.finish()
        self.stage = Stage.WAITING
        if not is_read:
            self._linger()
        again = exchange.keep and is_read
        self._allow(self.server.bounds.idle_s or math.inf)
        return again

    def _hand_over(self, taken: TakeOver, reader: io.BufferedReader, source: SocketSource) -> None:
        """Pass the connection to the application, unless bytes after the request were read: they cannot be put back."""
        source.dry = True
        if reader.peek(1):
            self._refuse(BadRequest(400, "Send nothing after the request until it is answered."))
            return
        self.until = math.inf
        self.sock.settimeout(None)
        self.server.forget(self)
        with failures.keep_running(LOG, "Application that took over a connection failed"), \
                contextlib.suppress(ConnectionError, TimeoutError, ssl.SSLError):
            taken.work(self.sock)

    def _environ(self, head: http_request.Head, body: http_request.BodyStream) -> WSGIEnvironment:
        """Return the WSGI environment."""
        path, _, query = head.target.partition("?")
        host, port = self.sock.getsockname()[:2]
        environ: WSGIEnvironment = {
            "REQUEST_METHOD": head.method, "RAW_URI": head.target, "SCRIPT_NAME": "", "QUERY_STRING": query,
            "SERVER_PROTOCOL": head.protocol,
            "PATH_INFO": urllib.parse.unquote_to_bytes(path).decode("latin-1"), "SERVER_NAME": str(host),
            "SERVER_PORT": str(port), "REMOTE_ADDR": str(self.peer[0]), "wsgi.version": (1, 0),
            "wsgi.url_scheme": "https" if self.secure else "http", "wsgi.errors": sys.stderr,
            "wsgi.input": body,
            "wsgi.input_terminated": isinstance(body, http_request.ChunkStream),
            "wsgi.multithread": True, "wsgi.multiprocess": True, "wsgi.run_once": False, **head.headers}
        for name in ("CONTENT_TYPE", "CONTENT_LENGTH"):
            if f"HTTP_{name}" in environ:
                environ[name] = environ.pop(f"HTTP_{name}")
        return environ

    def _continue(self) -> None:
        self.sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _refuse(self, error: BadRequest) -> None:
        request_id = context.new_request_id()
        LOG.debug("Request %s from %s refused: %s", request_id, self.peer[0], error.reason)
        text = f"{error.status} {responses[error.status]}\n\n{error.reason}\n".encode()
        named = "".join(f"{name}: {value}\r\n" for name, value in ids(request_id))
        self.sock.sendall(f"HTTP/1.1 {error.status} {responses[error.status]}\r\nContent-Type: text/plain\r\n{named}"
                          f"Content-Length: {len(text)}\r\nConnection: close\r\n\r\n".encode() + text)
        self.stage = Stage.WAITING
        self._linger()

    def _linger(self) -> None:
        """Read and drop input that is still arriving: closing a socket with unread input would discard the response."""
        self._shut(socket.SHUT_WR)
        deadline = time.monotonic() + LINGER_S
        self.sock.settimeout(LINGER_S)
        while not self.server.closing and time.monotonic() < deadline and self.sock.recv(65536):
            pass


class _Turn:
    """The application's work on a request: it holds one of the server's slots, and its connection is not closed."""

    def __init__(self, connection: ClientConnection, environ: WSGIEnvironment) -> None:
        self._connection, self._environ = connection, environ

    def __enter__(self) -> None:
        self._connection.stage = Stage.WORKING
        self._connection.server.slots.acquire()

    def __exit__(self, *_: object) -> None:
        self._connection.server.slots.release()
        self._connection.holder = self._environ.get(HOLDER) or self._connection.holder
        self._connection.stage = Stage.SENDING


def _goes_on(head: http_request.Head) -> bool:
    """Return whether the client wants to send another request."""
    connection = head.headers.get("HTTP_CONNECTION", "").lower()
    return "close" not in connection if head.protocol == "HTTP/1.1" else "keep-alive" in connection
