"""Periodic jobs, spread out so that many hosts do not run them at the same moment."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass

from nova import concurrency, failures
from nova.compute.host import HostClock

LOG = logging.getLogger(__name__)

USUAL_S = 60.0  # used if the operator sets 0
SPREAD = 0.1  # fraction by which each pause is randomly lengthened or shortened


@dataclass
class PeriodicJob:
    """A periodic job. ``interval_s`` as the operator sets it: 0 means :data:`USUAL_S`, negative means never."""

    name: str
    interval_s: float
    do: Callable[[], object]
    due: float = 0.0

    @property
    def pause_s(self) -> float:
        """Seconds between two runs, before jitter."""
        return self.interval_s or USUAL_S


class Periodic:
    """A thread that runs the jobs when they are due, one after another. A failed job is logged and runs again
    later."""

    def __init__(self, jobs: list[PeriodicJob], clock: HostClock) -> None:
        self._jobs, self._clock = [job for job in jobs if job.interval_s >= 0], clock
        self._stop = threading.Event()
        for job in self._jobs:
            job.due = clock.monotonic() + random.uniform(0.1, 1.0) * job.pause_s

    def start(self) -> None:
        concurrency.spawn(self._loop, name="periodic")

    def stop(self) -> None:
        """Start no further job; does not wait for the running one. May be called again."""
        self._stop.set()

    def run_due(self) -> float:
        """Run the jobs that are due, and return the seconds until the next."""
        for job in self._jobs:
            if job.due <= self._clock.monotonic() and not self._stop.is_set():
                self._run(job)
        return max(0.0, min((job.due for job in self._jobs), default=0.0) - self._clock.monotonic())

    def _loop(self) -> None:
        while self._jobs and not self._stop.wait(self.run_due()):
            pass

    def _run(self, job: PeriodicJob) -> None:
        if error := failures.failure_of(job.do):
            LOG.warning("periodic job '%s' failed and will run again: %s",
                        job.name, error, exc_info=error if LOG.isEnabledFor(logging.DEBUG) else None)
        job.due = self._clock.monotonic() + job.pause_s * random.uniform(1 - SPREAD, 1 + SPREAD)
