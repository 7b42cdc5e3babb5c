"""Files of one server in a folder of all servers' files.

``Path.glob`` compiles its pattern and keeps it, up to 32,768 of them in a process: tens of MB where each pattern has
the id of another server.
"""

from __future__ import annotations

import os
from pathlib import Path


def files_of(folder: Path, beginning: str, end: str = "") -> list[Path]:
    """Paths in ``folder`` whose names begin and end so; none where there is no folder."""
    try:
        return [folder / name for name in os.listdir(folder) if name.startswith(beginning) and name.endswith(end)]
    except FileNotFoundError:
        return []
