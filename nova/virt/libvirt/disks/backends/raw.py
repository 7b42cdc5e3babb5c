"""Raw files: copies of their image."""

from __future__ import annotations

from nova.virt.libvirt.disks.backends.files import Files, whole
from nova.virt.libvirt.disks.backends.interface import Format
from nova.virt.libvirt.disks.folders import DiskRecord, Folder
from nova.virt.libvirt.disks.plan import Base


class RawFiles(Files):
    def create_root(self, folder: Folder, disk: DiskRecord, base: Base | None) -> None:
        with whole(folder.file(disk.name)) as part:
            if base is None:
                self._tool.create(str(part), disk.format, disk.size_bytes)
            else:
                self._tool.convert(base.path, base.format, str(part), disk.format)
                if disk.size_bytes > base.size_bytes:
                    self._tool.resize(str(part), disk.format, disk.size_bytes)
            self._take_space(part, disk)

    def create_empty(self, folder: Folder, disk: DiskRecord, wanted: Format) -> None:
        with whole(folder.file(disk.name)) as part:
            self._format(part, disk.size_bytes, wanted)
            self._take_space(part, disk)
