"""Room on the disks: programs that run out of it say so in their own words, or not at all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from .errors import StackError
from .layout import Layout

FIRST_MB = 500  # a stack's state after the first `up`, and a little to live on
LEAST_MB = 60  # below it databases and brokers stop taking anything
CACHE = Path("/var/cache/apt/archives")


def refuse_little(layout: Layout) -> None:
    """Raises StackError where `up` cannot get to its end, before it begins."""
    needed = LEAST_MB if layout.path("stamps").exists() else FIRST_MB
    free = free_mb(layout.state)
    if free < needed:
        raise _no_space(layout.state, free, needed)


def none_left(layout: Layout) -> StackError | None:
    """What is to be said when a disk that `up` writes to has run full: mostly the cause of a step's failure."""
    for place in (layout.state, layout.venvs, CACHE):
        if (free := free_mb(place)) < LEAST_MB:
            return _no_space(place, free, LEAST_MB)
    return None


def free_mb(place: Path) -> int:
    """On the disk of the place, or of what is above it where it is not there yet."""
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(os.fspath(place)).free >> 20


def _no_space(place: Path, free: int, needed: int) -> StackError:
    return StackError(
        f"no space left on the disk of {place}: {free} MB are free, {needed} MB are needed",
        f"make room (`df -h {place}` shows the disk), and run `bin/stack up` again: it goes on where it stopped",
    )
