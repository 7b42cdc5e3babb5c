"""Create planned disks (:mod:`plan`) in the back end that each disk's record names, and find and remove them there."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection
from pathlib import Path

from nova import concurrency
from nova.model.guest.orders import BuildOrder
from nova.privileged import filesystems
from nova.privileged.qemu_img import QemuImg
from nova.privileged.runner import CommandRunner
from nova.virt.image_clones import CloneParent
from nova.virt.libvirt.disks.backends import Backends, Format, Space
from nova.virt.libvirt.disks.backends.files import whole
from nova.virt.libvirt.disks.folders import Folder
from nova.virt.libvirt.disks.plan import Base, wanted_disks
from nova.virt.libvirt.disks.records import DiskRecord
from nova.virt.libvirt.settings import LibvirtSettings


class DiskMaker:
    """Maker of disks. ``runner`` runs the tools that create file systems, volumes and pool images."""

    def __init__(self, settings: LibvirtSettings, tool: QemuImg, runner: CommandRunner,
                 host: Callable[[], str] = lambda: "", clock: concurrency.Clock | None = None) -> None:
        self._settings, self.backends = settings, Backends(settings, tool, runner, host, clock)

    def make(self, order: BuildOrder, folder: Folder, disks: tuple[DiskRecord, ...],
             base: Base | CloneParent | None) -> None:
        """Create every missing disk. Raises HostRefused if there is no space."""
        for disk in disks:
            backend = self.backends.of(disk)
            if not backend.exists(folder, disk):
                if disk.kind != "root":
                    wanted = Format(self._filesystem(order, disk), filesystems.label(disk.kind, disk.index))
                    backend.create_empty(folder, disk, wanted)
                elif isinstance(base, CloneParent):
                    self.backends.pooled(disk).create_clone(folder, disk, base, whole=order.image_goes)
                else:
                    backend.create_root(folder, disk, base)
            backend.own(folder, disk)

    def make_root(self, folder: Folder, disk: DiskRecord, base: Base | None) -> None:
        """Create a disk from an image: the root disk, or one for a rescue."""
        self.backends.of(disk).create_root(folder, disk, base)

    def copy(self, source: str, folder: Folder, name: str) -> None:
        """Copy a cached file that the guest needs at each start (kernel, ramdisk), so that the cache may drop it."""
        with whole(folder.file(name)) as part:
            part.touch(mode=0o600)
            concurrency.run_in_thread(shutil.copyfile, source, part)

    def exists(self, folder: Folder, disk: DiskRecord) -> bool:
        """Return whether the complete disk exists in the back end that its record names."""
        return self.backends.of(disk).exists(folder, disk)

    def source(self, folder: Folder, disk: DiskRecord) -> str:
        """Return the name by which qemu-img reads the disk, in its record's format."""
        return self.backends.of(disk).source(folder, disk)

    def remove(self, folder: Folder, keep: Collection[str] = (), spare_pooled: bool = False) -> None:
        """Remove all disks outside the guest's folder, except the kinds in ``keep``; files are removed with the folder.
        ``spare_pooled``: disks in a pool stay, without an owner."""
        for disk in folder.disks():
            if disk.pooled and spare_pooled:
                self.backends.pooled(disk).clear_owner(folder, disk)
            elif disk.store != "file" and disk.kind not in keep:
                self.backends.of(disk).remove(folder, disk)

    def replace(self, folder: Folder, disk: DiskRecord, file: Path) -> None:
        """Replace the content of a disk in a pool with that of a file."""
        self.backends.pooled(disk).replace(folder, disk, file)

    def space(self) -> Space:
        """Return the space of the back end for new disks."""
        return self.backends.space()

    def _filesystem(self, order: BuildOrder, disk: DiskRecord) -> str:
        asked = next((one.format for one in wanted_disks(order)
                      if (one.kind, one.index) == (disk.kind, disk.index)), None)
        os_type = order.image.properties.get("os_type") if order.image else None
        return filesystems.choose(disk.kind, asked, self._settings.ephemeral_format, os_type)
