"""Responses of nova's HTTP server: sends an application's response, as a whole or in parts."""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING
from wsgiref.types import StartResponse, WSGIEnvironment

from nova import context, failures

if TYPE_CHECKING:
    from _typeshed import OptExcInfo

LOG = logging.getLogger(__name__)

Slots = contextlib.AbstractContextManager[None]  # held by requests in progress


class TakeOver:
    """Return value of an application, in place of body parts, that takes over the connection.

    ``work`` gets the client's socket (possibly TLS; blocking, without timeout) in the connection's own thread. The
    server sends nothing, and closes the socket afterwards. ``stop`` does not wait for such a connection.
    """

    def __init__(self, work: Callable[[socket.socket], None]) -> None:
        self.work = work


#: A WSGI application, or one that returns a TakeOver.
Application = Callable[[WSGIEnvironment, StartResponse], Iterable[bytes] | TakeOver]


class ClientGone(ConnectionError):
    """Error for a client that does not receive the response."""


class Exchange:
    """Transmission of one response. ``may_keep`` is called when the response begins: whether another request can
    follow."""

    def __init__(self, sock: socket.socket, is_11: bool, is_head: bool, keep: bool,
                 may_keep: Callable[[], bool] = lambda: True) -> None:
        self.sock, self.is_11, self.is_head, self.keep, self._may_keep = sock, is_11, is_head, keep, may_keep
        self.status, self.headers = "", []  # type: str, list[tuple[str, str]]
        self.sent = self.chunked = False

    def start_response(self, status: str, headers: list[tuple[str, str]], exc_info: OptExcInfo | None = None
                       ) -> Callable[[bytes], None]:
        """Set status and headers (WSGI, PEP 3333). They are sent with the first part of the body; before that, a call
        with ``exc_info`` replaces them."""
        if exc_info and exc_info[1] and self.sent:
            raise exc_info[1]
        self.status, self.headers = status, headers
        return lambda data: self._send(data, last=False)

    def run(self, application: Application, environ: WSGIEnvironment, slots: Slots) -> TakeOver | None:
        """Call the application and send its response, or return its TakeOver. A failure before the first byte is a
        plain 500. ``slots``: one is held while the application works, but not while the client receives data, which may
        take long."""
        try:
            with slots:
                content = application(environ, self.start_response)
            if isinstance(content, TakeOver):
                return content
            try:
                self._answer(content, slots)
            finally:
                close = getattr(content, "close", None)
                if close is not None:
                    close()
        except (ConnectionError, TimeoutError):
            raise
        except Exception:  # a bug of the application must not end the worker
            request_id = context.new_request_id()
            LOG.exception("Application failed while answering request %s", request_id)  # a path may contain a secret
            self.keep = False
            if not self.sent:
                self.status = "500 Internal Server Error"
                self.headers = [("Content-Type", "text/plain"), *ids(request_id)]
                self._send(b"500 Internal Server Error\n", last=True)
        return None

    def _answer(self, content: Iterable[bytes], slots: Slots) -> None:
        """Send the response. A generator computes its next part on demand, so that time also counts as the
        application's."""
        if isinstance(content, (list, tuple)):
            self._send(b"".join(content), last=True)
            return
        parts = iter(content)
        while True:
            with slots:
                part = next(parts, None)
            if part is None:
                break
            self._send(part, last=False)
        self._send(b"", last=True)

    def _send(self, data: bytes, last: bool) -> None:
        """Send a part; the head is sent with the first one. Responses of unknown length are chunked, or end the
        connection."""
        head = b""
        if not self.sent:
            head = self._head(len(data) if last else None)
            self.sent = True
        if self.is_head or not self._has_body():
            data = b""
        elif self.chunked:
            data = (b"%x\r\n%s\r\n" % (len(data), data) if data else b"") + (b"0\r\n\r\n" if last else b"")
        if head or data:
            # TLS raises errors of its own for an ended connection
            with failures.replaced(OSError, lambda error: ClientGone(str(error))):
                self.sock.sendall(head + data)

    def _has_body(self) -> bool:
        return not self.status.startswith(("1", "204", "304"))

    def _head(self, length: int | None) -> bytes:
        names = {name.lower() for name, _ in self.headers}
        self.keep = self.keep and self._may_keep()
        if "connection" in names:  # set by an application that refuses further requests of a client
            self.keep = False
            self.headers = [(name, value) for name, value in self.headers if name.lower() != "connection"]
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


def ids(request_id: str) -> list[tuple[str, str]]:
    """Return headers with a request id, for responses of the server itself, so that operators can find them in the
    log."""
    return [("x-openstack-request-id", request_id), ("x-compute-request-id", request_id)]


def _clean(value: str) -> str:
    """Return a header's value without line ends, since it may contain input of a client."""
    return value.replace("\r", " ").replace("\n", " ")
