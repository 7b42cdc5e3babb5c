"""The door of a console proxy: a token is shown, and what it opens is reached - or words say why not.

In the contract's order, and each failure ends it before anything is connected: token, what it opens, origin, limits;
then the host, its security, and the bytes. No token is ever in a log or an exception's text.
"""

from __future__ import annotations

import contextlib
import logging
import math
import time
import urllib.parse
from collections.abc import Callable, Sequence
from http.cookies import CookieError, SimpleCookie
from typing import Any, NamedTuple

from nova import errors
from nova.console import origins, relay, rfb, stream, target, tokens, websocket
from nova.console.kinds import Kind
from nova.console.masking import masked
from nova.console.record import recorded
from nova.console.sessions import Full, Session, Sessions
from nova.model.consoles import ConsoleConnection, TokenCheck, token_hash

LOG = logging.getLogger(__name__)

MAX_TOKEN = 255  # letters; ours have 36
HOST_FAILED = 1011

NO_TOKEN = "There is no token in this address. Ask the cloud for the console's address, and open that whole."
MALFORMED = "The token in this address is malformed. Was the address copied whole?"
NOT_NOW = "Whether this console's address is good can not be checked now. Try again in a moment."


class Refused(Exception):
    """A console does not open: an HTTP status and words for its user."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(status, words)
        self.status, self.words = status, words


class Settings(NamedTuple):
    """What the gate reads of the configuration."""

    reach: target.Reach = target.Reach()
    security: rfb.Security = rfb.Security()
    allowed_origins: Sequence[str] = ()
    idle_s: float = 3600
    total_s: float = 0
    until_expiry: bool = False  # [consoleauth]enforce_session_timeout
    record: str = ""  # prefix of files


class Steps(NamedTuple):
    """What is done when a console opens; others in tests."""

    connect: Callable[..., Any] = target.connect
    secure: Callable[..., Any] = rfb.secure
    carry: Callable[..., relay.Ending] = relay.carry
    accept: Callable[..., Any] = websocket.BrowserSocket.accept  # (socket, environ) -> the user's side


class Admission(NamedTuple):
    grant: ConsoleConnection
    token_hash: str


def token_of(environ: dict[str, Any]) -> str:
    """The token that a request (a WSGI environment) shows; empty: none. Refused: it can be none of ours.

    In the query; else in the query of noVNC's ``path``, which is the WebSocket's address in a page's; else in a cookie.
    """
    token = _in_query(environ.get("QUERY_STRING", "")) or _in_cookies(environ.get("HTTP_COOKIE", ""))
    if len(token) > MAX_TOKEN or not (token.isascii() and token.isprintable()):
        raise Refused(404, MALFORMED)
    return token


def _in_query(query: str) -> str:
    try:
        named = urllib.parse.parse_qs(query, max_num_fields=100)
    except ValueError:
        return ""
    if named.get("token"):
        return named["token"][0]
    path = named.get("path", [""])[0]
    return _in_query(path.partition("?")[2]) if "?" in path else ""


def _in_cookies(header: str) -> str:
    """Each cookie by itself: a malformed one of another application's hides none."""
    for part in header.split(";"):
        name, _, _ = part.partition("=")
        if name.strip() == "token":
            with contextlib.suppress(CookieError):
                cookie = SimpleCookie(part)
                if "token" in cookie:
                    return urllib.parse.unquote(cookie["token"].value)
    return ""


class Gate:
    """Checks for one kind of proxy. ``auth``: a client of ConsoleAuthRPC."""

    def __init__(self, kind: Kind, auth: Any, sessions: Sessions, settings: Settings,
                 steps: Steps | None = None) -> None:
        self.kind, self.auth, self.sessions, self.settings = kind, auth, sessions, settings
        self.steps = steps or Steps()

    def look(self, token: str) -> ConsoleConnection:
        """What a token opens, unused. Refused."""
        return self._checked(token_hash(token), redeem=False)

    def admit(self, environ: dict[str, Any]) -> Admission:
        """Check a request for a WebSocket, and use its token up where tokens serve once. Refused."""
        token = token_of(environ)
        if not token:
            raise Refused(403, NO_TOKEN)
        hashed = token_hash(token)
        grant = self._checked(hashed, redeem=True)
        if words := origins.refusal(environ, grant.address.access_url_base, self.settings.allowed_origins):
            LOG.warning("A request with Origin %s and Host %s was refused (token %s): %s",
                        masked(environ.get("HTTP_ORIGIN", "")), masked(environ.get("HTTP_HOST", "")),
                        tokens.short(hashed), words)
            raise Refused(403, words)
        return Admission(grant, hashed)

    def _checked(self, hashed: str, redeem: bool) -> ConsoleConnection:
        try:
            grant: ConsoleConnection = self.auth.check_token(
                TokenCheck(token_hash=hashed, types=self.kind.types, redeem=redeem))
        except errors.Conflict as error:  # used up: but a page's further channels belong to its first one
            known = self.sessions.known(hashed) if self.kind.channels > 1 and redeem else None
            if known is None:
                raise Refused(403, error.message) from None
            return known
        except (errors.NotFound, errors.Invalid) as error:
            raise Refused(error.status if error.status == 404 else 403, error.message) from None
        except errors.NovaError as error:
            LOG.warning("A console's token could not be checked (token %s): %s", tokens.short(hashed), error.message)
            raise Refused(503, error.message if error.code.startswith("console.") else NOT_NOW) from None
        if grant.type not in self.kind.types:  # whoever answered: this proxy serves no others
            raise Refused(403, "This address is for another kind of console.")
        return grant

    def serve(self, sock: Any, environ: dict[str, Any], admission: Admission) -> None:
        """Make the connection a WebSocket and carry its console to the end. Closes it with a code and words."""
        try:
            front = self.steps.accept(sock, environ)
        except (OSError, stream.TooSlow):
            return  # the client has gone
        control = relay.Control()
        session = Session(admission.grant, admission.token_hash, control)
        try:
            self.sessions.enter(session)
        except Full as full:
            LOG.warning("A console was not opened (token %s): %s", tokens.short(admission.token_hash), full.words,
                        extra={"server": admission.grant.server_uuid})
            front.close(full.code, full.words)
            return
        ending = relay.Ending(HOST_FAILED, "The console failed.")
        try:
            ending = self._carry(front, session)
        except Exception:
            LOG.exception("A console failed", extra={"server": admission.grant.server_uuid})
        finally:
            front.close(ending.code, ending.words)
            left = self.sessions.leave(session)
            LOG.info("A console of user %s was closed after %.0f s (%d: %s); %d open", admission.grant.user_id,
                     time.monotonic() - session.began, ending.code, ending.words, left,
                     extra={"server": admission.grant.server_uuid})

    def _carry(self, front: Any, session: Session) -> relay.Ending:
        grant = session.grant
        with contextlib.ExitStack() as stack:
            try:
                back = stack.enter_context(contextlib.closing(self.steps.connect(grant.address, self.settings.reach)))
                if self.kind.secures:
                    back = self.steps.secure(front, back, self.settings.security)
            except target.TargetError as error:
                LOG.warning("A console can not be reached: %s", error.detail, extra={"server": grant.server_uuid})
                return relay.Ending(HOST_FAILED, error.words)
            if self.settings.record:
                back = stack.enter_context(recorded(back, self.settings.record, grant.server_uuid))
            return self.steps.carry(front, back, self._times(grant), session.control)

    def _times(self, grant: ConsoleConnection) -> relay.Times:
        """An address that is no longer good ends its session only where that is asked for."""
        total = self.settings.total_s or math.inf
        if self.settings.until_expiry:
            total = min(total, max(1.0, grant.expires_at - time.time()))
        return relay.Times(idle_s=self.settings.idle_s, total_s=0 if total == math.inf else total)
