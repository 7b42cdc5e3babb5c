"""List the files of one server in a folder with files of all servers.

``Path.glob`` compiles and caches its patterns, up to 32,768 in a process: tens of MB if each pattern contains the id of
another server.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def files_of(folder: Path, beginning: str, end: str = "") -> list[Path]:
    """Return the paths in ``folder`` with this prefix and suffix; empty if the folder does not exist."""
    with contextlib.suppress(FileNotFoundError):
        return [folder / name for name in os.listdir(folder) if name.startswith(beginning) and name.endswith(end)]
    return []
