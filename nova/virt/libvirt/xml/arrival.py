"""The XML of a running guest for its destination. Pure.

Only host-specific paths and addresses may change: the hypervisor compares the guest-visible part.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from nova import errors
from nova.virt.libvirt.xml.build import Element, add
from nova.virt.libvirt.xml.consoles import GuestScreens, put_lines, put_screens
from nova.virt.libvirt.xml.disks import remote_of, volume_of
from nova.virt.libvirt.xml.placement import add_pins, fill_numa_tuning, spelled
from nova.virt.libvirt.xml.specs import PlacementSpec, SerialLine


@dataclass(frozen=True, kw_only=True)
class InterfaceWire:
    """The host side of an interface: libvirt's type, the attributes of its source, the device name (empty: libvirt
    chooses one) and, on Open vSwitch, the port's id."""

    type: str
    source: Mapping[str, str]
    device: str = ""
    port_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class ArrivalPaths:
    """Paths and addresses on the destination.

    ``bases``: by the name of an overlay's file, path and format of its backing file; ``wires``: by MAC, the host side
    of an interface; ``volumes``: by volume (or image in a pool), the disk as the destination defines it; ``vifs``: of
    older releases, by MAC, bridge and device. ``placement`` or ``screens`` None: the destination did not report it (it
    is of an older release, which has at most VNC screens)."""

    folder: str
    vnc_listen: str | None = None
    screens: GuestScreens | None = None
    lines: tuple[SerialLine, ...] = ()
    bases: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    vifs: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    wires: Mapping[str, InterfaceWire] = field(default_factory=dict)
    placement: PlacementSpec | None = None
    volumes: Mapping[str, str] = field(default_factory=dict)


def arrival_xml(text: str, folder: str, there: ArrivalPaths) -> str:
    """Return the guest's XML for the destination. ``folder``: the guest's on its source."""
    domain = ET.fromstring(text)
    for disk in domain.iterfind("devices/disk"):
        _put_remote(disk, there.volumes)
        _put_base(disk, folder, there.bases)
    for element in domain.iter():
        _put_paths(element, f"{folder}/", f"{there.folder}/")
    for interface in domain.iterfind("devices/interface"):
        _put_vif(interface, there.vifs)
        _put_wire(interface, there.wires)
    _put_placement(domain, there.placement)
    put_lines(domain, there.lines)
    if there.screens is not None:
        put_screens(domain, there.screens)
    elif there.vnc_listen:
        put_screens(domain, GuestScreens(vnc=there.vnc_listen))
    return ET.tostring(domain, encoding="unicode")


def copied_disks(text: str) -> tuple[str, ...]:
    """Return the targets of disks to copy if storage is not shared: all writable disks, except volumes and images in a
    pool, which both hosts see."""
    return tuple(disk.find("target").get("dev", "")  # type: ignore[union-attr]
                 for disk in ET.fromstring(text).iterfind("devices/disk")
                 if disk.get("device", "disk") == "disk" and disk.find("readonly") is None
                 and disk.find("source") is not None and remote_of(disk) is None)


def has_direct_volumes(text: str) -> bool:
    """Return whether the guest has files of the volume service and writes all of them without the host's page cache.
    The destination then reads current data, even if libvirt does not recognize the file system as shared."""
    modes = [disk.find("driver").get("cache", "")  # type: ignore[union-attr]
             for disk in ET.fromstring(text).iterfind("devices/disk")
             if disk.get("type") == "file" and volume_of(disk) is not None]
    return bool(modes) and set(modes) <= {"none", "directsync"}


def shape_of(text: str) -> str:
    """Return the placement of a running guest that cannot change: its number of NUMA nodes, and huge page sizes in
    KiB."""
    return _shape(ET.fromstring(text))


def check_alike(shape: str, there: PlacementSpec) -> None:
    """Raise move.UnlikePlace unless ``shape``, a running guest's (see :func:`shape_of`), is that of the destination."""
    wanted = _spelled_shape(len(there.nodes) if there.numa else 0, {node.page_kb for node in there.nodes
                                                                    if node.page_kb})
    if shape != wanted:
        raise errors.move.UnlikePlace(reason=f"it has {shape}, and on the destination it would have {wanted}")


def cpu_of(text: str) -> tuple[str, str, str | None, str]:
    """Return a running guest's processor as XML, with its architecture, machine type and virt type."""
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


def _put_remote(disk: Element, places: Mapping[str, str]) -> None:
    """Replace the source of a volume, or of an image in a pool, with the destination's; the rest of the disk stays.
    Raises move.BadDestination."""
    remote = remote_of(disk)
    if remote is None:
        return
    if remote not in places:
        raise errors.move.BadDestination(reason=f"it did not report its connection to volume {remote}")
    there = ET.fromstring(places[remote])
    disk.set("type", there.get("type", ""))
    for tag in ("source", "auth", "backingStore"):
        for part in disk.findall(tag):
            disk.remove(part)
        disk.extend(there.findall(tag))


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


def _put_wire(interface: Element, wires: Mapping[str, InterfaceWire]) -> None:
    """Replace the host side of an interface completely: a destination may have another kind of switch."""
    mac = interface.find("mac")
    wire = wires.get(mac.get("address", "")) if mac is not None else None
    if wire is None:
        return
    interface.set("type", wire.type)
    for tag in ("source", "target", "virtualport"):
        for part in interface.findall(tag):
            interface.remove(part)
    if wire.source:
        add(interface, "source", **wire.source)
    if wire.port_id:
        add(add(interface, "virtualport", type_="openvswitch"), "parameters", interfaceid=wire.port_id)
    if wire.device:
        add(interface, "target", dev=wire.device)


def _put_placement(domain: Element, there: PlacementSpec | None) -> None:
    """Replace CPU pins and host cells with the destination's. Raises move.UnlikePlace if the number of NUMA nodes or
    the page sizes differ, which cannot change while the guest runs."""
    tuning, numa = domain.find("cputune"), domain.find("numatune")
    if there is None:
        if numa is not None or (tuning is not None and tuning.find("vcpupin") is not None):
            raise errors.move.UnlikePlace(reason="the destination did not report one")
        return
    check_alike(_shape(domain), there)
    vcpu = domain.find("vcpu")
    if vcpu is not None:
        vcpu.attrib.pop("cpuset", None)
        if there.cpuset:
            vcpu.set("cpuset", spelled(there.cpuset))
    tuning = tuning if tuning is not None else add(domain, "cputune")
    for pin in [one for one in tuning if one.tag in ("vcpupin", "emulatorpin")]:
        tuning.remove(pin)
    add_pins(tuning, there)
    numa = numa if numa is not None else add(domain, "numatune")
    numa.clear()
    if there.nodes:
        fill_numa_tuning(numa, there)
    for part in (tuning, numa):
        if not len(part):
            domain.remove(part)


def _shape(domain: Element) -> str:
    return _spelled_shape(len(domain.findall("cpu/numa/cell")),
                          {int(page.get("size", "0")) for page in domain.iterfind("memoryBacking/hugepages/page")})


def _spelled_shape(nodes: int, pages: Collection[int]) -> str:
    sizes = " and ".join(f"{size} KiB" for size in sorted(pages))
    return f"{nodes} NUMA nodes, and {f'pages of {sizes}' if sizes else 'small pages'}"
