"""This host: its name, its clock, its folder, and files in it that are replaced whole or not at all."""

from __future__ import annotations

import os
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from nova import errors
from nova.model.base import HostName, Time, utcnow


class HostClock:
    """The time; tests hand in another."""

    def now(self) -> Time:
        """UTC without zone: what peers' times are compared with."""
        return utcnow()

    def monotonic(self) -> float:
        """Seconds that never jump: what durations are measured with."""
        return time.monotonic()


@dataclass(frozen=True)
class Host:
    """``state_path`` is the daemon's own folder; ``my_ip`` the address other hosts reach this one by."""

    name: HostName
    state_path: Path
    my_ip: str = ""
    clock: HostClock = field(default_factory=HostClock)


def checked_uuid(given: str) -> str:
    """``given``, which names a file of ours: only a uuid in its usual form may. Raises Invalid."""
    try:
        good = str(uuid.UUID(given)) == given
    except ValueError:
        good = False
    if not good:
        raise errors.host.OrderBadUuid(given=given[:64])
    return given


def replace_file(path: Path, content: bytes) -> None:
    """Write a small file so that readers, and we after a kill, see the old or the new, never a part.

    Not synced to disk: it has to outlive the process, and after a machine's crash no guest runs that it would protect.
    """
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_bytes(content)
    os.replace(fresh, path)
