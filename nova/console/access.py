"""Admission at a console proxy: checks a token, connects to its console, or refuses with a message.

The checks run in the contract's order, and the first failure ends the request before anything is connected: token, its
console, origin, limits. Then the proxy connects to the host, checks the token again, which uses it up, negotiates
security, and relays the bytes. No token is ever in a log or an exception's text.
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
from typing import NamedTuple
from wsgiref.types import WSGIEnvironment

from nova import concurrency, errors, failures
from nova.console import codes, origins, relay, rfb, stream, target, tokens, websocket
from nova.console.kinds import ConsoleKind
from nova.console.masking import masked
from nova.console.recording import recorded
from nova.console.sessions import Full, Session, Sessions
from nova.model.guest.consoles import ConsoleConnection, TokenCheck, token_hash
from nova.rpc.contracts.console_check import ConsoleCheckRPC

LOG = logging.getLogger(__name__)

MAX_TOKEN = 255  # characters; nova's tokens have 36

NO_TOKEN = "This address has no token. Get the console's address from the cloud, and open the complete address."
MALFORMED = "The token in this address is malformed. Check that the address was copied completely."
NOT_NOW = "The address of this console cannot be checked now. Try again in a moment."
STOPPING = "This console proxy is being restarted. Try again in a moment."
MOVED = "The server's console has moved. Get a new address."


class ConsoleRefused(Exception):
    """Refusal to open a console: an HTTP status, and a message for its user."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(status, words)
        self.status, self.words = status, words


class UsedUp(ConsoleRefused):
    """The token is valid once, and was used already."""


class AccessSettings(NamedTuple):
    """The configuration of admission."""

    reach: target.Reach = target.Reach()
    security: rfb.Security = rfb.Security()
    allowed_origins: Sequence[str] = ()
    idle_s: float = 3600
    total_s: float = 0
    until_expiry: bool = False  # [consoleauth]enforce_session_timeout
    record: str = ""  # prefix of files


class Steps(NamedTuple):
    """The steps to open a console; tests replace them."""

    connect: Callable[..., stream.StreamEnd] = target.connect
    secure: Callable[..., stream.StreamEnd] = rfb.secure
    carry: Callable[..., relay.Ending] = relay.carry
    accept: Callable[..., stream.StreamEnd] = websocket.BrowserSocket.accept  # (socket, environ) -> the browser's side


class ConsoleAdmission(NamedTuple):
    grant: ConsoleConnection
    token_hash: str


def token_of(environ: WSGIEnvironment) -> str:
    """Return the token of a request (a WSGI environment); empty: it has none. Raises Refused if it cannot be a token of
    nova.

    The token is in the query; else in the query of noVNC's ``path``, which a page uses as the WebSocket's address;
    else in a cookie.
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
    with contextlib.suppress(ValueError):
        return urllib.parse.parse_qs(query, max_num_fields=100)
    return {}


def _in_cookies(header: str) -> str:
    """Return the token in a cookie. Each cookie is parsed separately, so a malformed one of another application hides
    none."""
    for part in header.split(";"):
        name, _, _ = part.partition("=")
        if name.strip() == "token":
            with contextlib.suppress(CookieError):
                cookie = SimpleCookie(part)
                if "token" in cookie:
                    return urllib.parse.unquote(cookie["token"].value)
    return ""


class ConsoleAccess:
    """Admission for one kind of proxy. ``auth``: a client of ConsoleAuthRPC."""

    def __init__(self, kind: ConsoleKind, auth: ConsoleCheckRPC, sessions: Sessions, settings: AccessSettings,
                            steps: Steps | None = None) -> None:
        self.kind, self.auth, self.sessions, self.settings = kind, auth, sessions, settings
        self.steps = steps or Steps()

    def look(self, token: str) -> ConsoleConnection:
        """Return the console of a token, without using it up. Raises Refused."""
        return self._checked(token_hash(token), redeem=False)

    def admit(self, environ: WSGIEnvironment) -> ConsoleAdmission:
        """Check a request for a connection. Its token is used up only after the connection is open. Raises Refused."""
        if self.sessions.draining:
            raise ConsoleRefused(503, STOPPING)
        token = token_of(environ)
        if not token:
            raise ConsoleRefused(403, NO_TOKEN)
        hashed = token_hash(token)
        grant = self._joined(hashed, redeem=False)
        if words := origins.refusal(environ, grant.address.access_url_base, self.settings.allowed_origins):
            LOG.warning("Refused a request with Origin %s and Host %s (token %s): %s",
                        masked(environ.get("HTTP_ORIGIN", "")), masked(environ.get("HTTP_HOST", "")),
                        tokens.short(hashed), words)
            raise ConsoleRefused(403, words)
        return ConsoleAdmission(grant, hashed)

    def _joined(self, hashed: str, redeem: bool) -> ConsoleConnection:
        """Check a token for a connection. Further channels of a page belong to its first one, which used the token
        up."""
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
            LOG.warning("Cannot check a console token (token %s): %s", tokens.short(hashed), error.message)
            raise ConsoleRefused(503, error.message if error.code.startswith("console.") else NOT_NOW) from None
        if grant.type not in self.kind.types:  # for any answer: this proxy serves no other types
            raise ConsoleRefused(403, "This address is for another kind of console.")
        return grant

    def serve(self, sock: object, environ: WSGIEnvironment, admission: ConsoleAdmission) -> None:
        """Upgrade the connection to a WebSocket and relay its console until the end. Closes it with a code and a
        message."""
        try:
            front = self.steps.accept(sock, environ)
        except (OSError, stream.TooSlow):
            return  # the client has disconnected
        session = Session(admission.grant, admission.token_hash, relay.Control())
        try:
            self.sessions.enter(session)
        except Full as full:
            LOG.warning("Refused a console session (token %s): %s", tokens.short(admission.token_hash), full.words,
                        extra={"server": admission.grant.server_uuid})
            front.close(full.code, full.words)
            return
        ending = relay.Ending(codes.BACK_END, "The console failed.")
        try:
            with failures.keep_running(LOG, "Console session failed", extra={"server": admission.grant.server_uuid}):
                ending = self._carry(front, session)
        finally:
            front.close(ending.code, ending.words)
            left = self.sessions.leave(session)
            LOG.info("Console session of user %s closed after %.0f s (%d: %s); %d open",
                     admission.grant.user_id, time.monotonic() - session.began, ending.code, ending.words, left,
                     extra={"server": admission.grant.server_uuid})

    def _carry(self, front: stream.StreamEnd, session: Session) -> relay.Ending:
        with contextlib.ExitStack() as stack:
            try:
                back = self._opened(front, session, stack)
            except (target.TargetError, rfb.ViewerError, ConsoleRefused) as error:
                return session.control.ending or _ending(error, session)  # the proxy itself may have ended the session
            finally:
                session.control.meanwhile(None)
            if session.control.ending is not None:
                return session.control.ending
            LOG.info("Console session opened for user %s; %d connections open", session.grant.user_id,
                     len(self.sessions), extra={"server": session.grant.server_uuid})
            if self.settings.record:
                back = stack.enter_context(recorded(back, self.settings.record, session.grant.server_uuid))
            return self.steps.carry(front, back, self._times(session.grant), session.control)

    def _opened(self, front: stream.StreamEnd, session: Session, stack: contextlib.ExitStack
                ) -> stream.StreamEnd:
        """Return the console's side, which ``stack`` closes; it is only connected if the session must end already.
        Raises TargetError, ViewerError and Refused.

        The token is checked a second time when the connection is open, before any data are sent on it. So a token is
        used up only by a console that exists, and a port that belongs to another guest meanwhile is not shown.
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
        """Return the session's time limits. An expired address ends its session only if the configuration requires
        it."""
        total = self.settings.total_s or math.inf
        if self.settings.until_expiry:
            total = min(total, max(1.0, grant.expires_at - time.time()))
        return relay.Times(idle_s=self.settings.idle_s, total_s=0 if total == math.inf else total)


def _ending(error: target.TargetError | rfb.ViewerError | ConsoleRefused, session: Session) -> relay.Ending:
    """Return the ending of a session that could not be opened, after logging its cause for the operator."""
    server = {"server": session.grant.server_uuid}
    if isinstance(error, target.TargetError):
        LOG.warning("Cannot reach a console: %s", error.detail, extra=server)
        return relay.Ending(codes.BACK_END, error.words)
    if isinstance(error, rfb.ViewerError):
        LOG.info("A viewer failed before its console was reached: %s", error.words, extra=server)
        return relay.Ending(error.code, error.words)
    LOG.info("A token became invalid before its console was reached (token %s): %s", tokens.short(session.token_hash),
             error.words, extra=server)
    return relay.Ending(codes.BACK_END if error.status == 503 else codes.REFUSED, error.words)


def _say(front: stream.StreamEnd, ending: relay.Ending) -> None:
    """Close the user's side immediately, while the session's thread, which does not use this side now, still waits."""
    concurrency.spawn(front.close, ending.code, ending.words, name="console-close")


def _break(back: stream.StreamEnd, _ending: relay.Ending) -> None:
    """Wake the session's thread while it waits for the console."""
    with contextlib.suppress(OSError):
        back.sock.shutdown(socket.SHUT_RDWR)
