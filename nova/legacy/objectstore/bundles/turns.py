"""Whose job is next: projects in turn, and one job of a project at a time, however many it has waiting."""

from __future__ import annotations

import threading
from collections import deque

from nova.legacy.objectstore.bundles.jobs import HeldJob


class JobTurns:
    """Jobs of one process. Every method may be called by several threads at once."""

    def __init__(self) -> None:
        self._lines: dict[str, deque[HeldJob]] = {}  # of projects, the one whose turn is next first
        self._under_way: set[str] = set()
        self._lock = threading.Lock()

    def add(self, held: HeldJob) -> None:
        """At the end of its project's line."""
        with self._lock:
            self._lines.setdefault(held.job.project_id, deque()).append(held)

    def take(self) -> HeldJob | None:
        """The next job, which is under way from then on; None while there is none but of projects that have one under
        way."""
        with self._lock:
            project_id = next((one for one in self._lines if one not in self._under_way), None)
            if project_id is None:
                return None
            line = self._lines.pop(project_id)
            held = line.popleft()
            if line:
                self._lines[project_id] = line
            self._under_way.add(project_id)
            return held

    def done(self, held: HeldJob) -> None:
        """It is no longer under way: its project may have another."""
        with self._lock:
            self._under_way.discard(held.job.project_id)

    def leave(self) -> list[HeldJob]:
        """All that wait; they wait no more."""
        with self._lock:
            left = [held for line in self._lines.values() for held in line]
            self._lines.clear()
            return left
