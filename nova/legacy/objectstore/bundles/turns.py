"""Fair queue of bundle jobs: round-robin over projects, one job per project at a time."""

from __future__ import annotations

import threading
from collections import deque

from nova.legacy.objectstore.bundles.jobs import HeldJob


class JobTurns:
    """The queue of one process. Safe for concurrent use by threads."""

    def __init__(self) -> None:
        self._lines: dict[str, deque[HeldJob]] = {}  # project -> waiting jobs; the next project is first
        self._under_way: set[str] = set()
        self._lock = threading.Lock()

    def add(self, held: HeldJob) -> None:
        """Append a job to its project's queue."""
        with self._lock:
            self._lines.setdefault(held.job.project_id, deque()).append(held)

    def take(self) -> HeldJob | None:
        """Return the next job and mark it as running; None if every project with waiting jobs has a running one."""
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
        """Mark the job as finished, so that its project's next job can run."""
        with self._lock:
            self._under_way.discard(held.job.project_id)

    def leave(self) -> list[HeldJob]:
        """Remove and return all waiting jobs."""
        with self._lock:
            left = [held for line in self._lines.values() for held in line]
            self._lines.clear()
            return left
