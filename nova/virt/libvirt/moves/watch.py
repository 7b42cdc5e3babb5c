"""Time-driven actions of a live migration. Pure: times and amounts in, actions out."""

from __future__ import annotations

import enum
from typing import NamedTuple

from nova.virt.libvirt.settings.moves import MoveSettings

GIB = 1 << 30
LEAST_GIB = 2  # smaller migrations do not depend on the size


class Act(enum.Enum):
    DOWNTIME = "downtime"
    ABORT = "abort"
    FORCE = "force"


class Due(NamedTuple):
    act: Act
    downtime_ms: int = 0


def downtimes(settings: MoveSettings, gib: int) -> tuple[tuple[float, int], ...]:
    """Return the steps (seconds from the beginning, ms) of the permitted downtime, which grows geometrically."""
    steps, most = settings.downtime_steps, settings.downtime_ms
    least = max(1, most // steps)
    factor = (most / least) ** (1 / steps)
    return tuple((step * settings.downtime_delay_s * gib, round(least * factor ** step)) for step in range(steps + 1))


class MigrationWatch:
    """A live migration of ``amount_bytes`` (memory, and copied disks), with the settings at its start."""

    def __init__(self, settings: MoveSettings, amount_bytes: int) -> None:
        settings = settings.now()
        gib = max(LEAST_GIB, -(-amount_bytes // GIB))
        self._downtimes = list(downtimes(settings, gib))
        self._over_at = settings.completion_s * gib or None
        self._at_timeout = Act.FORCE if settings.force_at_timeout else Act.ABORT
        self.forced = False

    def due(self, elapsed_s: float) -> Due | None:
        """Return the action that is due now; each is returned once."""
        if self._over_at is not None and elapsed_s >= self._over_at:
            self._over_at = None
            if not self.forced:
                return Due(self._at_timeout)
        step = None
        while self._downtimes and elapsed_s >= self._downtimes[0][0]:
            step = self._downtimes.pop(0)
        return Due(Act.DOWNTIME, step[1]) if step is not None else None
