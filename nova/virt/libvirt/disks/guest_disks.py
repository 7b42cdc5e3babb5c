"""All disks of a guest (``nova.virt.interface.Disks``): created for an order, and removed with the guest's files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from nova import errors, failures
from nova.model.guest.orders import BuildOrder
from nova.model.image.images import Image
from nova.privileged import disk_exports
from nova.virt import image_files
from nova.virt.image_clones import CloneParent
from nova.virt.interface import LocalImages
from nova.virt.libvirt.disks import plan
from nova.virt.libvirt.disks.backends.files import scratch
from nova.virt.libvirt.disks.config_drive import ConfigDrive
from nova.virt.libvirt.disks.folders import Folder, Folders
from nova.virt.libvirt.disks.maker import DiskMaker
from nova.virt.libvirt.disks.plan import KERNEL, RAMDISK
from nova.virt.libvirt.disks.records import DiskRecord
from nova.virt.libvirt.disks.refusals import convert_tool_errors
from nova.virt.libvirt.disks.tpm import Tpms
from nova.virt.libvirt.settings import LibvirtSettings


@dataclass(frozen=True, kw_only=True)
class LibvirtDisks:
    settings: LibvirtSettings
    folders: Folders
    maker: DiskMaker
    config_drive: ConfigDrive
    tpms: Tpms

    def create_disks(self, order: BuildOrder, images: LocalImages | None, parent: CloneParent | None = None) -> None:
        folder = self.folders.of(order.server_uuid)
        base = parent or base_of(order.image if plan.has_image_disk(order) else None, images)
        if base is not None and order.image is not None and order.image.disk_format != "iso":
            root_gb = next((disk.size_gb for disk in plan.wanted_disks(order) if disk.kind == "root"), 0)
            if root_gb:
                image_files.check_size(order.image, base.size_bytes, root_gb)
        with convert_tool_errors():
            folder.make()
            folder.keep_order(order)
            made = {disk.name: disk for disk in folder.disks() if self.maker.exists(folder, disk)}
            disks = tuple(made.get(disk.name, disk) for disk in plan.plan(order, self.settings, base))
            folder.keep_disks(disks)
            self.maker.make(order, folder, disks, base)
            for image, name in ((order.kernel, KERNEL), (order.ramdisk, RAMDISK)):
                if image is not None and images is not None and not folder.file(name).exists():
                    self.maker.copy(images.path(image.id), folder, name)

    def remove_disks(self, server_uuid: str, keep: frozenset[str] = frozenset(), spare_pooled: bool = False) -> None:
        folder = self.folders.of(server_uuid)
        self.tpms.remove(server_uuid, folder)
        if not folder.owned:  # on shared storage, the guest now belongs to another host
            return folder.leave()
        disk_exports.withdraw(folder.path)
        with convert_tool_errors():
            self.maker.remove(folder, keep, spare_pooled)
        if keep:
            folder.keep_only(keep)
        else:
            folder.remove()

    def write_config_drive(self, order: BuildOrder, files: Mapping[str, bytes]) -> None:
        folder = self.folders.of(order.server_uuid)
        with convert_tool_errors():
            folder.make()
            record = self._write_drive(order.server_uuid, folder, files)
        others = tuple(disk for disk in folder.disks() if disk.kind != "config")
        folder.keep_disks((*others, record))

    def _write_drive(self, server_uuid: str, folder: Folder, files: Mapping[str, bytes]) -> DiskRecord:
        record = plan.pooled(plan.config_drive(self.settings), server_uuid, self.settings)
        if not record.pooled:
            size = self.config_drive.write(folder.file(record.name), files)
        else:
            with scratch(folder, f"{record.name}.new") as file:
                size = self.config_drive.write(file, files)
                self.maker.replace(folder, record, file)
        return msgspec.structs.replace(record, size_bytes=size)

    # --- in a pool that all hosts share

    def pooled(self, order: BuildOrder) -> bool:
        disks = plan.plan(order, self.settings, None)
        folder = self.folders.of(order.server_uuid)
        with convert_tool_errors():
            return bool(disks) and all(disk.pooled and self.maker.exists(folder, disk) for disk in disks)

    def leave_disks(self, server_uuid: str) -> None:
        folder = self.folders.of(server_uuid)
        disks = folder.disks()
        if folder.owned and disks and all(disk.pooled for disk in disks):
            self.tpms.remove(server_uuid, folder)
            folder.remove()

    def drop_images(self, names: Sequence[str]) -> None:
        with convert_tool_errors():
            self.maker.backends.drop_bases(names)


def base_of(image: Image | None, images: LocalImages | None) -> plan.Base | None:
    """Return the image's file in this host's cache; None without an image. Raises host.CouldNot."""
    if image is None or images is None:
        return None
    with failures.replaced(KeyError,
            lambda _: errors.host.CouldNot(reason=f"Image {image.id} is not in this host's image cache.")):
        path = images.path(image.id)
    return plan.Base(path, image_files.format_of(path), image_files.virtual_bytes(path))
