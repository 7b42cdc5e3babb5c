"""The door of a console proxy: a token is shown, and what it opens is reached - or words say why not.

In the contract's order, and each failure ends it before anything is connected: token, what it opens, origin, limits;
then the host, the token once more, which uses it up, security, and the bytes. No token is ever in a log or an
exception's text.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import socket
import time
import urllib.parse
from collections.abc import Callable, Sequence
from http.cookies import CookieError, SimpleCookie
from typing import Any, NamedTuple
from wsgiref.types import WSGIEnvironment

from nova import concurrency, errors
from nova.console import codes, origins, relay, rfb, stream, target, tokens, websocket
from nova.console.kinds import ConsoleKind
from nova.console.masking import masked
from nova.console.recording import recorded
from nova.console.sessions import Full, Session, Sessions
from nova.model.base import Json
from nova.model.guest.consoles import ConsoleConnection, TokenCheck, token_hash

LOG = logging.getLogger(__name__)

MAX_TOKEN = 255  # letters; ours have 36

NO_TOKEN = "There is no token in this address. Ask the cloud for the console's address, and open that whole."
MALFORMED = "The token in this address is malformed. Was the address copied whole?"
NOT_NOW = "Whether this console's address is good cannot be checked now. Try again in a moment."
STOPPING = "This console proxy is being restarted. Try again in a moment."
MOVED = "The server's console has moved meanwhile. Ask for a new address."


class ConsoleRefused(Exception):
    """A console does not open: an HTTP status and words for its user."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(status, words)
        self.status, self.words = status, words


class UsedUp(ConsoleRefused):
    """The token serves once, and has."""


class GateSettings(NamedTuple):
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


class ConsoleAdmission(NamedTuple):
    grant: ConsoleConnection
    token_hash: str


def token_of(environ: WSGIEnvironment) -> str:
    """The token that a request (a WSGI environment) shows; empty: none. Refused: it can be none of ours.

    In the query; else in the query of noVNC's ``path``, which is the WebSocket's address in a page's; else in a cookie.
    """
    token = _in_query(environ.get("QUERY_STRING", "")) or _in_cookies(environ.get("HTTP_COOKIE", ""))
    if len(token) > MAX_TOKEN or not (token.isascii() and token.isprintable()):
        raise ConsoleRefused(404, MALFORMED)
    return token


def _in_query(query: str) -> str:
    named = _parsed(query)
    if "token" not in named:
        named = _parsed(named.get("path", [""])[0].partition("?")[2])
    return named.get("token", [""])[0]


def _parsed(query: str) -> dict[str, list[str]]:
    try:
        return urllib.parse.parse_qs(query, max_num_fields=100)
    except ValueError:
        return {}


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


class ConsoleGate:
    """Checks for one kind of proxy. ``auth``: a client of ConsoleAuthRPC."""

    def __init__(self, kind: ConsoleKind, auth: Json, sessions: Sessions, settings: GateSettings,
                            steps: Steps | None = None) -> None:
        self.kind, self.auth, self.sessions, self.settings = kind, auth, sessions, settings
        self.steps = steps or Steps()

    def look(self, token: str) -> ConsoleConnection:
        """What a token opens, unused. Refused."""
        return self._checked(token_hash(token), redeem=False)

    def admit(self, environ: WSGIEnvironment) -> ConsoleAdmission:
        """Check a request for a connection. Its token is not used up before the connection stands. Refused."""
        if self.sessions.draining:
            raise ConsoleRefused(503, STOPPING)
        token = token_of(environ)
        if not token:
            raise ConsoleRefused(403, NO_TOKEN)
        hashed = token_hash(token)
        grant = self._joined(hashed, redeem=False)
        if words := origins.refusal(environ, grant.address.access_url_base, self.settings.allowed_origins):
            LOG.warning("A request with Origin %s and Host %s was refused (token %s): %s",
                        masked(environ.get("HTTP_ORIGIN", "")), masked(environ.get("HTTP_HOST", "")),
                        tokens.short(hashed), words)
            raise ConsoleRefused(403, words)
        return ConsoleAdmission(grant, hashed)

    def _joined(self, hashed: str, redeem: bool) -> ConsoleConnection:
        """The same for a connection: a page's further channels belong to its first one, which used the token up."""
        try:
            return self._checked(hashed, redeem)
        except UsedUp:
            known = self.sessions.known(hashed) if self.kind.channels > 1 else None
            if known is None:
                raise
            return known

    def _checked(self, hashed: str, redeem: bool) -> ConsoleConnection:
        try:
            grant: ConsoleConnection = self.auth.check_token(
                TokenCheck(token_hash=hashed, types=self.kind.types, redeem=redeem))
        except errors.Conflict as error:
            raise UsedUp(403, error.message) from None
        except (errors.NotFound, errors.Invalid) as error:
            raise ConsoleRefused(error.status if error.status == 404 else 403, error.message) from None
        except errors.NovaError as error:
            LOG.warning("A console's token could not be checked (token %s): %s", tokens.short(hashed), error.message)
            raise ConsoleRefused(503, error.message if error.code.startswith("console.") else NOT_NOW) from None
        if grant.type not in self.kind.types:  # whoever answered: this proxy serves no others
            raise ConsoleRefused(403, "This address is for another kind of console.")
        return grant

    def serve(self, sock: object, environ: WSGIEnvironment, admission: ConsoleAdmission) -> None:
        """Make the connection a WebSocket and carry its console to the end. Closes it with a code and words."""
        try:
            front = self.steps.accept(sock, environ)
        except (OSError, stream.TooSlow):
            return  # the client has gone
        session = Session(admission.grant, admission.token_hash, relay.Control())
        try:
            self.sessions.enter(session)
        except Full as full:
            LOG.warning("A console was not opened (token %s): %s", tokens.short(admission.token_hash), full.words,
                        extra={"server": admission.grant.server_uuid})
            front.close(full.code, full.words)
            return
        ending = relay.Ending(codes.BACK_END, "The console failed.")
        try:
            ending = self._carry(front, session)
        except Exception:
            LOG.exception("A console failed", extra={"server": admission.grant.server_uuid})
        finally:
            front.close(ending.code, ending.words)
            left = self.sessions.leave(session)
            LOG.info("A connection of user %s to a console was closed after %.0f s (%d: %s); %d open",
                     admission.grant.user_id, time.monotonic() - session.began, ending.code, ending.words, left,
                     extra={"server": admission.grant.server_uuid})

    def _carry(self, front: Json, session: Session) -> relay.Ending:
        with contextlib.ExitStack() as stack:
            try:
                back = self._opened(front, session, stack)
            except (target.TargetError, rfb.ViewerError, ConsoleRefused) as error:
                return session.control.ending or _ending(error, session)  # it may be we who broke it off
            finally:
                session.control.meanwhile(None)
            if session.control.ending is not None:
                return session.control.ending
            LOG.info("A console was opened for user %s; %d connections open", session.grant.user_id,
                     len(self.sessions), extra={"server": session.grant.server_uuid})
            if self.settings.record:
                back = stack.enter_context(recorded(back, self.settings.record, session.grant.server_uuid))
            return self.steps.carry(front, back, self._times(session.grant), session.control)

    def _opened(self, front: Json, session: Session, stack: contextlib.ExitStack) -> Json:
        """The console's side, closed with ``stack``; half open where the session shall end already. TargetError,
        ViewerError, Refused.

        What the token opens is asked for a second time when the connection stands, and before anything is said on it: a
        token is used up by a console that is there, and a port that went to another guest meanwhile is not shown.
        """
        control = session.control
        control.meanwhile(functools.partial(_say, front))
        reach = self.settings.reach.of(session.grant.host)
        back = stack.enter_context(contextlib.closing(self.steps.connect(session.grant.address, reach)))
        if control.ending is None:
            grant = self._joined(session.token_hash, redeem=True)
            if (grant.server_uuid, grant.address) != (session.grant.server_uuid, session.grant.address):
                raise ConsoleRefused(403, MOVED)
            session.redeemed = True
        control.meanwhile(functools.partial(_break, back))
        if self.kind.secures and control.ending is None:
            security = self.settings.security.of(session.grant.address.host, session.grant.host)
            back = self.steps.secure(front, back, security)
            stack.callback(back.close)
        return back

    def _times(self, grant: ConsoleConnection) -> relay.Times:
        """An address that is no longer good ends its session only where that is asked for."""
        total = self.settings.total_s or math.inf
        if self.settings.until_expiry:
            total = min(total, max(1.0, grant.expires_at - time.time()))
        return relay.Times(idle_s=self.settings.idle_s, total_s=0 if total == math.inf else total)


def _ending(error: target.TargetError | rfb.ViewerError | ConsoleRefused, session: Session) -> relay.Ending:
    """Of a session that did not come to be; logged as what it is to the operator."""
    server = {"server": session.grant.server_uuid}
    if isinstance(error, target.TargetError):
        LOG.warning("A console cannot be reached: %s", error.detail, extra=server)
        return relay.Ending(codes.BACK_END, error.words)
    if isinstance(error, rfb.ViewerError):
        LOG.info("A viewer did not get as far as its console: %s", error.words, extra=server)
        return relay.Ending(error.code, error.words)
    LOG.info("A token was no longer good when its console was reached (token %s): %s", tokens.short(session.token_hash),
             error.words, extra=server)
    return relay.Ending(codes.BACK_END if error.status == 503 else codes.REFUSED, error.words)


def _say(front: Json, ending: relay.Ending) -> None:
    """The user learns it at once, whatever the session's thread waits for; it does not use this side meanwhile."""
    concurrency.spawn(front.close, ending.code, ending.words, name="console-close")


def _break(back: Json, _ending: relay.Ending) -> None:
    """Wake the session's thread that waits for the console."""
    with contextlib.suppress(OSError):
        back.sock.shutdown(socket.SHUT_RDWR)
