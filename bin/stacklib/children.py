"""Record of the supervisor's processes: the next supervisor ends the processes that a killed one left running."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from pathlib import Path

from . import kernel

RECORD = "children.json"
PATIENCE = 10.0  # seconds between SIGTERM and SIGKILL


def write(run: Path, pids: list[int]) -> None:
    known = {str(pid): start for pid in pids if (start := kernel.start_time(pid)) is not None}
    temporary = run / f".{RECORD}"
    temporary.write_text(json.dumps(known))
    temporary.rename(run / RECORD)


def end_recorded(run: Path) -> None:
    """End the processes that a killed supervisor has left; a PID that now belongs to another process is ignored."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        recorded = json.loads((run / RECORD).read_text())
        end([int(pid) for pid, start in recorded.items() if kernel.start_time(int(pid)) == start], sessions=True)


def of(parent: int) -> list[int]:
    try:
        return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]
    except OSError:
        return []


def end(pids: list[int], now: bool = False, sessions: bool = False) -> None:
    """Send SIGTERM, wait PATIENCE seconds and send SIGKILL; reap this process' children.

    `now`: send SIGKILL immediately; `sessions`: signal the process groups of session leaders, too.
    """
    for pid in pids:
        _send(pid, signal.SIGKILL if now else signal.SIGTERM, sessions)
    deadline = time.monotonic() + PATIENCE
    while (left := [pid for pid in pids if _alive(pid)]) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in left:
        _send(pid, signal.SIGKILL, sessions)
    while any(_alive(pid) for pid in left):
        time.sleep(0.02)


def _alive(pid: int) -> bool:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    return kernel.start_time(pid) is not None


def _send(pid: int, number: int, session: bool) -> None:
    with contextlib.suppress(ProcessLookupError):
        if session and os.getpgid(pid) == pid:
            os.killpg(pid, number)
        else:
            os.kill(pid, number)
