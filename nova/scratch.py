"""Scratch directories: each belongs to one process; the next start removes the directories of killed processes.

A lock on the directory shows that its process is alive, regardless of pid namespaces. A directory gets its final name
only once it is locked, so that processes that start at the same time do not remove each other's.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

from nova import failures

COMING = "."  # prefix of a directory that is not locked yet
COMING_S = 60  # seconds after which its process will not lock it any more


class ScratchDirectory:
    """Scratch directory of this process. ``path``: mode 0700, kept until :meth:`remove`."""

    def __init__(self, prefix: str, parent: Path) -> None:
        """Create it as ``parent``/``prefix``... after removing the directories of killed processes. Raises OSError."""
        remove_abandoned(prefix, parent)
        coming = Path(tempfile.mkdtemp(prefix=f"{COMING}{prefix}", dir=parent))
        self.lock = lock(coming)
        self.path = coming.with_name(coming.name.removeprefix(COMING))
        coming.rename(self.path)

    def remove(self) -> None:
        """Remove the directory, then release the lock."""
        shutil.rmtree(self.path, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.close(self.lock)


def lock(directory: Path) -> int:
    """Lock the directory until the returned descriptor is closed. Raises BlockingIOError if another process holds the
    lock, and OSError."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with failures.on_failure(lambda: os.close(descriptor), on=OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def remove_abandoned(prefix: str, parent: Path) -> None:
    """Remove this user's directories of that prefix whose processes have ended."""
    for left in [*parent.glob(f"{prefix}*"), *filter(_is_old, parent.glob(f"{COMING}{prefix}*"))]:
        with contextlib.suppress(OSError):  # it is in use, a link, another user's, or removed
            descriptor = lock(left)
            try:
                if os.fstat(descriptor).st_uid == os.getuid():
                    shutil.rmtree(left, ignore_errors=True)
            finally:
                os.close(descriptor)


def _is_old(directory: Path) -> bool:
    with contextlib.suppress(OSError):
        return directory.lstat().st_mtime < time.time() - COMING_S
    return False
