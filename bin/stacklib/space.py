"""Checks of free disk space: programs that run out of it report different errors, or none."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from .errors import StackError
from .layout import Layout

FIRST_MB = 500  # size of a stack's state after the first `up`, and a reserve
LEAST_MB = 60  # below it, databases and brokers refuse writes
CACHE = Path("/var/cache/apt/archives")


def refuse_little(layout: Layout) -> None:
    """Raise StackError before `up` begins, if the free space is too small for it to complete."""
    needed = LEAST_MB if layout.path("stamps").exists() else FIRST_MB
    free = free_mb(layout.state)
    if free < needed:
        raise _no_space(layout.state, free, needed)


def none_left(layout: Layout) -> StackError | None:
    """Return the error for a full disk that `up` writes to, usually the cause of a step's failure; otherwise None."""
    for place in (layout.state, layout.venvs, CACHE):
        if (free := free_mb(place)) < LEAST_MB:
            return _no_space(place, free, LEAST_MB)
    return None


def free_mb(place: Path) -> int:
    """Return the free space, in MB, on the disk of a path or of its first parent that exists."""
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(os.fspath(place)).free >> 20


def _no_space(place: Path, free: int, needed: int) -> StackError:
    return StackError(
        f"no space left on the disk of {place}: {free} MB are free, {needed} MB are needed",
        f"free some space (`df -h {place}` shows the disk), then run `bin/stack up` again to continue",
    )
