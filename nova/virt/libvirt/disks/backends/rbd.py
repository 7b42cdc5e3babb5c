"""Images in a Ceph pool: ``place`` of a record is pool/image. A root disk is a clone of its image, which the pool has
once; every host sees the same disks."""

from __future__ import annotations

import contextlib
from pathlib import Path

from nova.privileged.qemu_img import ImageFile, QemuImg
from nova.privileged.rbd import Rbd
from nova.privileged.runner import CommandRunner
from nova.virt.libvirt.disks.backends.files import format_file, scratch
from nova.virt.libvirt.disks.backends.interface import Format, Space
from nova.virt.libvirt.disks.folders import DiskRecord, Folder
from nova.virt.libvirt.disks.plan import Base

PART = ".part"
BASE = "nova-base-"


class RbdDisks:
    shared = True

    def __init__(self, rbd: Rbd, tool: QemuImg, runner: CommandRunner) -> None:
        self._rbd, self._tool, self._runner = rbd, tool, runner

    def exists(self, folder: Folder, disk: DiskRecord) -> bool:
        return self._rbd.size(_name(disk)) is not None

    def create_root(self, folder: Folder, disk: DiskRecord, base: Base | None) -> None:
        part = self._old_part_gone(disk)
        if base is None:
            self._rbd.create(part, disk.size_bytes)
        else:
            self._rbd.clone(self._base(folder, base), part)
            if disk.size_bytes > base.size_bytes:
                self._rbd.resize(part, disk.size_bytes)
        self._rbd.rename(part, _name(disk))

    def create_empty(self, folder: Folder, disk: DiskRecord, wanted: Format) -> None:
        part = self._old_part_gone(disk)
        with scratch(folder, f"{disk.name}.raw{PART}") as raw:
            format_file(self._runner, raw, disk.size_bytes, wanted)
            self._rbd.bring(str(raw), part)
        self._rbd.rename(part, _name(disk))

    def own(self, folder: Folder, disk: DiskRecord) -> None:
        if folder.host and self._rbd.owner(_name(disk)) != folder.host:
            self._rbd.own(_name(disk), folder.host)

    def grow(self, folder: Folder, disk: DiskRecord) -> None:
        if (self._rbd.size(_name(disk)) or 0) < disk.size_bytes:
            self._rbd.resize(_name(disk), disk.size_bytes)

    def source(self, folder: Folder, disk: DiskRecord) -> str:
        return self._rbd.pool.uri(_name(disk))

    def remove(self, folder: Folder, disk: DiskRecord) -> None:
        if self._rbd.owner(_name(disk)) not in ("", folder.host):
            return  # the guest was evacuated, and runs on from this image
        for name in (_name(disk), _name(disk) + PART):
            self._rbd.remove(name)

    def space(self) -> Space:
        return Space(*self._rbd.space())

    def drop_base(self, file_name: str) -> bool:
        """Remove an image of the cache from the pool; False when guests' disks lie over it."""
        name = f"{BASE}{file_name}"
        if self._rbd.size(name) is None:
            return True
        if not self._rbd.thaw(name):
            return False
        self._rbd.remove(name)
        return True

    # --- inside

    def _base(self, folder: Folder, base: Base) -> str:
        """The pool's copy of the image, made by the first host that needs it; another's, should it be quicker."""
        name = f"{BASE}{Path(base.path).name}"
        if self._rbd.frozen(name):
            return name
        if self._rbd.size(name) is None:
            self._bring_base(folder, base, name)
        self._rbd.freeze(name)
        return name

    def _bring_base(self, folder: Folder, base: Base, name: str) -> None:
        part = f"{name}.{folder.path.name}{PART}"  # this guest's own: other hosts may bring the same image
        self._rbd.remove(part)
        with contextlib.ExitStack() as stack:
            path = Path(base.path)
            if base.format != "raw":
                path = stack.enter_context(scratch(folder, f"base.raw{PART}"))
                self._tool.convert(ImageFile(base.path, base.format), ImageFile(str(path), "raw"))
            self._rbd.bring(str(path), part)
        if not self._rbd.rename(part, name):
            self._rbd.remove(part)

    def _old_part_gone(self, disk: DiskRecord) -> str:
        part = _name(disk) + PART
        self._rbd.remove(part)
        return part


def _name(disk: DiskRecord) -> str:
    return disk.place.rpartition("/")[2]
