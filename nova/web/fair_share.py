"""Fair sharing between projects: while several projects send requests, each runs only a few at a time in a process.

Without it, one project's parallel requests delay all others, because the requests of a process share one processor. A
project that is alone is not limited. A request counts only for a moment: a longer one waits for other work, and does
not occupy the processor.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator

from nova import errors, failures

SHARED, COUNTS_S = 3, 0.25  # running requests of one project while others are active; seconds that a request counts
STRANGER_S = 0.05  # likewise, for a token that Keystone must validate
ALONE_S = 2.0  # without requests of another project, a project is not limited
MOST_WAITING = 200  # requests of one project
WAIT_S = 30.0
GOOD_S, MOST_GOOD = 300.0, 10_000


class ValidatedTokens:
    """Tokens that Keystone has validated in the last minutes, by their digests, with their projects. ``clock``:
    seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._found: OrderedDict[bytes, tuple[float, str]] = OrderedDict()

    def project_of(self, token: str) -> str | None:
        """Return a token's project; empty if it has none. None: the token is unknown."""
        with self._lock:
            until, project = self._found.get(_digest(token), (0.0, ""))
            return project if until > self._clock() else None

    def note(self, token: str, project: str | None) -> None:
        """Record Keystone's result for a token; None: it is invalid."""
        with self._lock:
            self._found.pop(_digest(token), None)
            if project is not None:
                self._found[_digest(token)] = (self._clock() + GOOD_S, project)
            if len(self._found) > MOST_GOOD:
                self._found.popitem(last=False)


def _digest(token: str) -> bytes:
    return hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class _Project:
    """Requests of one project. ``begun``: start times of running requests: at most ``most``, and each counts for
    ``counts_s``."""

    def __init__(self, lock: threading.Lock, most: int, counts_s: float) -> None:
        self.most, self.counts_s = most, counts_s
        self.begun: list[float] = []
        self.waiting = 0
        self.free = threading.Condition(lock)

    def is_full(self, now: float) -> bool:
        return sum(now - began < self.counts_s for began in self.begun) >= self.most


class ProjectLimiter:
    """Turns of projects in one process. ``clock``: seconds. ``shared``: running requests of a project while others are
    active."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, shared: int = SHARED) -> None:
        self._clock, self._lock, self._shared = clock, threading.Lock(), shared
        self._projects: dict[str, _Project] = {}
        self._newest, self._newest_at = "", float("-inf")  # the project of the last request, and its time
        self._other_at = float("-inf")  # the last request of any other project

    def unauthenticated(self, address: str) -> contextlib.AbstractContextManager[None]:
        """Run a request with an unknown token: one from each address at a time. Raises api.ProjectBusy."""
        return self.turn(f"unknown tokens from {address}", 1, STRANGER_S)

    @contextlib.contextmanager
    def turn(self, project: str, most: int = 0, counts_s: float = COUNTS_S) -> Iterator[None]:
        """Run a request of that project in this context, after waiting for its turn. ``most``: replaces ``shared``.
        Raises api.ProjectBusy."""
        with self._lock:
            one = self._projects.setdefault(project, _Project(self._lock, most or self._shared, counts_s))
            with failures.on_failure(lambda: self._forget(project, one), on=errors.NovaError):
                self._wait(project, one)
            began = self._clock()
            one.begun.append(began)
        try:
            yield
        finally:
            with self._lock:
                one.begun.remove(began)
                one.free.notify()
                self._forget(project, one)

    def _wait(self, project: str, one: _Project) -> None:
        """Wait for the turn of one more request. The lock is held, and released during the wait. Raises
        api.ProjectBusy."""
        until = self._note(project) + WAIT_S
        one.waiting += 1
        try:
            while not self._may(project, one):
                if one.waiting > MOST_WAITING or self._clock() > until:
                    raise errors.api.ProjectBusy()
                one.free.wait(one.counts_s)
        finally:
            one.waiting -= 1

    def _forget(self, project: str, one: _Project) -> None:
        if not one.begun and not one.waiting and self._projects.get(project) is one:
            del self._projects[project]

    def _note(self, project: str) -> float:
        """Record the time of a project's request, and return it."""
        now = self._clock()
        if project != self._newest:
            self._other_at = self._newest_at
            self._newest = project
        self._newest_at = now
        return now

    def _may(self, project: str, one: _Project) -> bool:
        now = self._clock()
        other_at = self._other_at if project == self._newest else self._newest_at
        return now - other_at > ALONE_S or not one.is_full(now)
