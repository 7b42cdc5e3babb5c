"""Open console sessions of this process: their number, users and limits, and how other threads end them."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from nova import concurrency, metrics, systemd
from nova.conf.console import ConsoleOptions
from nova.console.codes import ELSEWHERE, GOING_AWAY, POLICY
from nova.console.relay import Control
from nova.model.guest.consoles import ConsoleConnection

LOG = logging.getLogger(__name__)

LAST_WORDS_S = 3.0  # for sessions to end after a request to end

DRAINING = "This console proxy is being restarted. Reconnect in a moment."
OPENED_ELSEWHERE = "This console was opened elsewhere; it has one user at a time."


class Full(Exception):
    """The limit of sessions is reached: a WebSocket's close code, and a message."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(code, words)
        self.code, self.words = code, words


class SessionLimits(NamedTuple):
    """Limits of concurrent sessions; each is a connection, of which a console's page may need several."""

    process: int
    token: int
    server: int
    user: int

    @classmethod
    def of(cls, group: ConsoleOptions, channels: int = 1) -> SessionLimits:
        """Return the limits of ``[console]``, for consoles with so many connections each."""
        return cls(group.max_sessions * channels, group.max_sessions_per_token * channels,
                   group.max_sessions_per_server * channels, group.max_sessions_per_user * channels)


class Session:
    """An open connection to a console. ``control``: lets another thread end it (``end(code, words)``; ``ending`` is
    None until then). ``redeemed``: its token was checked again for this session."""

    def __init__(self, grant: ConsoleConnection, token_hash: str, control: Control) -> None:
        self.grant, self.token_hash, self.control = grant, token_hash, control
        self.began = time.monotonic()
        self.redeemed = False

    def counted(self) -> tuple[tuple[str, str], ...]:
        return (("token", self.token_hash), ("server", self.grant.server_uuid), ("user", self.grant.user_id))


WORDS = {
    "token": "This address has the maximum number of open consoles. Close one of them.",
    "server": "This server has the maximum number of open consoles. Close one of them.",
    "user": "You have the maximum number of open consoles. Close one of them.",
}


class SessionTotal:
    """The number of open sessions of all proxies in this process, for the metric and the status."""

    def __init__(self) -> None:
        self._count = 0
        self._lock = threading.Lock()

    def change(self, by: int) -> int:
        """Count sessions in, or out for a negative number; return how many are open."""
        with self._lock:
            self._count += by
            metrics.CONSOLE_SESSIONS.set(self._count)
            return self._count


class Sessions:
    """The registry of sessions. ``tell``: receives status messages, for sd_notify(3). ``total``: shared by the proxies
    of a process."""

    def __init__(self, limits: SessionLimits, exclusive: bool = False, tell: Callable[[str], None] = systemd.notify,
                 total: SessionTotal | None = None) -> None:
        self.limits, self.exclusive, self.tell = limits, exclusive, tell
        self._total = total or SessionTotal()
        self.draining = False
        self._open: set[Session] = set()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._open)

    def known(self, token_hash: str) -> ConsoleConnection | None:
        """Return the grant of an open session with this token. Sessions that are still opening do not count: they ask
        here themselves."""
        with self._lock:
            return next((session.grant for session in self._open
                         if session.redeemed and session.token_hash == token_hash), None)

    def enter(self, session: Session) -> None:
        """Count a session in, until :meth:`leave`. Raises Full. If a server may have only one session, older ones are
        ended."""
        with self._lock:
            older = self._same_server(session) if self.exclusive else []
            self._check(session, older)
            self._open.add(session)
            self._counts.update(session.counted())
        for other in older:
            other.control.end(ELSEWHERE, OPENED_ELSEWHERE)
        self._report(self._total.change(1))

    def leave(self, session: Session) -> int:
        """Count a session out, and return the number of remaining ones. Idempotent."""
        with self._lock:
            left = session in self._open
            if left:
                self._open.discard(session)
                self._counts.subtract(session.counted())
                for key in session.counted():
                    if not self._counts[key]:
                        del self._counts[key]
            count = len(self._open)
        self._report(self._total.change(-1 if left else 0))
        return count

    def drain(self, seconds: float) -> None:
        """Refuse new sessions, and return after the running ones are done. After ``seconds`` they get a request to
        reconnect, and end."""
        self.draining = True
        if self._open:
            LOG.info("%d connections to consoles are open; waiting at most %.0f s for them", len(self._open), seconds)
            self._report(self._total.change(0))
        self._wait(seconds)
        with self._lock:
            rest = list(self._open)
        for session in rest:
            session.control.end(GOING_AWAY, DRAINING)
        self._wait(LAST_WORDS_S)

    def _same_server(self, session: Session) -> list[Session]:
        """Return the server's sessions without a request to end, so that repeated connections cannot exceed the
        limits."""
        return [other for other in self._open
                if other.grant.server_uuid == session.grant.server_uuid and other.control.ending is None]

    def _check(self, session: Session, leaving: list[Session]) -> None:
        """Raise Full at a limit. ``leaving``: sessions that this one replaces."""
        gained = Counter(key for other in leaving for key in other.counted())
        if self.draining:
            raise Full(GOING_AWAY, DRAINING)
        if len(self._open) - len(leaving) >= self.limits.process:
            raise Full(POLICY, "This console proxy has the maximum number of open consoles. Try again later.")
        for key in session.counted():
            allowed = getattr(self.limits, key[0])
            if self._counts[key] - gained[key] >= allowed:
                raise Full(POLICY, WORDS[key[0]])

    def _report(self, count: int) -> None:
        self.tell(f"STATUS=connections to consoles: {count}{', stopping' if self.draining else ''}")

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while self._open and time.monotonic() < until:
            concurrency.sleep(0.05)
