"""What is noted of a guest's parts beside it (:mod:`nova.virt.libvirt.disks.folders`): disks, interfaces, volumes."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import Json, Value


class DiskRecord(Value):
    """A disk as it was made. ``name`` is its file beside the guest; ``backing`` the file an overlay lies over."""

    kind: str  # root, ephemeral, swap, config, rescue
    index: int = 0
    name: str
    format: str
    size_bytes: int
    device: str = "disk"
    backing: str | None = None
    backing_format: str | None = None
    bus: str | None = None  # None: as the image's properties say
    store: str = "file"  # file (beside the guest), lvm or rbd: see disks/backends
    place: str = ""  # where the last two keep it: volume group/volume, pool/image

    @property
    def pooled(self) -> bool:
        """Whether every host reaches it where it is, so that no move takes it anywhere."""
        return self.store == "rbd"


class RescueRecord(Value):
    """What was made for a rescue (files beside the guest), written down before any of it is made.

    ``stable``: the guest's own disks keep their places, and the rescue disk comes after them.
    """

    image_ids: tuple[str, ...]
    disk: DiskRecord
    stable: bool = False
    kernel: str | None = None
    ramdisk: str | None = None
    config: DiskRecord | None = None
    command_line: str | None = None

    def files(self) -> tuple[str, ...]:
        """Names of all files that were made for the rescue: disk, kernel, ramdisk, config drive."""
        return tuple(name for name in (self.disk.name, self.kernel, self.ramdisk,
                                       self.config.name if self.config else None) if name)

    def shown(self, own: tuple[DiskRecord, ...]) -> tuple[DiskRecord, ...]:
        """The disks that the rescue system sees, of the guest's own ones and the rescue's."""
        if self.config is not None:
            own = (*(disk for disk in own if disk.kind != "config"), self.config)
        return (*own, self.disk) if self.stable else (self.disk, *own)


class PlugRecord(Value):
    """An interface as it was plugged."""

    id: str
    device: str
    bridge: str
    kind: str = "bridge"  # of nova.virt.libvirt.vifs.KINDS
    details: Mapping[str, str] = {}  # what its kind needs to unplug it


class DeviceRecord(Value):
    """A volume that is a device of this host's, as os-brick connected it.

    ``words``: the back end's, without secrets. ``shared_targets``, ``service_uuid``: with whom hosts take turns
    (:class:`nova.model.volumes.VolumeConnection`). ``found``: os-brick's word of the device; {}: it was not found yet.
    """

    words: Mapping[str, Json] = {}
    shared_targets: bool | None = False
    service_uuid: str = ""
    found: Mapping[str, Json] = {}

    @property
    def identity(self) -> str:
        """What no other device has: its WWN; empty: its kind has none."""
        return str(self.found.get("scsi_wwn") or "")


class VolumeRecord(Value):
    """A volume as this host reaches it: enough to define the guest, to reach the volume again after a reboot of the
    host, and to let it go. It has no secrets, only their names.

    ``store``: what QEMU opens: file, block or rbd. ``target``: the name that the guest's definition has for it.
    ``encrypted``: with LUKS; libvirt's secret with its passphrase has the volume's id.
    """

    volume_id: str
    kind: str  # of nova.virt.libvirt.volumes.kinds.KINDS
    store: str = "file"
    path: str = ""  # file, device, or pool/image
    format: str = "raw"
    hosts: tuple[tuple[str, str], ...] = ()  # Ceph's monitors: address, port
    user: str = ""  # as whom Ceph is reached
    secret: str = ""  # uuid of libvirt's secret with that user's key
    export: str = ""  # NFS's
    mount: str = ""  # where that is mounted
    options: str = ""  # with which options
    readonly: bool = False
    discard: bool = False
    throttle: tuple[tuple[str, int], ...] = ()  # (element of libvirt's iotune, value)
    blocks: tuple[int | None, int | None] = (None, None)  # bytes: logical, physical
    encrypted: bool = False
    device: DeviceRecord | None = None  # of a volume that os-brick connects
    target: str = ""
