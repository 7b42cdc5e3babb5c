"""Files of guests that nova may not read or write at times: a disk belongs to QEMU's user while its guest runs, and
possibly to root afterwards; a console log belongs to virtlogd.

As root, each function opens the file. Without root's privileges it also tries that, and asks the helper if access is
denied.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from nova.privileged.client import forwarded, in_use
from nova.privileged.opened_files import OpenedFile, descriptor_of
from nova.privileged.runner import CommandRunner

LONGEST_HEAD = 1 << 16
LONGEST_TAIL = 4 << 20
LUKS_MAGIC = b"LUKS\xba\xbe"
LUKS_HEADER = 108  # bytes of the header up to the data offset
PLAIN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def head(path: str | Path, length: int) -> bytes:
    """Return the first ``length`` bytes. Raises OSError."""
    try:
        with open(path, "rb") as source:
            return source.read(length)
    except PermissionError:
        if in_use() is None:
            raise
        return read_head(str(path), length)


def tail(path: str | Path, length: int) -> bytes | None:
    """Return the last ``length`` bytes; None if there is no such regular file."""
    with contextlib.suppress(OSError):
        return read_tail(str(path), length) if in_use() is not None else _tail(str(path), length)
    return None


@forwarded("guest_files.read_head")
def read_head(path: str, length: int) -> bytes:
    """Return the first ``length`` bytes, like ``head``."""
    with open(_place(path), "rb") as source:
        return source.read(length)


@forwarded("guest_files.read_tail")
def read_tail(path: str, length: int) -> bytes | None:
    """Return the last ``length`` bytes, like ``tail``. Raises OSError."""
    return _tail(path, length)


@forwarded("guest_files.luks_header")
def luks_header(path: str) -> bytes:
    """Return the beginning of a device's LUKS header; empty if it has none. Raises OSError."""
    with open(_place(path), "rb") as volume:
        found = volume.read(LUKS_HEADER)
    return found if found.startswith(LUKS_MAGIC) else b""


def take(path: str | Path) -> None:
    """Take over ownership of a guest's file that another user (QEMU, libvirt) created for nova. Raises OSError."""
    if in_use() is not None and os.stat(path, follow_symlinks=False).st_uid != os.geteuid():
        give(str(path))


@forwarded("guest_files.give")
def give(path: str) -> None:
    """Give the file to the owner of its directory. Raises OSError."""
    folder = os.stat(os.path.dirname(path), follow_symlinks=False)
    os.chown(_place(path), folder.st_uid, folder.st_gid)


def mark_used(path: str | Path) -> None:
    """Mark the file as used now. Raises OSError."""
    try:
        os.utime(path)
    except PermissionError:
        if in_use() is None:
            raise
        touch(str(path))


@forwarded("guest_files.touch")
def touch(path: str) -> None:
    """Mark the file as used now, like ``mark_used``."""
    os.utime(_place(path))


@forwarded("guest_files.copy", local=("runner",))
def copy(runner: CommandRunner, source: str, target: str) -> None:
    """Copy a file and keep its holes; ``target`` is created if needed. Raises host.CommandFailed."""
    runner.run(["cp", "--reflink=auto", "--sparse=always", "--", _place(source), _place(target)])


def _tail(path: str, length: int) -> bytes | None:
    flags = PLAIN if descriptor_of(path) is None else PLAIN & ~os.O_NOFOLLOW  # its path is a kernel link
    with contextlib.suppress(FileNotFoundError), os.fdopen(os.open(_place(path), flags), "rb") as source:
        facts = os.fstat(source.fileno())
        if stat.S_ISREG(facts.st_mode):
            source.seek(max(0, facts.st_size - length))
            return source.read(length)
    return None


def _place(path: str) -> str:
    return path.place if isinstance(path, OpenedFile) else path


__all__ = ["LONGEST_HEAD", "LONGEST_TAIL", "LUKS_HEADER", "LUKS_MAGIC", "copy", "give", "head", "luks_header",
           "mark_used", "read_head", "read_tail", "tail", "take", "touch"]
