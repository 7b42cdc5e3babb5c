"""Turns of projects: while several of them ask, each has a few requests at work in a process, and its others wait.

What one project asks at a time is otherwise what all others wait behind: requests of a process share one processor. A
project that asks alone is not held up. A request counts for a moment only: one that takes longer waits for something
else, and keeps no processor from anybody.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from nova import errors

SHARED = 4  # requests of one project that are at work while others ask
COUNTS_S = 0.25  # for so long a request counts
ALONE_S = 2.0  # for so long no other project has asked
MOST_WAITING = 200  # requests of one project
WAIT_S = 30.0


class _Project:
    """``begun``: when its requests at work began."""

    def __init__(self, lock: threading.Lock) -> None:
        self.begun: list[float] = []
        self.waiting = 0
        self.free = threading.Condition(lock)

    def at_work(self, now: float) -> int:
        return sum(now - began < COUNTS_S for began in self.begun)


class ProjectTurns:
    """Of one process. ``clock``: seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._projects: dict[str, _Project] = {}
        self._newest, self._newest_at = "", float("-inf")  # the project that asked last
        self._other_at = float("-inf")  # when another one than that asked last

    @contextlib.contextmanager
    def turn(self, project: str) -> Iterator[None]:
        """Do a request of that project within it; waits for the turn. api.ProjectBusy."""
        with self._lock:
            one = self._projects.setdefault(project, _Project(self._lock))
            try:
                self._wait(project, one)
            except errors.NovaError:
                self._forget(project, one)
                raise
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
        """Until it is the turn of one more request. The lock is held, and released meanwhile. api.ProjectBusy."""
        until = self._note(project) + WAIT_S
        one.waiting += 1
        try:
            while not self._may(project, one):
                if one.waiting > MOST_WAITING or self._clock() > until:
                    raise errors.api.ProjectBusy()
                one.free.wait(COUNTS_S)
        finally:
            one.waiting -= 1

    def _forget(self, project: str, one: _Project) -> None:
        if not one.begun and not one.waiting and self._projects.get(project) is one:
            del self._projects[project]

    def _note(self, project: str) -> float:
        """Who asked when; now."""
        now = self._clock()
        if project != self._newest:
            self._other_at = self._newest_at
            self._newest = project
        self._newest_at = now
        return now

    def _may(self, project: str, one: _Project) -> bool:
        now = self._clock()
        other_at = self._other_at if project == self._newest else self._newest_at
        return now - other_at > ALONE_S or one.at_work(now) < SHARED
