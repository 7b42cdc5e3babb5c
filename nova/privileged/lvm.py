"""Logical volumes of one volume group: argument lists, run one by one. Sizes in bytes; LVM rounds up to its extents."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from nova import errors
from nova.privileged.client import forwarded
from nova.privileged.runner import CommandRunner, Completed

NO_SPACE = "insufficient free space"
SHRED_PASSES = 3


class Clearing(NamedTuple):
    """Treatment of a removed volume's content: ``way`` is zero, shred or none; ``most_bytes`` 0: all of it."""

    way: str = "zero"
    most_bytes: int = 0


class Lvm:
    """The volume group ``group``."""

    def __init__(self, group: str, runner: CommandRunner, clearing: Clearing = Clearing()) -> None:  # noqa: B008 - immutable
        self._group, self._runner, self._clearing = group, runner, clearing

    def sent_along(self) -> Mapping[str, object]:
        """Return the group; the helper uses its own setting for clearing."""
        return {"group": self._group}

    @forwarded("lvm.volumes")
    def volumes(self) -> Mapping[str, int]:
        """Return name -> size of every volume. Raises host.Lvm if there is no such group."""
        done = self._run("list its volumes", ["lvs", "--noheadings", "--nosuffix", "--units", "b", "--separator", ",",
                                              "-o", "lv_name,lv_size", self._group])
        rows = (line.strip().partition(",") for line in done.stdout.splitlines() if line.strip())
        return {name: int(size) for name, _comma, size in rows}

    @forwarded("lvm.space")
    def space(self) -> tuple[int, int]:
        """Return the group's total size and free space."""
        done = self._run("read its size", ["vgs", "--noheadings", "--nosuffix", "--units", "b", "--separator", ",",
                                           "-o", "vg_size,vg_free", self._group])
        total, _comma, free = done.stdout.strip().partition(",")
        return int(total), int(free)

    def device(self, name: str) -> str:
        return f"/dev/{self._group}/{name}"

    @forwarded("lvm.create")
    def create(self, name: str, size_bytes: int) -> None:
        """Create a volume. Its content is what the last volume left there: see ``remove``. Raises host.DiskFull."""
        self._run("create a volume", ["lvcreate", "-q", "--yes", "--wipesignatures", "n", "-L", f"{size_bytes}b",
                                      "-n", name, self._group])

    @forwarded("lvm.rename")
    def rename(self, old: str, new: str) -> None:
        """Rename a volume. Raises host.Lvm if volume ``old`` does not exist, or if volume ``new`` does
        (lvrename(8))."""
        self._run("rename a volume", ["lvrename", "-q", self._group, old, new])

    @forwarded("lvm.grow")
    def grow(self, name: str, size_bytes: int) -> None:
        """Extend a volume, unless it is as large. Raises host.DiskFull."""
        if self.volumes().get(name, 0) < size_bytes:
            self._run("extend a volume", ["lvextend", "-q", "--yes", "-L", f"{size_bytes}b", f"{self._group}/{name}"])

    @forwarded("lvm.remove")
    def remove(self, name: str) -> None:
        """Clear the volume, and free its space. Does nothing if it does not exist."""
        size = self.volumes().get(name)
        if size is None:
            return
        for argv in clearing_argvs(self._clearing, self.device(name), size):
            self._run("clear a volume", argv)
        self._run("remove a volume", ["lvremove", "-q", "-f", f"{self._group}/{name}"])

    def _run(self, task: str, argv: list[str]) -> Completed:
        done = self._runner.run(argv, ok=range(-64, 256))
        if done.code:
            complaint = (done.stderr or done.stdout).strip()
            if NO_SPACE in complaint:
                raise errors.host.DiskFull(what="a disk", host=os.uname().nodename)
            raise errors.host.Lvm(task=task,
                                  reason=complaint.splitlines()[-1][:300] if complaint else f"exit {done.code}")
        return done


def clearing_argvs(clearing: Clearing, device: str, size_bytes: int) -> list[list[str]]:
    """Return the commands that overwrite a volume, so that the next user of its space cannot read it."""
    length = min(size_bytes, clearing.most_bytes or size_bytes)
    if clearing.way == "none":
        return []
    if clearing.way == "shred":
        return [["shred", "-n", str(SHRED_PASSES), "-s", str(length), device]]
    return [["blkdiscard", "--zeroout", "--length", str(length), device]]
