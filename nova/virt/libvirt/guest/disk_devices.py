"""Build the specs of a guest's local disks: buses, names, order. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from nova import errors
from nova.virt.libvirt.disks.records import DiskRecord
from nova.virt.libvirt.properties import RequestedProperties
from nova.virt.libvirt.settings import LibvirtSettings
from nova.virt.libvirt.xml.specs import Backing, DiskSpec, RbdAccess

PREFIXES = {"virtio": "vd", "scsi": "sd", "sata": "sd", "usb": "sd", "ide": "hd", "fdc": "fd"}
KINDS = {"file": "file", "lvm": "block", "rbd": "network"}
LETTERS = "abcdefghijklmnopqrstuvwxyz"

#: Extra spec -> element of libvirt's iotune.
THROTTLES = {f"quota:disk_{name}": name
             for name in ("read_bytes_sec", "write_bytes_sec", "total_bytes_sec", "read_iops_sec", "write_iops_sec",
                          "total_iops_sec")}


class Slots:
    """Allocator of device names, each used once. ``used``: names that a guest already has."""

    def __init__(self, used: Iterable[str] = ()) -> None:
        self._used = set(used)

    def take(self, bus: str, wanted: str = "") -> str:
        """Return the first free name, or the ``wanted`` name if it is free. Buses with the same prefix share names."""
        prefix = PREFIXES[bus]
        names = [prefix + letter for letter in LETTERS[:4 if bus == "ide" else None]]
        free = [name for name in names if name not in self._used]
        if not free:
            raise errors.image.WrongProperty(name="hw_disk_bus", value=bus,
                                             reason="the guest has more disks than this bus supports")
        name = wanted if wanted in free else free[0]
        self._used.add(name)
        return name


@dataclass(frozen=True, kw_only=True)
class Storage:
    """The host's disk options; ``cache`` by disk type. ``preallocated``: raw files are fully allocated."""

    cache: Mapping[str, str]  # file, block, network
    discard: str | None = None
    preallocated: bool = False
    rbd: RbdAccess = RbdAccess()

    @staticmethod
    def of(settings: LibvirtSettings, host_cache: str) -> Storage:
        """Return the options of the settings. ``host_cache``: the mode that this host's file system supports."""
        return Storage(
            cache={"file": host_cache, "block": settings.block_cache_mode, "network": settings.network_cache_mode},
            discard=settings.discard, preallocated=settings.preallocate,
            rbd=RbdAccess(settings.rbd_conf, settings.rbd_user, settings.rbd_secret))


def disk_specs(disks: Iterable[DiskRecord], folder: Path, requested: RequestedProperties, cdrom_bus: str,
               storage: Storage,
               extra_specs: Mapping[str, str] | None = None, slots: Slots | None = None) -> tuple[DiskSpec, ...]:
    """Return the disks. Only the rescue disk, if there is one, else the root disk, is bootable. ``slots``: names shared
    with the guest's other disks."""
    disks, slots, specs = tuple(disks), slots or Slots(), []
    bootable = "rescue" if any(disk.kind == "rescue" for disk in disks) else "root"
    for disk in disks:
        bus = disk.bus or (cdrom_bus if disk.device == "cdrom" else (requested.disk_bus or "virtio"))
        writable = disk.device == "disk"
        specs.append(DiskSpec(
            path=path_of(disk, folder), format=disk.format, target=slots.take(bus), bus=bus, device=disk.device,
            block=disk.store == "lvm", rbd=storage.rbd if disk.store == "rbd" else None,
            cache=storage.cache[KINDS[disk.store]], io=io_mode(disk, storage),
            discard=storage.discard if writable else None, boot_order=int(disk.kind == bootable),
            backing=Backing(disk.backing, disk.backing_format or "raw") if disk.backing else None,
            packed=requested.packed_ring, throttle=throttles(extra_specs or {}) if writable else ()))
    return tuple(specs)


def path_of(disk: DiskRecord, folder: Path) -> str:
    """Return the disk's source as libvirt names it."""
    paths = {"file": str(folder / disk.name), "lvm": f"/dev/{disk.place}", "rbd": disk.place}
    return paths[disk.store]


def io_mode(disk: DiskRecord, storage: Storage) -> str | None:
    """Return native, QEMU's fastest mode, if it cannot block the guest: with direct I/O, and nothing to allocate. Else
    None, for QEMU's default, threads."""
    ready = disk.store == "lvm" or (disk.store == "file" and disk.format == "raw" and storage.preallocated)
    direct = storage.cache[KINDS[disk.store]] in ("none", "directsync")
    return "native" if ready and direct and disk.device == "disk" else None


def throttles(extra_specs: Mapping[str, str]) -> tuple[tuple[str, int], ...]:
    """Return a disk's limits from the flavor's ``quota:disk_*``: (libvirt's element of iotune, bytes or requests per
    second). Raises image.WrongProperty if a value is not a number."""
    found = []
    for key, element in THROTTLES.items():
        if key in extra_specs:
            if not extra_specs[key].isdecimal():
                raise errors.image.WrongProperty(name=key, value=extra_specs[key], reason="it is not a number")
            found.append((element, int(extra_specs[key])))
    return tuple(found)
