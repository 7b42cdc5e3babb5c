"""Free room on a disk that others use, too."""

from __future__ import annotations

import logging
import math
import os
import time
from pathlib import Path

LOG = logging.getLogger(__name__)

WARN_S = 60.0  # between two lines of the log
#: Bytes between two looks of who writes: that much, times all who write at once, may be missing below the floor.
STRIDE = 4 * 2 ** 20


class DiskRoom:
    """The disk of ``folder``, which must exist. ``floor``: bytes that stay free on it."""

    def __init__(self, folder: Path, floor: int) -> None:
        self.folder, self.floor = folder, floor
        self._warned = -math.inf

    def lacks(self, size: int = 0) -> bool:
        """Whether less than the floor would be free after ``size`` bytes more. OSError: nobody can tell."""
        found = os.statvfs(self.folder)
        free = found.f_bavail * found.f_frsize
        if free - size >= self.floor:
            return False
        if time.monotonic() - self._warned >= WARN_S:
            self._warned = time.monotonic()
            LOG.warning("The disk of %s has %d bytes free: too few for %d more and the %d that [DEFAULT]"
                        "s3_reserved_disk_mb keeps free. Writes are refused or wait until there is more room",
                        self.folder, free, size, self.floor)
        return True


class RoomWatch:
    """Counts what one writer writes, and looks at the disk at its begin and every ``STRIDE`` bytes."""

    def __init__(self, room: DiskRoom) -> None:
        self._room, self._unseen = room, STRIDE

    def lacks(self, size: int) -> bool:
        """Whether the disk has no room for ``size`` bytes that are about to be written. OSError: nobody can tell."""
        self._unseen += size
        if self._unseen < STRIDE:
            return False
        self._unseen = 0
        return self._room.lacks(size)
