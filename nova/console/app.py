"""What a console proxy answers: pages, their files, words when a token is not good - and WebSockets, handed over."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable
from http.client import responses
from typing import NamedTuple
from wsgiref.types import StartResponse, WSGIEnvironment

from nova.console import paper, websocket
from nova.console.gate import NO_TOKEN, ConsoleGate, ConsoleRefused, token_of
from nova.console.installed import ProxyPages
from nova.console.masking import masked
from nova.console.paper import OWN
from nova.http_server import TakeOver

LOG = logging.getLogger(__name__)

MAX_PAGE = 1 << 20  # bytes of an entry page
REASON = "X-Console-Refused"  # the header that says why a WebSocket is not opened
PLAIN, HTML = "text/plain; charset=utf-8", "text/html; charset=utf-8"

#: The token in an address goes to nobody else by a Referer. Who may embed the pages is not said: dashboards do, and
#: who could lure a user into a frame of his needs the token, which is all that a console asks for.
EVERYWHERE = (("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"))
SECRET = ("Cache-Control", "no-store")
CHECKED = ("Cache-Control", "no-cache")  # may be kept, and is asked for again
OURS = ("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; font-src 'self'; connect-src 'self' ws: wss:; base-uri 'none'; form-action 'none'")


class PageAnswer(NamedTuple):
    status: int
    type: str
    content: Iterable[bytes]
    headers: tuple[tuple[str, str], ...] = ()


def wants_plain(environ: WSGIEnvironment) -> bool:
    """Whether the client wants words as plain text: it accepts that, and no HTML."""
    accepted = environ.get("HTTP_ACCEPT", "")
    return "text/plain" in accepted and "text/html" not in accepted


class App:
    """The WSGI application of one proxy."""

    def __init__(self, gate: ConsoleGate, pages: ProxyPages) -> None:
        self.gate, self.pages, self.kind = gate, pages, gate.kind
        self.words = paper.Words(gate.kind)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes] | TakeOver:
        if websocket.wanted(environ):
            answer = self._websocket(environ)
            if isinstance(answer, TakeOver):
                return answer
        else:
            answer = self._page(environ)
        LOG.log(_level(environ, answer.status), '%s "%s %s" %d', environ.get("REMOTE_ADDR"), environ["REQUEST_METHOD"],
                masked(environ["PATH_INFO"]), answer.status)
        headers = [("Content-Type", answer.type), *EVERYWHERE, *answer.headers]
        start_response(f"{answer.status} {responses[answer.status]}", headers)
        return answer.content

    # -- WebSockets

    def _websocket(self, environ: WSGIEnvironment) -> TakeOver | PageAnswer:
        try:
            websocket.check(environ)
            admission = self.gate.admit(environ)
        except websocket.BadHandshake as bad:
            return _refusal(400, bad.words)
        except ConsoleRefused as refused:
            return _refusal(503 if refused.status == 503 else 403, refused.words)
        return TakeOver(lambda sock: self.gate.serve(sock, environ, admission))

    # -- pages and files

    def _page(self, environ: WSGIEnvironment) -> PageAnswer:
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return _text(405, "Only GET and HEAD are answered here.", ("Allow", "GET, HEAD"))
        full = environ["PATH_INFO"]
        if full.startswith("//") or "\\" in full:  # a browser would take it for another host (CVE-2021-3654)
            return _text(400, "The address is malformed.")
        path = full.removeprefix("/")
        if path.startswith(OWN):
            return self._own(environ, path.removeprefix(OWN))
        if self._is_entry(environ, path):
            return self._entry(environ, path)
        if not path:
            return self._say(environ, 200, NO_TOKEN)
        return self._file(environ, path)

    def _is_entry(self, environ: WSGIEnvironment, path: str) -> bool:
        """Pages at which users arrive: the known ones, and an operator's own when a token comes with it."""
        if not self.kind.web:
            return path in ("", "serial.html")
        return path in self.kind.entries or (path.endswith(".html") and "token" in environ.get("QUERY_STRING", ""))

    def _entry(self, environ: WSGIEnvironment, path: str) -> PageAnswer:
        """The page at which a user arrives, with the token: a bad one is answered in words at once."""
        try:
            token = token_of(environ)
            if not token:
                return self._say(environ, 200, NO_TOKEN)  # deployment tools ask for this page to see that we are well
            self.gate.look(token)
        except ConsoleRefused as refused:
            return self._say(environ, refused.status, refused.words)
        if wants_plain(environ):
            return _text(200, "This console can be opened.")
        if self.pages.page is not None:
            return PageAnswer(200, HTML, [self.pages.page], (SECRET, OURS))
        if self.pages.files is None:
            return self._say(environ, 503, f"The page of this console is not installed on its proxy: "
                                           f"{self.pages.lacks}.")
        found = self.pages.files.find(path)
        if found is None:
            return self._say(environ, 404, "The pages of this proxy are not installed whole.")
        page = b"".join(found.parts())[:MAX_PAGE]
        return PageAnswer(200, HTML, [paper.with_session(page, path.count("/"))], (SECRET,))

    def _own(self, environ: WSGIEnvironment, name: str) -> PageAnswer:
        asset = self.pages.own.get(name)
        if asset is None:
            return self._say(environ, 404, "There is no such file.")
        headers = (("ETag", asset.etag), CHECKED)
        if environ.get("HTTP_IF_NONE_MATCH") == asset.etag:
            return PageAnswer(304, asset.type, [], headers)
        return PageAnswer(200, asset.type, [asset.content], headers)

    def _file(self, environ: WSGIEnvironment, path: str) -> PageAnswer:
        found = self.pages.files.find(path) if self.pages.files is not None else None
        if found is None:
            return self._say(environ, 404, "There is no such file.")
        headers = (("ETag", found.etag), ("Last-Modified", found.modified), CHECKED)
        if found.unchanged(environ.get("HTTP_IF_NONE_MATCH"), environ.get("HTTP_IF_MODIFIED_SINCE")):
            found.close()
            return PageAnswer(304, found.type, [], headers)
        length = ("Content-Length", str(found.size))
        if environ["REQUEST_METHOD"] == "HEAD":
            found.close()
            return PageAnswer(200, found.type, [], (*headers, length))
        return PageAnswer(200, found.type, found.parts(), (*headers, length))

    def _say(self, environ: WSGIEnvironment, status: int, words: str) -> PageAnswer:
        if wants_plain(environ):
            return _text(status, words)
        return PageAnswer(status, HTML, [self.words.page(status, words)], (SECRET, OURS))


def _level(environ: WSGIEnvironment, status: int) -> int:
    """What strangers ask for that there is not is no news; what becomes of a token is."""
    if status in (200, 304):
        return logging.DEBUG
    with contextlib.suppress(ConsoleRefused):  # a malformed one
        return logging.DEBUG if 400 <= status < 500 and not token_of(environ) else logging.INFO
    return logging.INFO


def _text(status: int, words: str, *headers: tuple[str, str]) -> PageAnswer:
    return PageAnswer(status, PLAIN, [f"{words}\n".encode()], (SECRET, *headers))


def _refusal(status: int, words: str) -> PageAnswer:
    """Of a WebSocket. A browser's script sees none of it: the words are for who tries by hand. And they are in the
    head, for programs exist that take the first bytes behind it for a console's (tempest's test of bad tokens)."""
    return PageAnswer(status, PLAIN, [], (SECRET, ("Connection", "close"), (REASON, words)))
