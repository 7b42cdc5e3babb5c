"""The life cycle of one daemon, as a state machine without side effects: events in, orders out.

STOPPED --start--> STARTING --ready--> READY
   ^                  |  exit             | exit
   |                  v                   v
   +----- exit --- STOPPING <--stop--- BACKOFF --timer--> STARTING
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

BACKOFF_FIRST, BACKOFF_MAX = 1.0, 30.0  # seconds
STEADY_SECONDS = 60.0  # the back-off of a daemon that was ready for this long is reset
HOPELESS_AFTER = 3  # exits in a row without becoming ready, after which waiting clients get an answer


class Phase(enum.Enum):
    STOPPED = "stopped"
    STARTING = "starting"
    READY = "ready"
    BACKOFF = "waiting"
    STOPPING = "stopping"


class Order(enum.Enum):
    SPAWN = "spawn"
    TERMINATE = "terminate"
    KILL = "kill"


@dataclass
class Machine:
    """State of one daemon. Times are seconds of a monotonic clock; `due` is the time of the next call of `timer`."""

    stop_seconds: float
    phase: Phase = Phase.STOPPED
    since: float = 0.0
    due: float | None = None
    exits: int = 0
    restarts: int = 0
    again: bool = False

    def start(self, now: float) -> list[Order]:
        if self.phase is Phase.STOPPING:
            self.again = True
            return []
        self.exits = 0  # the answer to this request must not include earlier failures
        return [] if self.phase in (Phase.STARTING, Phase.READY) else self._spawn(now)

    def ready(self, now: float) -> list[Order]:
        if self.phase is Phase.STARTING:
            self._enter(Phase.READY, now)
        return []

    def stop(self, now: float) -> list[Order]:
        self.again = False
        if self.phase in (Phase.STOPPED, Phase.STOPPING):
            return []
        if self.phase is Phase.BACKOFF:
            self._enter(Phase.STOPPED, now)
            return []
        self._enter(Phase.STOPPING, now, due=now + self.stop_seconds)
        return [Order.TERMINATE]

    def restart(self, now: float) -> list[Order]:
        if self.phase in (Phase.STOPPED, Phase.BACKOFF):
            return self.start(now)
        orders = self.stop(now)
        self.again = True
        return orders

    def exited(self, now: float) -> list[Order]:
        """Handle the end of the process, for any reason."""
        if self.phase is Phase.STOPPING:
            self._enter(Phase.STOPPED, now)
            return self.start(now) if self._take_again() else []
        steady = self.phase is Phase.READY and now - self.since >= STEADY_SECONDS
        self.exits = 1 if steady else self.exits + 1
        self.restarts += 1
        self._enter(Phase.BACKOFF, now, due=now + min(BACKOFF_MAX, BACKOFF_FIRST * 2 ** (self.exits - 1)))
        return []

    def timer(self, now: float) -> list[Order]:
        if self.due is None or now < self.due:
            return []
        if self.phase is Phase.STOPPING:
            self.due = now + self.stop_seconds
            return [Order.KILL]
        return self._spawn(now) if self.phase is Phase.BACKOFF else []

    @property
    def hopeless(self) -> bool:
        return self.phase is Phase.BACKOFF and self.exits >= HOPELESS_AFTER

    def _spawn(self, now: float) -> list[Order]:
        self._enter(Phase.STARTING, now)
        return [Order.SPAWN]

    def _take_again(self) -> bool:
        again, self.again = self.again, False
        return again

    def _enter(self, phase: Phase, now: float, due: float | None = None) -> None:
        self.phase, self.since, self.due = phase, now, due
