"""Where a daemon's processes count: a folder of its own in memory. To be made before anything imports the library."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from nova.scratch import ScratchDirectory

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"  # prometheus_client looks at it when it is imported
_MEMORY = Path("/dev/shm")  # counting costs no disk
_MADE: list[ScratchDirectory] = []


def make_folder(binary: str, memory: Path = _MEMORY) -> Path:
    """Create a folder for this daemon, which :func:`remove_folder` removes; what killed daemons left is removed now.
    OSError."""
    parent = memory if os.access(memory, os.W_OK) else Path(tempfile.gettempdir())
    made = ScratchDirectory(f"{binary}-metrics-", parent)
    _MADE.append(made)
    os.environ[VARIABLE] = str(made.path)
    return made.path


def remove_folder() -> None:
    """Remove it at the daemon's end; nothing where none was made."""
    while _MADE:
        _MADE.pop().remove()
    os.environ.pop(VARIABLE, None)
