"""A running guest's XML as it shall be at its destination. Pure.

All but where things are must stay as it is: the hypervisor compares what the guest can see.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass, field

from nova.virt.libvirt.xml.build import Element


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where things are. ``bases``: by the name of an overlay's file, path and format of what it lies over; ``vifs``:
    by MAC, bridge and device."""

    folder: str
    vnc_listen: str | None = None
    bases: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    vifs: Mapping[str, tuple[str, str]] = field(default_factory=dict)


def arrival_xml(text: str, folder: str, there: Places) -> str:
    """``folder``: the guest's on its source."""
    domain = ET.fromstring(text)
    for disk in domain.iterfind("devices/disk"):
        _put_base(disk, folder, there.bases)
    for element in domain.iter():
        _put_paths(element, f"{folder}/", f"{there.folder}/")
    for interface in domain.iterfind("devices/interface"):
        _put_vif(interface, there.vifs)
    if there.vnc_listen:
        for graphics in domain.iterfind("devices/graphics[@type='vnc']"):
            _put_listen(graphics, there.vnc_listen)
    return ET.tostring(domain, encoding="unicode")


def copied_disks(text: str) -> tuple[str, ...]:
    """Targets of the disks whose content must be sent where storage is not shared: those that are written to."""
    return tuple(disk.find("target").get("dev", "")  # type: ignore[union-attr]
                 for disk in ET.fromstring(text).iterfind("devices/disk")
                 if disk.get("device", "disk") == "disk" and disk.find("readonly") is None
                 and disk.find("source") is not None)


def cpu_of(text: str) -> tuple[str, str, str | None, str]:
    """A running guest's processor as XML, and what it belongs to: architecture, machine type, virt type."""
    domain = ET.fromstring(text)
    cpu, kind = domain.find("cpu"), domain.find("os/type")
    arch, machine = (kind.get("arch", ""), kind.get("machine")) if kind is not None else ("", None)
    return ET.tostring(cpu, encoding="unicode") if cpu is not None else "", arch, machine, domain.get("type", "")


def _put_paths(element: Element, here: str, there: str) -> None:
    for name, value in element.attrib.items():
        if value.startswith(here):
            element.set(name, there + value.removeprefix(here))
    if element.text and element.text.startswith(here):
        element.text = there + element.text.removeprefix(here)


def _put_base(disk: Element, folder: str, bases: Mapping[str, tuple[str, str]]) -> None:
    source, backing = disk.find("source"), disk.find("backingStore")
    name = (source.get("file") or "").removeprefix(f"{folder}/") if source is not None else ""
    if name not in bases or backing is None:
        return
    path, kind = bases[name]
    for tag, attribute, value in (("source", "file", path), ("format", "type", kind)):
        part = backing.find(tag)
        if part is not None:
            part.set(attribute, value)


def _put_vif(interface: Element, vifs: Mapping[str, tuple[str, str]]) -> None:
    mac, source, target = (interface.find(tag) for tag in ("mac", "source", "target"))
    if mac is None or mac.get("address") not in vifs or source is None or target is None:
        return
    bridge, device = vifs[mac.get("address", "")]
    source.set("bridge", bridge)
    target.set("dev", device)


def _put_listen(graphics: Element, address: str) -> None:
    graphics.set("listen", address)
    for listen in graphics.iterfind("listen[@type='address']"):
        listen.set("address", address)
