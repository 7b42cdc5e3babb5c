"""nova-xvpvncproxy: raw VNC for the OpenStack-specific viewer, which is not a browser.

The viewer sends ``GET`` or ``CONNECT /console?token=T``; the response is ``HTTP/1.1 200 OK`` with an empty line, then
unmodified RFB in both directions. Tokens, limits, sessions and timeouts are as for all consoles
(:mod:`nova.console.access`).
"""

from __future__ import annotations

import contextlib
import socket
import time
from http.client import responses
from wsgiref.types import StartResponse, WSGIEnvironment

from nova.console import access, codes, relay
from nova.console.stream import LINGER_S, Closed, Stream, StreamEnd, TooSlow, settle, tune
from nova.http_server import TakeOver

PATH = "/console"
METHODS = ("GET", "CONNECT")
INVALID, NOT_AUTHORIZED = "Invalid Request", "Not Authorized"
UNAVAILABLE = 503
ANSWER_S = 10.0


def answer(status: int, words: str) -> bytes:
    """Return a complete HTTP response in plain text, which closes the connection."""
    body = f"{words}\n".encode()
    return (f"HTTP/1.1 {status} {responses[status]}\r\nContent-Type: text/plain; charset=utf-8\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n").encode() + body


class Viewer(Stream):
    """The viewer's connection. Before the response, a close can still send an HTTP error with the reason."""

    answered = False

    @classmethod
    def accept(cls, sock: socket.socket, _environ: WSGIEnvironment) -> Viewer:
        """Wrap a connection; sends nothing yet."""
        tune(sock)
        return cls(sock)

    def welcome(self) -> None:
        """Send the successful HTTP response. Raises TooSlow, OSError."""
        self.answered = True
        self.say(b"HTTP/1.1 200 OK\r\n\r\n", time.monotonic() + ANSWER_S)

    def close(self, code: int = codes.NORMAL, words: str = "", linger_s: float = LINGER_S) -> None:
        if not self.answered:
            self.answered = True
            deadline = time.monotonic() + linger_s
            with contextlib.suppress(OSError, TooSlow, ValueError):
                refused = code == codes.REFUSED
                self.say(answer(401, NOT_AUTHORIZED) if refused else answer(UNAVAILABLE, words), deadline)
                settle(self.sock, deadline)
        super().close()


def carry(front: Viewer, target: StreamEnd, times: relay.Times, control: relay.Control) -> relay.Ending:
    """Send the successful response to the viewer, then relay the console."""
    try:
        front.welcome()
    except (OSError, TooSlow, Closed):
        return relay.Ending(codes.ABNORMAL, relay.BROWSER_GONE)
    return relay.carry(front, target, times, control)


STEPS = access.Steps(accept=Viewer.accept, carry=carry)


class Application:
    """A WSGI application that takes over the connection of an admitted viewer. ``door``: a gate with :data:`STEPS`."""

    def __init__(self, door: access.ConsoleAccess) -> None:
        self.door = door

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> TakeOver | list[bytes]:
        if environ.get("PATH_INFO") != PATH:
            return _refuse(start_response, 404, "Not Found")
        if environ.get("REQUEST_METHOD") not in METHODS:
            return _refuse(start_response, 405, "Only GET and CONNECT are allowed.")
        try:
            if not access.token_of(environ):
                return _refuse(start_response, 400, INVALID)
            admission = self.door.admit(environ)
        except access.ConsoleRefused as refused:
            if refused.status == UNAVAILABLE:  # the token cannot be checked, or the proxy stops
                return _refuse(start_response, UNAVAILABLE, refused.words)
            return _refuse(start_response, 401, NOT_AUTHORIZED)
        return TakeOver(lambda sock: self.door.serve(sock, environ, admission))


def _refuse(start_response: StartResponse, status: int, words: str) -> list[bytes]:
    start_response(f"{status} {responses[status]}", [("Content-Type", "text/plain; charset=utf-8")])
    return [f"{words}\n".encode()]
