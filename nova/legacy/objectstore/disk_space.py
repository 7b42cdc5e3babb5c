"""Free space on a disk shared with other users."""

from __future__ import annotations

import logging
import math
import os
import time
from pathlib import Path

LOG = logging.getLogger(__name__)

WARN_S = 60.0  # minimum interval of the warning
#: Bytes between two checks of a writer: free space may fall below the floor by this, times the concurrent writers.
STRIDE = 4 * 2 ** 20


class DiskSpace:
    """The disk of the existing directory ``folder``. ``floor``: bytes to keep free on it."""

    def __init__(self, folder: Path, floor: int) -> None:
        self.folder, self.floor = folder, floor
        self._warned = -math.inf

    def lacks(self, size: int = 0) -> bool:
        """Return whether less than the floor would be free after ``size`` more bytes. Raises OSError."""
        found = os.statvfs(self.folder)
        free = found.f_bavail * found.f_frsize
        if free - size >= self.floor:
            return False
        if time.monotonic() - self._warned >= WARN_S:
            self._warned = time.monotonic()
            LOG.warning("The disk of %s has %d bytes free, too few to write %d and keep %d free ([DEFAULT]"
                        "s3_reserved_disk_mb). Writes are refused or wait until there is more free space",
                        self.folder, free, size, self.floor)
        return True


class SpaceWatch:
    """Free-space checks of one writer: at its start and after every ``STRIDE`` bytes."""

    def __init__(self, room: DiskSpace) -> None:
        self._room, self._unseen = room, STRIDE

    def lacks(self, size: int) -> bool:
        """Return whether the disk lacks space for ``size`` bytes to be written next. Raises OSError."""
        self._unseen += size
        if self._unseen < STRIDE:
            return False
        self._unseen = 0
        return self._room.lacks(size)
