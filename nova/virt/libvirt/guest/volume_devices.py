"""Build the specs of connected volumes: buses, names, limits. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nova import errors
from nova.model.volumes import BlockDevice
from nova.virt.libvirt.disks.records import VolumeRecord
from nova.virt.libvirt.guest.disk_devices import PREFIXES, Slots
from nova.virt.libvirt.properties import RequestedProperties
from nova.virt.libvirt.settings import LibvirtSettings
from nova.virt.libvirt.xml.disks import alias_of
from nova.virt.libvirt.xml.specs import DiskSpec, RbdAccess

DEVICES = ("disk", "cdrom", "floppy")
DIRECT = ("none", "directsync")


class VolumeContext(NamedTuple):
    """The context of volumes. ``boots``: the guest boots from its own disks (not from a rescue's, and does not run)."""

    server_uuid: str
    asked: RequestedProperties
    cdrom_bus: str
    settings: LibvirtSettings
    boots: bool


def volume_specs(devices: Sequence[BlockDevice], records: Mapping[str, VolumeRecord], context: VolumeContext,
                 slots: Slots) -> tuple[DiskSpec, ...]:
    """Return the volumes, in order. A volume keeps its earlier name if that is free, else it gets the requested one.
    Raises host.VolumeNotConnected; host.VolumeData if the volume cannot be such a device."""
    for device in devices:
        if device.volume_id not in records:
            raise errors.host.VolumeNotConnected(volume=device.volume_id, uuid=context.server_uuid)
    named = {device.volume_id: _wanted(device, records[device.volume_id]) for device in devices}
    first_named = sorted(devices, key=lambda device: not records[device.volume_id].target)
    targets = {device.volume_id: slots.take(_bus(device, context), named[device.volume_id]) for device in first_named}
    return tuple(_spec(device, records[device.volume_id], targets[device.volume_id], context) for device in devices)


def _spec(device: BlockDevice, record: VolumeRecord, target: str, context: VolumeContext) -> DiskSpec:
    cache, rbd = _cache(device, record, context.settings), record.store == "rbd"
    kind = device.device_type or "disk"
    native = not rbd and kind == "disk" and cache in DIRECT and not context.settings.default_volume_io
    return DiskSpec(
        path=record.path, format=record.format, target=target, bus=_bus(device, context), device=kind,
        block=record.store == "block",
        rbd=RbdAccess(user=record.user, secret=record.secret, hosts=record.hosts) if rbd else None,
        cache=cache, io="native" if native else None, discard="unmap" if record.discard else None,
        serial=record.volume_id, alias=alias_of(record.volume_id), readonly=record.readonly,
        shareable=device.multiattach, blocks=record.blocks, throttle=record.throttle, chain=record.format == "raw",
        luks=record.volume_id if record.encrypted else None, packed=context.asked.packed_ring,
        boot_order=_boot_order(device) if context.boots else 0)


def _bus(device: BlockDevice, context: VolumeContext) -> str:
    """Return the bus. Raises host.VolumeData."""
    kind, asked = device.device_type or "disk", context.asked
    if kind not in DEVICES:
        raise errors.host.VolumeData(volume=device.volume_id, reason=f"it cannot be a {kind}, only {DEVICES}")
    usual = {"disk": asked.disk_bus or "virtio", "cdrom": context.cdrom_bus, "floppy": "fdc"}
    bus = device.bus or usual[kind]
    if bus not in PREFIXES:
        raise errors.host.VolumeData(volume=device.volume_id, reason=f"unknown disk bus {bus}")
    return bus


def _cache(device: BlockDevice, record: VolumeRecord, settings: LibvirtSettings) -> str:
    """Return the cache mode; none for a volume that several guests write to, because no host may cache it."""
    modes = {"file": settings.cache_mode or "none", "block": settings.block_cache_mode,
             "rbd": settings.network_cache_mode}
    return "none" if device.multiattach else modes[record.store]


def _wanted(device: BlockDevice, record: VolumeRecord) -> str:
    return record.target or (device.device_name or "").removeprefix("/dev/")


def _boot_order(device: BlockDevice) -> int:
    """Return the boot order, counted from 1; 0: not bootable."""
    return device.boot_index + 1 if device.boot_index is not None and device.boot_index >= 0 else 0
