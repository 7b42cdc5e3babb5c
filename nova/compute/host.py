"""This host: its name, clock and state directory, and atomic replacement of small files there."""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from nova import errors
from nova.model.base import HostName, Time, utcnow


class HostClock:
    """The system clock; tests replace it."""

    def now(self) -> Time:
        """Return the current time in UTC without a zone, for comparison with the times of peers."""
        return utcnow()

    def monotonic(self) -> float:
        """Return seconds that never jump, for measuring durations."""
        return time.monotonic()


@dataclass(frozen=True)
class Host:
    """The local host. ``state_path`` is the daemon's own directory; ``my_ip`` is the address at which other hosts reach
    this one."""

    name: HostName
    state_path: Path
    my_ip: str = ""
    clock: HostClock = field(default_factory=HostClock)


def checked_uuid(given: str) -> str:
    """Return ``given``, the name of one of nova's files, if it is a UUID in canonical form; else raise Invalid."""
    good = False
    with contextlib.suppress(ValueError):
        good = str(uuid.UUID(given)) == given
    if not good:
        raise errors.host.OrderBadUuid(given=given[:64])
    return given


def replace_file(path: Path, content: bytes) -> None:
    """Write a small file atomically: readers, and this process after a kill, see the old or the new content, never a
    part.

    The file is not synced to disk: it must outlive the process, and after a machine crash no guest runs that it would
    protect.
    """
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_bytes(content)
    os.replace(fresh, path)
