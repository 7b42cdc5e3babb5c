"""Where a daemon's processes count: a folder of its own in memory. To be made before anything imports the library."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"  # prometheus_client looks at it when it is imported
_MEMORY = Path("/dev/shm")  # counting costs no disk
_MADE: dict[Path, int] = {}  # and the descriptors that keep them locked


def make_folder(binary: str, memory: Path = _MEMORY) -> Path:
    """A new folder for this daemon, which :func:`remove_folder` removes; what killed daemons left is removed now."""
    parent = memory if os.access(memory, os.W_OK) else Path(tempfile.gettempdir())
    for left in parent.glob(f"{binary}-metrics-*"):
        _remove_unlocked(left)
    made = Path(tempfile.mkdtemp(prefix=f"{binary}-metrics-", dir=parent))
    _MADE[made] = os.open(made, os.O_RDONLY)
    fcntl.flock(_MADE[made], fcntl.LOCK_EX)
    os.environ[VARIABLE] = str(made)
    return made


def remove_folder() -> None:
    """At the daemon's end. Nothing where none was made."""
    for made, descriptor in _MADE.items():
        shutil.rmtree(made, ignore_errors=True)
        os.close(descriptor)
    _MADE.clear()
    os.environ.pop(VARIABLE, None)


def _remove_unlocked(left: Path) -> None:
    """A lock says that a process of the daemon lives, in whatever namespace its pid is a number."""
    try:
        descriptor = os.open(left, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return  # another user's, or gone
    try:
        if os.fstat(descriptor).st_uid == os.getuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left, ignore_errors=True)
    except OSError:
        pass  # it is in use
    finally:
        os.close(descriptor)
