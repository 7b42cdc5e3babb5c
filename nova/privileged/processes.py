"""Daemons that outlive this process (dnsmasq, radvd): found again by their command lines, and ended by pid."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from nova import errors
from nova.privileged.client import forwarded

STOP_PATIENCE_S = 5.0


def by_pid_file(path: Path, mark: str) -> int | None:
    """Return the pid in the file, if that process has the word ``mark`` in its command line (pids are reused)."""
    text = read(path).strip()
    return int(text) if text.isdigit() and mark in command_line(int(text)) else None


def with_mark(mark: str) -> list[int]:
    """Return all processes with that word in their command line, regardless of pid files."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and mark in command_line(int(name))]


def command_line(pid: int) -> list[str]:
    """Return the words of the command line; empty if the process is gone, or a zombie."""
    return _strings(pid, "cmdline")


def same_environment(pid: int, wanted: dict[str, str]) -> bool:
    """Return whether a process was started with these variables; it may have others. Also True if they cannot be
    read."""
    present = set(_strings(pid, "environ"))
    return not present or all(f"{name}={value}" in present for name, value in wanted.items())


Check = Callable[[int], None]  # raises if the pid is not the intended process


def _anybody(_pid: int) -> None:
    """Accept any process: the caller has checked it."""


@forwarded("processes.read_again", local=("check",))
def read_again(pid: int, program: str, device: str, check: Check = _anybody) -> None:
    """Send SIGHUP to the ``program`` of a network's ``device``; does nothing if it has just ended."""
    with contextlib.suppress(ProcessLookupError), _held(pid, check) as held:
        signal.pidfd_send_signal(held, signal.SIGHUP)


@forwarded("processes.end", local=("check",))
def end(pid: int, program: str, device: str, check: Check = _anybody) -> None:
    """End the process with SIGTERM, then SIGKILL; return when it is gone. Raises network.DaemonStillRunning."""
    for word in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError), _held(pid, check) as held:
            signal.pidfd_send_signal(held, word)
        deadline = time.monotonic() + STOP_PATIENCE_S
        while time.monotonic() < deadline:
            if not command_line(pid):
                return
            time.sleep(0.02)
    raise errors.network.DaemonStillRunning(program=program, pid=pid, device=device)


@contextlib.contextmanager
def _held(pid: int, check: Check) -> Iterator[int]:
    """Hold the process by a descriptor: its pid may belong to another process in the next moment."""
    held = os.pidfd_open(pid)
    try:
        check(pid)
        yield held
    finally:
        os.close(held)


def read(path: Path) -> str:
    """Return a file's text; "" if it does not exist or cannot be read."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return path.read_text()
    return ""


def _strings(pid: int, kind: str) -> list[str]:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/{kind}").read_bytes().decode(errors="replace").split("\0")[:-1]
    return []
