"""Plan a guest's disks: their files and formats. Pure."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from nova.model.guest.orders import BuildOrder, Disk, boots_from_volume
from nova.virt.image_clones import CloneParent
from nova.virt.libvirt.disks.records import DiskRecord
from nova.virt.libvirt.settings import LibvirtSettings

GIB, MIB = 1 << 30, 1 << 20
CONFIG_NAME = "disk.config"
KERNEL, RAMDISK = "kernel", "ramdisk"  # files of a guest with its own, next to its disks


class Base(NamedTuple):
    """The cached image of a root disk."""

    path: str
    format: str
    size_bytes: int


def plan(order: BuildOrder, settings: LibvirtSettings, base: Base | CloneParent | None) -> tuple[DiskRecord, ...]:
    """Return the root, ephemeral and swap disks, in guest order."""
    ranks = ("root", "ephemeral", "swap")
    wanted = sorted((disk for disk in wanted_disks(order) if disk.kind in ranks),
                    key=lambda disk: (ranks.index(disk.kind), disk.index))
    return tuple(kept(_root(order, disk, settings, base) if disk.kind == "root" else _empty(disk, settings),
                      order.server_uuid, settings) for disk in wanted)


def kept(disk: DiskRecord, server_uuid: str, settings: LibvirtSettings) -> DiskRecord:
    """Return the record with the configured disk storage."""
    if settings.store == "file":
        return disk
    return msgspec.structs.replace(disk, store=settings.store, place=f"{settings.place}/{server_uuid}_{disk.name}")


def pooled(disk: DiskRecord, server_uuid: str, settings: LibvirtSettings) -> DiskRecord:
    """Return the record of a file in the guest's folder, moved to the pool if this host keeps disks in a pool."""
    return kept(disk, server_uuid, settings) if settings.store == "rbd" else disk


def wanted_disks(order: BuildOrder) -> tuple[Disk, ...]:
    """Return the order's disks, or by default those of its flavor."""
    if order.disks:
        return order.disks
    flavor = order.flavor
    disks = [Disk(kind="root", size_gb=flavor.root_gb)] if has_image_disk(order) else []
    if flavor.ephemeral_gb:
        disks.append(Disk(kind="ephemeral", size_gb=flavor.ephemeral_gb))
    if flavor.swap_mb:
        disks.append(Disk(kind="swap", size_mb=flavor.swap_mb))
    return tuple(disks)


def has_image_disk(order: BuildOrder) -> bool:
    """Return whether the guest's root disk is created from its image on this host."""
    return order.image is not None and not boots_from_volume(order)


def config_drive(settings: LibvirtSettings, size_bytes: int = 0) -> DiskRecord:
    """Return the record of a guest's config drive: a CD for iso9660, a disk for vfat. ``size_bytes`` 0: not written
    yet."""
    device = "disk" if settings.config_drive_format == "vfat" else "cdrom"
    return DiskRecord(kind="config", name=CONFIG_NAME, format="raw", size_bytes=size_bytes, device=device)


def _root(order: BuildOrder, disk: Disk, settings: LibvirtSettings, base: Base | CloneParent | None) -> DiskRecord:
    size = disk.size_gb * GIB
    if base is None:
        return DiskRecord(kind="root", name="disk", format=_format(settings), size_bytes=size)
    cdrom = order.image is not None and order.image.disk_format == "iso"
    size = base.size_bytes if cdrom or not size else size
    below = base if settings.cow and isinstance(base, Base) else None
    return DiskRecord(kind="root", name="disk", format=_format(settings), size_bytes=whole_sectors(size),
                      device="cdrom" if cdrom else "disk", backing=below.path if below else None,
                      backing_format=below.format if below else None)


def _empty(disk: Disk, settings: LibvirtSettings) -> DiskRecord:
    name = "disk.swap" if disk.kind == "swap" else f"disk.eph{disk.index}"
    return DiskRecord(kind=disk.kind, index=disk.index, name=name, format=_format(settings),
                      size_bytes=disk.size_mb * MIB if disk.kind == "swap" else disk.size_gb * GIB)


def _format(settings: LibvirtSettings) -> str:
    return "qcow2" if settings.cow else "raw"


def whole_sectors(size_bytes: int) -> int:
    """Round the size up to whole sectors of 512 bytes."""
    return -(-size_bytes // 512) * 512
