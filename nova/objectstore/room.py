"""Free room on a disk that others use, too."""

from __future__ import annotations

import os
from pathlib import Path

#: Bytes between two looks of who writes: that much, times all who write at once, may be missing below the floor.
STRIDE = 4 * 2 ** 20


class DiskRoom:
    """The disk of ``folder``, which must exist. ``floor``: bytes that stay free on it."""

    def __init__(self, folder: Path, floor: int) -> None:
        self.folder, self.floor = folder, floor

    def lacks(self, size: int = 0) -> bool:
        """Whether less than the floor would be free after ``size`` bytes more. OSError: nobody can tell."""
        found = os.statvfs(self.folder)
        return found.f_bavail * found.f_frsize - size < self.floor


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
