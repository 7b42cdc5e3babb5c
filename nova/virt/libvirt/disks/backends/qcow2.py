"""qcow2 files: a root disk lies over its image in the host's cache, where its record names one."""

from __future__ import annotations

from nova.privileged.qemu_img import Overlay
from nova.virt.libvirt.disks.backends.files import PART, scratch, whole
from nova.virt.libvirt.disks.backends.interface import Format
from nova.virt.libvirt.disks.backends.raw import RawFiles
from nova.virt.libvirt.disks.folders import DiskRecord, Folder
from nova.virt.libvirt.disks.plan import Base


class Qcow2Files(RawFiles):
    def create_root(self, folder: Folder, disk: DiskRecord, base: Base | None) -> None:
        if base is None or not disk.backing:
            super().create_root(folder, disk, base)
            return
        with whole(folder.file(disk.name)) as part:
            self._tool.create_overlay(Overlay(str(part), base.path, base.format, disk.size_bytes))
            self._take_space(part, disk)

    def create_empty(self, folder: Folder, disk: DiskRecord, wanted: Format) -> None:
        """Formatted as a raw file, then brought into its format (both are holes but for the file system's tables)."""
        with whole(folder.file(disk.name)) as part, scratch(folder, f"{disk.name}.raw{PART}") as raw:
            self._format(raw, disk.size_bytes, wanted)
            self._tool.convert(str(raw), "raw", str(part), disk.format)
            self._take_space(part, disk)
