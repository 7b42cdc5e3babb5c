"""System calls that Python 3.11 does not provide."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWPID, NEWNET = 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x20000000, 0x40000000
# The file in /proc/PID/ns of each kind, in the order to enter them: mounts last, since they change all paths.
NAMESPACES = {"ipc": NEWIPC, "uts": NEWUTS, "net": NEWNET, "cgroup": NEWCGROUP, "mnt": NEWNS}
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def unshare(flags: int) -> None:
    _checked(_libc.unshare(flags), "unshare")


def setns(fd: int, kind: int) -> None:
    _checked(_libc.setns(fd, kind), "setns")


def die_with_parent(signal_number: int) -> None:
    """Send this process a signal when its parent ends. Called by the child itself; persists across exec."""
    _checked(_libc.prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0), "prctl(PR_SET_PDEATHSIG)")


def adopt_orphans() -> None:
    """Make this process the parent of orphaned descendants, so that it can end them."""
    _checked(_libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl(PR_SET_CHILD_SUBREAPER)")


def enter(pid: int, kinds: tuple[str, ...] = tuple(NAMESPACES)) -> None:
    """Move this thread (for `mnt`: a process of one thread) into the namespaces of a process. Raises OSError."""
    fds = [(os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC), NAMESPACES[kind]) for kind in kinds]
    for fd, flag in fds:
        setns(fd, flag)
        os.close(fd)


class PidNamespaceForChildren:
    """Context in which a fork creates the child in the PID namespace of a process, or in a new one if pid is None."""

    def __init__(self, pid: int | None) -> None:
        self._pid = pid

    def __enter__(self) -> None:
        if self._pid is None:
            unshare(NEWPID)
        else:
            _set_pid_namespace(f"/proc/{self._pid}/ns/pid")

    def __exit__(self, *_: object) -> None:
        _set_pid_namespace("/proc/self/ns/pid")


def _set_pid_namespace(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        setns(fd, NEWPID)
    finally:
        os.close(fd)


def start_time(pid: int) -> int | None:
    """Return a process' start time in clock ticks since boot; together with the PID, it identifies a process uniquely.
    None if the process does not exist or is dead."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])
