"""Work directories for the creation of images: a new one for each job, removed afterwards, also after a kill."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from nova import failures
from nova.privileged.files import locked

LOG = logging.getLogger(__name__)

PREFIX = "nova-bundle."


class WorkFolders:
    """The work directories below ``base``, which other programs may use, too. A directory is locked while its process
    lives. ``lock``: a lock file, common to all processes that share ``base``."""

    def __init__(self, base: Path, lock: Path) -> None:
        self.base, self._lock = base, lock
        base.mkdir(parents=True, exist_ok=True, mode=0o700)

    @contextlib.contextmanager
    def fresh(self) -> Iterator[Path]:
        """Provide an empty directory (0700), which is removed at the end. Raises OSError."""
        with locked(self._lock):
            folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=self.base))
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            yield folder
        finally:
            _remove(folder)
            os.close(descriptor)

    def sweep(self) -> int:
        """Remove the directories of killed processes; return their number."""
        with locked(self._lock):
            return sum(_is_left(folder) and _remove(folder) for folder in self.base.glob(f"{PREFIX}*"))


def _is_left(folder: Path) -> bool:
    """True for a stale work directory that this user owns and no job uses; another user may have created a decoy."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)


def _remove(folder: Path) -> bool:
    with failures.best_effort(LOG, "Cannot remove the work directory %s of a bundle: %s. Remove it manually", folder,
            on=OSError):
        shutil.rmtree(folder)
        return True
    return False
