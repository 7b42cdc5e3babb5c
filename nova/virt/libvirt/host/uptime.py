"""How long this machine is up, who is logged in, how busy it is: read from the kernel and utmp(5), by no program."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

from nova.model.base import utcnow
from nova.model.hosts import HostUptime

PROC, UTMP = Path("/proc"), Path("/run/utmp")
RECORD_BYTES, USER_PROCESS = (384, 400), 7  # of utmp: by the C library's idea of a long


def read(proc: Path = PROC, utmp: Path = UTMP) -> HostUptime:
    up_s = float((proc / "uptime").read_text().split()[0])
    return HostUptime(booted_at=utcnow().replace(microsecond=0) - datetime.timedelta(seconds=int(up_s)),
                      users=_users(utmp), load=os.getloadavg())


def _users(utmp: Path) -> int:
    """None, where nobody keeps the file."""
    try:
        data = utmp.read_bytes()
    except OSError:
        return 0
    size = next((size for size in RECORD_BYTES if len(data) % size == 0), RECORD_BYTES[0])
    return sum(data[at] == USER_PROCESS for at in range(0, len(data), size))
