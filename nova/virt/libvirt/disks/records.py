"""Records in a guest's folder (:mod:`nova.virt.libvirt.disks.folders`): disks, interfaces, volumes."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import Json, Value


class DiskRecord(Value):
    """A created disk. ``name``: its file in the guest's folder; ``backing``: the backing file of an overlay."""

    kind: str  # root, ephemeral, swap, config, rescue
    index: int = 0
    name: str
    format: str
    size_bytes: int
    device: str = "disk"
    backing: str | None = None
    backing_format: str | None = None
    bus: str | None = None  # None: from the image's properties
    store: str = "file"  # file (in the guest's folder), lvm or rbd: see disks/backends
    place: str = ""  # of lvm and rbd: volume group/volume, pool/image

    @property
    def pooled(self) -> bool:
        """Return whether every host can access the disk in place, so that a move does not copy it."""
        return self.store == "rbd"


class RescueRecord(Value):
    """The files of a rescue in the guest's folder, recorded before any of them is created.

    ``stable``: the guest's own disks keep their order, and the rescue disk comes last.
    """

    image_ids: tuple[str, ...]
    disk: DiskRecord
    stable: bool = False
    kernel: str | None = None
    ramdisk: str | None = None
    config: DiskRecord | None = None
    command_line: str | None = None

    def files(self) -> tuple[str, ...]:
        """Return the names of all files that were created for the rescue: disk, kernel, ramdisk, config drive."""
        return tuple(name for name in (self.disk.name, self.kernel, self.ramdisk,
                                       self.config.name if self.config else None) if name)

    def shown(self, own: tuple[DiskRecord, ...]) -> tuple[DiskRecord, ...]:
        """Return the disks that the rescue system sees, from the guest's own and the rescue's."""
        if self.config is not None:
            own = (*(disk for disk in own if disk.kind != "config"), self.config)
        return (*own, self.disk) if self.stable else (self.disk, *own)


class PlugRecord(Value):
    """A plugged interface."""

    id: str
    device: str
    bridge: str
    kind: str = "bridge"  # of nova.virt.libvirt.vifs.KINDS
    details: Mapping[str, str] = {}  # data that its kind needs to unplug it


class DeviceRecord(Value):
    """A volume that is a device of this host, as os-brick connected it.

    ``words``: the back end's connection data, without secrets. ``shared_targets``, ``service_uuid``: the lock shared by
    hosts (:class:`nova.model.volumes.VolumeConnection`). ``found``: os-brick's device data; {}: not connected yet.
    """

    words: Mapping[str, Json] = {}
    shared_targets: bool | None = False
    service_uuid: str = ""
    found: Mapping[str, Json] = {}

    @property
    def identity(self) -> str:
        """Return the device's WWN, which no other device has; empty if its kind has none."""
        return str(self.found.get("scsi_wwn") or "")


class VolumeRecord(Value):
    """A volume on this host: the data to define the guest, to reconnect the volume after a reboot of the host, and to
    disconnect it. It contains names of secrets, but no secrets.

    ``store``: the type that QEMU opens: file, block or rbd. ``target``: its name in the guest's definition.
    ``encrypted``: with LUKS; the libvirt secret with its passphrase has the volume's id.
    """

    volume_id: str
    kind: str  # of nova.virt.libvirt.volumes.kinds.KINDS
    store: str = "file"
    path: str = ""  # file, device, or pool/image
    format: str = "raw"
    hosts: tuple[tuple[str, str], ...] = ()  # Ceph's monitors: address, port
    user: str = ""  # Ceph's
    secret: str = ""  # uuid of the libvirt secret with that user's key
    export: str = ""  # NFS's
    mount: str = ""  # the export's mount point
    options: str = ""  # mount options
    readonly: bool = False
    discard: bool = False
    throttle: tuple[tuple[str, int], ...] = ()  # (element of libvirt's iotune, value)
    blocks: tuple[int | None, int | None] = (None, None)  # bytes: logical, physical
    encrypted: bool = False
    device: DeviceRecord | None = None  # of a volume that os-brick connects
    target: str = ""
