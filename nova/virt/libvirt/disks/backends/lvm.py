"""Logical volumes: ``place`` of a record is group/volume. Removed volumes are wiped before their space is reused."""

from __future__ import annotations

from nova.privileged import filesystems
from nova.privileged.lvm import Lvm
from nova.privileged.qemu_img import ImageFile, QemuImg
from nova.privileged.runner import CommandRunner
from nova.virt.libvirt.disks.backends.interface import Format, Space
from nova.virt.libvirt.disks.folders import Folder
from nova.virt.libvirt.disks.plan import Base
from nova.virt.libvirt.disks.records import DiskRecord

PART = ".part"


class LogicalVolumes:
    shared = False

    def __init__(self, lvm: Lvm, tool: QemuImg, runner: CommandRunner) -> None:
        self._lvm, self._tool, self._runner = lvm, tool, runner

    def exists(self, folder: Folder, disk: DiskRecord) -> bool:
        return _name(disk) in self._lvm.volumes()

    def create_root(self, folder: Folder, disk: DiskRecord, base: Base | None) -> None:
        part = self._new_part(disk, max(disk.size_bytes, base.size_bytes if base else 0))
        if base is not None:
            self._tool.fill(ImageFile(base.path, base.format), ImageFile(self._lvm.device(part), "raw"))
        self._lvm.rename(part, _name(disk))

    def create_empty(self, folder: Folder, disk: DiskRecord, wanted: Format) -> None:
        part = self._new_part(disk, disk.size_bytes)
        filesystems.make(self._runner, wanted.name, wanted.label, self._lvm.device(part))
        self._lvm.rename(part, _name(disk))

    def own(self, folder: Folder, disk: DiskRecord) -> None:
        """Do nothing: no other host sees the disk, or the folder names its owner."""

    def grow(self, folder: Folder, disk: DiskRecord) -> None:
        self._lvm.grow(_name(disk), disk.size_bytes)

    def source(self, folder: Folder, disk: DiskRecord) -> str:
        return self._lvm.device(_name(disk))

    def remove(self, folder: Folder, disk: DiskRecord) -> None:
        self._lvm.remove(_name(disk))
        self._lvm.remove(_name(disk) + PART)

    def space(self) -> Space:
        return Space(*self._lvm.space())

    def _new_part(self, disk: DiskRecord, size_bytes: int) -> str:
        part = _name(disk) + PART
        self._lvm.remove(part)
        self._lvm.create(part, size_bytes)
        return part


def _name(disk: DiskRecord) -> str:
    return disk.place.rpartition("/")[2]
