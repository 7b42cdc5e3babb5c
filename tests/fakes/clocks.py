"""Clocks that tests control."""

from __future__ import annotations

from nova.concurrency import Clock


class QuickClock(Clock):
    """Clock whose sleeps return immediately and advance its time. ``slept``: the seconds of each sleep."""

    def __init__(self) -> None:
        self.time_s = 1000.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time_s

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time_s += seconds
