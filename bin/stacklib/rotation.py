"""Log rotation: the text of a file above a size limit moves to FILE.1, and the file is truncated.

The daemons keep the file open for appending, so it is copied and truncated, not renamed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

LIMIT = 20 * 2**20  # bytes
KEPT = 2


def rotate(logs: Path, limit: int = LIMIT) -> None:
    for log in logs.glob("*.log"):
        with contextlib.suppress(OSError):  # on a full disk the copy fails, but the file is truncated nevertheless
            if log.stat().st_size > limit:
                _rotate_one(log)


def _rotate_one(log: Path) -> None:
    for number in range(KEPT, 1, -1):
        older = log.with_name(f"{log.name}.{number - 1}")
        if older.exists():
            older.replace(log.with_name(f"{log.name}.{number}"))
    try:
        shutil.copyfile(log, log.with_name(f"{log.name}.1"))
    finally:
        os.truncate(log, 0)
