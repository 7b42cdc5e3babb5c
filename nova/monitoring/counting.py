"""The folder of metrics of a daemon's processes, in memory. Create it before any import of prometheus_client."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from nova.scratch import ScratchDirectory

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"  # prometheus_client reads it when it is imported
_MEMORY = Path("/dev/shm")  # counters need no disk
_MADE: list[ScratchDirectory] = []


def make_folder(binary: str, memory: Path = _MEMORY) -> Path:
    """Create this daemon's folder, which :func:`remove_folder` removes. Also removes the folders of killed daemons.
    Raises OSError."""
    parent = memory if os.access(memory, os.W_OK) else Path(tempfile.gettempdir())
    made = ScratchDirectory(f"{binary}-metrics-", parent)
    _MADE.append(made)
    os.environ[VARIABLE] = str(made.path)
    return made.path


def remove_folder() -> None:
    """Remove the folder at the daemon's end, if there is one."""
    while _MADE:
        _MADE.pop().remove()
    os.environ.pop(VARIABLE, None)
