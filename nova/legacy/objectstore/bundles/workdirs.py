"""Folders for what is on its way from a bundle to an image: fresh for each, and gone afterwards, whatever happens."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from nova.privileged.files import locked

LOG = logging.getLogger(__name__)

PREFIX = "nova-bundle."


class WorkFolders:
    """Below ``base``, which others may use, too. A folder is locked as long as its process lives. ``lock``: a file, the
    same for all processes that share ``base``."""

    def __init__(self, base: Path, lock: Path) -> None:
        self.base, self._lock = base, lock
        base.mkdir(parents=True, exist_ok=True, mode=0o700)

    @contextlib.contextmanager
    def fresh(self) -> Iterator[Path]:
        """An empty folder (0700), which is removed at the end. OSError."""
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
        """Remove the folders of killed processes; how many those were."""
        with locked(self._lock):
            return sum(_is_left(folder) and _remove(folder) for folder in self.base.glob(f"{PREFIX}*"))


def _is_left(folder: Path) -> bool:
    """Whether it is one of ours (and not another user's, who may have made it for us to fall for), and nobody's."""
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
    try:
        shutil.rmtree(folder)
        return True
    except OSError as error:
        LOG.warning("The folder %s of a bundle is left: %s. Remove it by hand", folder, error)
        return False
