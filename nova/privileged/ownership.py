"""Transfer of files that a daemon left in its directories when it ran as root, to the daemons' user.

Running guests are not affected: their disks belong to QEMU's user, and stay so.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable

from nova.privileged.client import forwarded


@forwarded("ownership.adopt", local=("roots", "user", "group"))
def adopt(roots: Iterable[int], user: int, group: int) -> int:
    """Give the directories ``roots`` (by their descriptors), and files of root below them, to the user; return the
    number of files and directories. Links are not followed, and other file systems are not entered. A file with another
    name elsewhere is not changed. Raises OSError."""
    return sum(_adopt(root, (user, group)) for root in roots)


def _adopt(root: int, owner: tuple[int, int]) -> int:
    device = os.fstat(root).st_dev
    count = int(_give(".", root, owner, device))
    for _path, folders, files, place in os.fwalk(".", follow_symlinks=False, dir_fd=root):
        for name in (*folders, *files):
            count += _give(name, place, owner, device)
        folders[:] = [name for name in folders if _is_here(name, place, device)]
    return count


def _give(name: str, place: int, owner: tuple[int, int], device: int) -> bool:
    try:
        opened = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
    except FileNotFoundError:
        return False
    try:
        facts = os.fstat(opened)
        plain = stat.S_ISDIR(facts.st_mode) or (stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1)
        if facts.st_uid != 0 or not plain or facts.st_dev != device:
            return False
        os.chown(f"/proc/self/fd/{opened}", *owner)
        return True
    finally:
        os.close(opened)


def _is_here(name: str, place: int, device: int) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return os.stat(name, dir_fd=place, follow_symlinks=False).st_dev == device
    return False


__all__ = ["adopt"]
