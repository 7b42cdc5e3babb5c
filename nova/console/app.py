"""HTTP responses of a console proxy: pages, their files, messages for invalid tokens, and the handover to
WebSockets."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable
from http.client import responses
from typing import NamedTuple
from wsgiref.types import StartResponse, WSGIEnvironment

from nova.console import own_pages, websocket
from nova.console.access import NO_TOKEN, ConsoleAccess, ConsoleRefused, token_of
from nova.console.installed import ProxyPages
from nova.console.masking import masked
from nova.console.own_pages import OWN
from nova.http_server import TakeOver

LOG = logging.getLogger(__name__)

MAX_PAGE = 1 << 20  # bytes of an entry page
REASON = "X-Console-Refused"  # the response header with the reason why a WebSocket is not opened
PLAIN, HTML = "text/plain; charset=utf-8", "text/html; charset=utf-8"

#: No Referer may carry the token of an address. Framing is not restricted: dashboards embed these pages, and an
#: attacker who frames one needs the token, which is a console's only credential.
EVERYWHERE = (("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"))
SECRET = ("Cache-Control", "no-store")
CHECKED = ("Cache-Control", "no-cache")  # may be stored, and must be revalidated
OURS = ("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; font-src 'self'; connect-src 'self' ws: wss:; base-uri 'none'; form-action 'none'")


class PageAnswer(NamedTuple):
    status: int
    type: str
    content: Iterable[bytes]
    headers: tuple[tuple[str, str], ...] = ()


def wants_plain(environ: WSGIEnvironment) -> bool:
    """Return whether the client wants a message as plain text: it accepts that, and no HTML."""
    accepted = environ.get("HTTP_ACCEPT", "")
    return "text/plain" in accepted and "text/html" not in accepted


class App:
    """The WSGI application of one proxy."""

    def __init__(self, access: ConsoleAccess, pages: ProxyPages) -> None:
        self.access, self.pages, self.kind = access, pages, access.kind
        self.words = own_pages.Words(access.kind)

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
            admission = self.access.admit(environ)
        except websocket.BadHandshake as bad:
            return _refusal(400, bad.words)
        except ConsoleRefused as refused:
            return _refusal(503 if refused.status == 503 else 403, refused.words)
        return TakeOver(lambda sock: self.access.serve(sock, environ, admission))

    # -- pages and files

    def _page(self, environ: WSGIEnvironment) -> PageAnswer:
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return _text(405, "Only GET and HEAD are allowed.", ("Allow", "GET, HEAD"))
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
        """Return whether users enter at this page: a known one, or an operator's own page with a token."""
        if not self.kind.web:
            return path in ("", "serial.html")
        return path in self.kind.entries or (path.endswith(".html") and "token" in environ.get("QUERY_STRING", ""))

    def _entry(self, environ: WSGIEnvironment, path: str) -> PageAnswer:
        """Return the entry page of a user with a token. An invalid token gets a message immediately."""
        try:
            token = token_of(environ)
            if not token:
                return self._say(environ, 200, NO_TOKEN)  # deployment tools request this page as a health check
            self.access.look(token)
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
            return self._say(environ, 404, "The pages of this proxy are not completely installed.")
        page = b"".join(found.parts())[:MAX_PAGE]
        return PageAnswer(200, HTML, [own_pages.with_session(page, path.count("/"))], (SECRET,))

    def _own(self, environ: WSGIEnvironment, name: str) -> PageAnswer:
        asset = self.pages.own.get(name)
        if asset is None:
            return self._say(environ, 404, "No such file.")
        headers = (("ETag", asset.etag), CHECKED)
        if environ.get("HTTP_IF_NONE_MATCH") == asset.etag:
            return PageAnswer(304, asset.type, [], headers)
        return PageAnswer(200, asset.type, [asset.content], headers)

    def _file(self, environ: WSGIEnvironment, path: str) -> PageAnswer:
        found = self.pages.files.find(path) if self.pages.files is not None else None
        if found is None:
            return self._say(environ, 404, "No such file.")
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
    """Return the log level of a response: requests for missing files without a token are DEBUG, results of tokens are
    INFO."""
    if status in (200, 304):
        return logging.DEBUG
    with contextlib.suppress(ConsoleRefused):  # a malformed token
        return logging.DEBUG if 400 <= status < 500 and not token_of(environ) else logging.INFO
    return logging.INFO


def _text(status: int, words: str, *headers: tuple[str, str]) -> PageAnswer:
    return PageAnswer(status, PLAIN, [f"{words}\n".encode()], (SECRET, *headers))


def _refusal(status: int, words: str) -> PageAnswer:
    """Return the refusal of a WebSocket. A browser's script cannot read it: the reason is for manual tests. It is in a
    header, because some programs take the first bytes after the head for the console's (tempest's test of invalid
    tokens)."""
    return PageAnswer(status, PLAIN, [], (SECRET, ("Connection", "close"), (REASON, words)))
