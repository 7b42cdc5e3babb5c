"""Programs that outlive the process that started them, found again by a pid file that they keep open while they run."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

STOP_S = 5.0


def running(path: Path) -> int | None:
    """Return the pid in the file if that process lives and has the file open. This works even if another program has
    the pid by now, or if the file's directory was renamed."""
    try:
        pid, wanted = int(path.read_text()), path.stat()
        for opened in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):  # closed meanwhile
                if os.path.samestat(opened.stat(), wanted):
                    return pid
    except (OSError, ValueError):
        return None
    return None


def end(path: Path) -> None:
    """End that process, with SIGTERM first. Does nothing if none runs."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        pid = running(path)
        if pid is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        until = time.monotonic() + STOP_S
        while running(path) is not None and time.monotonic() < until:
            time.sleep(0.02)
