"""From the disks that were made to what libvirt is told of them: buses, names, order. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from nova.virt.libvirt.folders import DiskRecord
from nova.virt.libvirt.properties import Wishes, WrongValue
from nova.virt.libvirt.xml.specs import Backing, DiskSpec

PREFIXES = {"virtio": "vd", "scsi": "sd", "sata": "sd", "usb": "sd", "ide": "hd", "fdc": "fd"}
LETTERS = "abcdefghijklmnopqrstuvwxyz"

#: Extra spec -> element of libvirt's iotune.
THROTTLES = {f"quota:disk_{name}": name
             for name in ("read_bytes_sec", "write_bytes_sec", "total_bytes_sec", "read_iops_sec", "write_iops_sec",
                          "total_iops_sec")}


class Slots:
    """Hands out device names: each bus counts by itself, but buses that share a prefix share the count."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def take(self, bus: str) -> str:
        prefix = PREFIXES[bus]
        number = self._used.get(prefix, 0)
        if number >= len(LETTERS) or (bus == "ide" and number >= 4):
            raise WrongValue(name="hw_disk_bus", value=bus, reason="the guest has more disks than this bus takes")
        self._used[prefix] = number + 1
        return prefix + LETTERS[number]


def disk_specs(disks: Iterable[DiskRecord], folder: Path, wishes: Wishes, cdrom_bus: str, cache: str,
               discard: str | None = None, extra_specs: Mapping[str, str] | None = None) -> tuple[DiskSpec, ...]:
    """Root first; only it is booted from."""
    slots, specs = Slots(), []
    for disk in disks:
        bus = cdrom_bus if disk.device == "cdrom" else (wishes.disk_bus or "virtio")
        specs.append(DiskSpec(
            path=str(folder / disk.name), format=disk.format, target=slots.take(bus), bus=bus, device=disk.device,
            cache=cache, discard=discard if disk.device == "disk" else None, boot_order=int(disk.kind == "root"),
            backing=Backing(disk.backing, disk.backing_format or "raw") if disk.backing else None,
            packed=wishes.packed_ring, throttle=throttles(extra_specs or {}) if disk.device == "disk" else ()))
    return tuple(specs)


def throttles(extra_specs: Mapping[str, str]) -> tuple[tuple[str, int], ...]:
    found = []
    for key, element in THROTTLES.items():
        if key in extra_specs:
            if not extra_specs[key].isdecimal():
                raise WrongValue(name=key, value=extra_specs[key], reason="it is no number")
            found.append((element, int(extra_specs[key])))
    return tuple(found)
