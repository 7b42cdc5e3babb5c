"""A single disk as libvirt's XML, and the disks on volumes in a guest's definition. Pure."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence

from nova.virt.libvirt.xml.build import Element, add
from nova.virt.libvirt.xml.devices import add_disk
from nova.virt.libvirt.xml.specs import DiskSpec

ALIAS = "ua-"  # the prefix of aliases that are not libvirt's own


def alias_of(volume_id: str) -> str:
    """Return the alias by which a disk on a volume is found again: its target may later belong to another disk."""
    return ALIAS + volume_id


def volume_of(disk: Element) -> str | None:
    """Return the volume of a definition's disk; None if it is not on a volume."""
    alias = disk.find("alias")
    name = alias.get("name", "") if alias is not None else ""
    return name.removeprefix(ALIAS) if name.startswith(ALIAS) else None


def remote_of(disk: Element) -> str | None:
    """Return the host-independent name of a disk: its volume, or its image in a pool. None if the disk is local."""
    source = disk.find("source")
    pooled = source.get("name") if disk.get("type") == "network" and source is not None else None
    return volume_of(disk) or pooled


def find(definition: str, volume_id: str) -> Element | None:
    """Return the disk on that volume."""
    return next((disk for disk in ET.fromstring(definition).iterfind("devices/disk")
                 if volume_of(disk) == volume_id), None)


def target_of(disk: Element) -> str:
    """Return the disk's target (vda)."""
    target = disk.find("target")
    return target.get("dev", "") if target is not None else ""


def source_of(disk: Element) -> str:
    """Return the disk's file, device, or pool/image; empty if it has none."""
    source = disk.find("source")
    return next((source.get(name, "") for name in ("file", "dev", "name") if source.get(name)), "") \
        if source is not None else ""


def targets(definition: str) -> frozenset[str]:
    """Return the targets of all disks."""
    return frozenset(target_of(disk) for disk in ET.fromstring(definition).iterfind("devices/disk"))


def volume_targets(definition: str) -> dict[str, str]:
    """Return the targets of the disks on volumes, by volume."""
    found = {volume_of(disk): target_of(disk) for disk in ET.fromstring(definition).iterfind("devices/disk")}
    return {volume: name for volume, name in found.items() if volume is not None}


def remote_sources(definition: str) -> dict[str, str]:
    """Return the XML of disks on volumes, by volume, and of disks in a pool, by image."""
    found = {remote_of(disk): disk for disk in ET.fromstring(definition).iterfind("devices/disk")}
    return {volume: ET.tostring(disk, encoding="unicode") for volume, disk in found.items() if volume is not None}


def copy_to(spec: DiskSpec) -> str:
    """Return the XML of a copy's destination: only the elements that describe its source."""
    devices = ET.Element("devices")
    add_disk(devices, spec)
    [disk] = devices
    for part in [one for one in disk if one.tag not in ("driver", "source", "auth", "encryption")]:
        disk.remove(part)
    return ET.tostring(disk, encoding="unicode")


def with_source(definition: str, volume_id: str, spec: DiskSpec) -> str:
    """Return the definition with the source of that volume's disk replaced."""
    domain = ET.fromstring(definition)
    [disk] = [one for one in domain.iterfind("devices/disk") if volume_of(one) == volume_id]
    there = ET.fromstring(copy_to(spec))
    disk.set("type", there.get("type", ""))
    for part in [one for one in disk if one.tag in ("driver", "source", "auth", "encryption", "backingStore")]:
        disk.remove(part)
    for number, part in enumerate(there):
        disk.insert(number, part)
    return ET.tostring(domain, encoding="unicode")


def with_chains(definition: str, chains: Mapping[str, Sequence[tuple[str, str]]]) -> str:
    """Return the definition with the complete backing chains of these volumes' files (path, format), the lowest
    last."""
    domain = ET.fromstring(definition)
    for disk in domain.iterfind("devices/disk"):
        volume = volume_of(disk)
        if volume is None or volume not in chains:
            continue
        for part in disk.findall("backingStore"):
            disk.remove(part)
        above = disk
        for path, image_format in chains[volume]:
            above = add(above, "backingStore", type_="file")
            add(above, "format", type_=image_format)
            add(above, "source", file=path)
        add(above, "backingStore")
    return ET.tostring(domain, encoding="unicode")


def device_xml(spec: DiskSpec, definition: str) -> str:
    """Return the XML of a disk to attach to the guest of that definition. A guest with encrypted memory needs buffers
    that the host can write."""
    devices = ET.Element("devices")
    add_disk(devices, spec)
    [disk] = devices
    driver = disk.find("driver")
    if spec.bus == "virtio" and driver is not None and ET.fromstring(definition).find("launchSecurity") is not None:
        driver.set("iommu", "on")
    return ET.tostring(disk, encoding="unicode")
