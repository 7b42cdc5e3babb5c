"""Files that other programs read while nova writes them, locks between processes, and kernel settings."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from nova import errors, failures
from nova.privileged.client import forwarded

LOCK_POLL_S = 0.02
LOCK_FILE = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
IPV6_SETTINGS = Path("/proc/sys/net/ipv6/conf")  # in the network namespace of the process


def write_whole(path: Path, text: str, mode: int = 0o644, durable: bool = False) -> bool:
    """Set the file's content to ``text`` atomically; return False if it is unchanged. ``durable``: the file is synced
    to disk before this returns, so that it survives a crash of the machine."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if path.read_text() == text and path.stat().st_mode & 0o777 == mode:
            return False
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)

    def undo() -> None:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
    with failures.on_failure(undo, on=BaseException):
        with open(descriptor, "w") as stream:
            os.fchmod(stream.fileno(), mode)
            stream.write(text)
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        os.replace(temporary, path)
    if durable:
        _keep_names(path.parent)
    return True


def _keep_names(folder: Path) -> None:
    """Sync the directory's list of names to disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def locked(path: Path, timeout_s: float = 60.0) -> Iterator[None]:
    """Hold an exclusive lock that the kernel releases when the process dies. Raises host.LockBusy after ``timeout_s``.

    Polls, since a blocking flock would stop every green thread of the process.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + timeout_s
    # root must not create a file through a link that the directory's owner has put there
    with open(os.open(path, LOCK_FILE, 0o666), "a") as stream:
        while True:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise errors.host.LockBusy(path=str(path), seconds=timeout_s) from None
                time.sleep(LOCK_POLL_S)
        yield


@forwarded("files.enable_forwarding")
def enable_forwarding(switch: Path = Path("/proc/sys/net/ipv4/ip_forward")) -> None:
    """Enable IPv4 forwarding in this network namespace."""
    if switch.read_text().strip() != "1":
        switch.write_text("1\n")


@forwarded("files.enable_forwarding_v6")
def enable_forwarding_v6(settings: Path = IPV6_SETTINGS) -> None:
    """Enable IPv6 forwarding. A forwarding host normally ignores router advertisements, so interfaces on which this
    host learns its own router are set to accept them nevertheless (value 2). Interfaces that are created later
    (``default``), or that have no IPv6, are on the guests' side, where any guest could pose as a router; they are not
    changed."""
    switch = settings / "all" / "forwarding"
    if switch.read_text().strip() == "1":
        return
    for listens in settings.glob("*/accept_ra"):
        speaks = listens.with_name("disable_ipv6").read_text().strip() == "0"
        if listens.parent.name not in ("all", "default") and speaks and listens.read_text().strip() == "1":
            listens.write_text("2\n")
    switch.write_text("1\n")


def speak_ipv6(device: str, on: bool, settings: Path = IPV6_SETTINGS) -> None:
    """Enable or disable the host's own IPv6 on a device, and with it its link-local address. Does nothing on a kernel
    without IPv6, or without that device. Raises OSError."""
    _set(settings / device / "disable_ipv6", "0" if on else "1")


def hear_no_routers(device: str, settings: Path = IPV6_SETTINGS) -> None:
    """Ignore router advertisements on the device, so that no sender there gives the host routes or addresses. Errors as
    above."""
    _set(settings / device / "accept_ra", "0")


def _set(switch: Path, value: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        if switch.read_text().strip() != value:
            switch.write_text(value)
