"""Boot guests into a rescue system, with their own disks attached (``nova.virt.interface.Rescuing``).

By default the rescue disk is the guest's first one. If the rescue image sets ``hw_rescue_device`` or
``hw_rescue_bus``, the guest's own disks keep their order, and the rescue disk comes last as such a device.

Files are recorded in ``rescue.json`` before they are created, and that record is removed last. So a guest is rescued or
not after a kill at any point, and ``unrescue`` cleans up both. While the record exists, every start boots the rescue
system.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass

from nova import errors, failures
from nova.model.guest.orders import BuildOrder, RescueOrder, boots_from_volume
from nova.model.image.images import Image
from nova.model.server.states import PowerState
from nova.virt.interface import LocalImages
from nova.virt.libvirt.disks import plan
from nova.virt.libvirt.disks.backends.files import PART
from nova.virt.libvirt.disks.config_drive import ConfigDrive
from nova.virt.libvirt.disks.folders import Folder, Folders
from nova.virt.libvirt.disks.guest_disks import base_of
from nova.virt.libvirt.disks.maker import DiskMaker
from nova.virt.libvirt.disks.records import DiskRecord, RescueRecord
from nova.virt.libvirt.disks.refusals import convert_tool_errors
from nova.virt.libvirt.guest.definer import Definer
from nova.virt.libvirt.hypervisor import OFF, LibvirtHypervisor, state_of
from nova.virt.libvirt.settings import LibvirtSettings
from nova.virt.libvirt.xml import running

DISK, CONFIG, KERNEL, RAMDISK = "disk.rescue", "disk.config.rescue", "kernel.rescue", "ramdisk.rescue"
DEVICES = ("disk", "cdrom", "floppy")
BUSES_OF = {"floppy": ("fdc",), "cdrom": ("ide", "sata", "scsi", "usb"),
            "disk": ("ide", "sata", "scsi", "usb", "virtio")}


@dataclass(frozen=True, kw_only=True)
class LibvirtRescuing:
    hypervisor: LibvirtHypervisor
    definer: Definer
    settings: LibvirtSettings
    folders: Folders
    disks: DiskMaker
    config_drive: ConfigDrive

    def rescue(self, order: RescueOrder, images: LocalImages | None, files: Mapping[str, bytes] | None) -> PowerState:
        folder = self.folders.of(order.server_uuid)
        if self._runs_rescued(order.server_uuid, folder):
            return state_of(self.hypervisor, order.server_uuid)
        if not folder.disks() and not boots_from_volume(order.build):
            raise errors.guest.NoDisks(uuid=order.server_uuid, names="all")
        record = self._planned_rescue(order, images, files is not None)
        old = folder.rescue()
        if old is not None and old.image_ids != record.image_ids:
            _clean(folder, old)
        folder.keep_rescue(record)
        with failures.on_failure(lambda: self._give_up(order, folder, record)):
            self._make_rescue(folder, record, images)
            if record.config is not None and files is not None:
                with convert_tool_errors():
                    self.config_drive.write(folder.file(CONFIG), files)
            self.hypervisor.power_off(order.server_uuid)
            self.definer.define(order.build)
            self.hypervisor.start(order.server_uuid)
        return state_of(self.hypervisor, order.server_uuid)

    def _give_up(self, order: RescueOrder, folder: Folder, record: RescueRecord) -> None:
        """Clean up after a failure: the guest is off, and its next start boots its own system."""
        _clean(folder, record)
        with contextlib.suppress(errors.NovaError):  # it may fail for the same reason; the first error is reported
            if self.hypervisor.state(order.server_uuid) in OFF:
                self.definer.define(order.build)

    def unrescue(self, order: BuildOrder) -> PowerState:
        folder, hypervisor = self.folders.of(order.server_uuid), self.hypervisor
        record = folder.rescue()
        if record is not None:
            hypervisor.power_off(order.server_uuid)
            hypervisor.undefine(order.server_uuid)
            _clean(folder, record)
        if hypervisor.state(order.server_uuid) in OFF | {None}:
            self.definer.define(order)
            hypervisor.start(order.server_uuid)
        return state_of(self.hypervisor, order.server_uuid)

    def _runs_rescued(self, server_uuid: str, folder: Folder) -> bool:
        with contextlib.suppress(errors.guest.NotDefined):
            return (folder.rescue() is not None and state_of(self.hypervisor, server_uuid) not in OFF
                    and running.target_of(self.hypervisor.definition(server_uuid),
                                          str(folder.file(DISK))) is not None)
        return False

    def _planned_rescue(self, order: RescueOrder, images: LocalImages | None, with_config: bool) -> RescueRecord:
        base = base_of(order.image, images)
        if base is None:
            raise errors.host.CouldNot(reason=f"Image {order.image.id} was not fetched to this host.")
        kernel, ramdisk, stable = order.image.kernel_id, order.image.ramdisk_id, is_stable(order.image)
        config = plan.config_drive(self.settings) if with_config else None
        return RescueRecord(
            image_ids=tuple(one for one in (order.image.id, kernel, ramdisk) if one), stable=stable,
            disk=_disk(order.image, base, self.settings.cow), kernel=KERNEL if kernel else None,
            ramdisk=RAMDISK if kernel and ramdisk else None,
            config=DiskRecord(kind="config", name=CONFIG, format=config.format, size_bytes=0, device=config.device)
            if config else None, command_line=order.image.properties.get("os_command_line"))

    def _make_rescue(self, folder: Folder, record: RescueRecord, images: LocalImages | None) -> None:
        """Create missing files. Raises HostRefused if there is no space."""
        base = base_of(Image(id=record.image_ids[0]), images)
        with convert_tool_errors():
            if not folder.file(DISK).exists():
                self.disks.make_root(folder, record.disk, base)
            for name, image_id in zip((record.kernel, record.ramdisk), record.image_ids[1:], strict=False):
                base = base_of(Image(id=image_id), images)
                if name and base is not None and not folder.file(name).exists():
                    self.disks.copy(base.path, folder, name)


def is_stable(image: Image) -> bool:
    """Return whether the guest's own disks keep their order, as the rescue image requests."""
    return any(image.properties.get(name) for name in ("hw_rescue_device", "hw_rescue_bus"))


def _disk(image: Image, base: plan.Base, cow: bool) -> DiskRecord:
    """Return a disk of the size of its image. Raises image.WrongProperty for an invalid device or bus."""
    device = image.properties.get("hw_rescue_device") or ("cdrom" if image.disk_format == "iso" else "disk")
    if device not in DEVICES:
        raise errors.image.WrongProperty(name="hw_rescue_device", value=device,
                                         reason=f"it must be one of {', '.join(DEVICES)}")
    bus = image.properties.get("hw_rescue_bus") or (None if is_stable(image) else image.properties.get("hw_disk_bus"))
    bus = bus or ("fdc" if device == "floppy" else None)
    if bus is not None and bus not in BUSES_OF[device]:
        raise errors.image.WrongProperty(name="hw_rescue_bus", value=bus,
                                         reason=f"a {device} needs one of {', '.join(BUSES_OF[device])}")
    return DiskRecord(kind="rescue", name=DISK, format="qcow2" if cow else "raw", device=device, bus=bus,
                      size_bytes=plan.whole_sectors(base.size_bytes), backing=base.path if cow else None,
                      backing_format=base.format if cow else None)


def _clean(folder: Folder, record: RescueRecord) -> None:
    for name in {*record.files(), DISK, CONFIG, KERNEL, RAMDISK}:
        folder.file(name).unlink(missing_ok=True)
        folder.file(f"{name}{PART}").unlink(missing_ok=True)
    folder.keep_rescue(None)
