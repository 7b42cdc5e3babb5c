"""PCI devices of a host, read from libvirt's node devices (https://libvirt.org/formatnode.html). Pure."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True)
class NodeDevice:
    """A PCI device. ``address`` as 0000:81:00.0; ids as four hexadecimal digits. ``parent``: the address of a virtual
    function's physical function. ``names``: of its network interfaces."""

    name: str
    address: str
    vendor_id: str
    product_id: str
    kind: str = "type-PCI"
    cell: int | None = None
    parent: str | None = None
    names: tuple[str, ...] = ()


def node_devices(texts: Iterable[str]) -> tuple[NodeDevice, ...]:
    """Parse the XML of PCI, network and vDPA node devices; return the PCI devices by address."""
    pci: dict[str, NodeDevice] = {}
    interfaces: dict[str, set[str]] = {}
    vdpa: set[str] = set()
    for text in texts:
        device = ET.fromstring(text)
        capability, parent = device.find("capability"), device.findtext("parent", "")
        kind = capability.get("type") if capability is not None else None
        if capability is None:
            continue
        if kind == "pci":
            found = _pci(device.findtext("name", ""), capability)
            pci[found.name] = found
        elif kind == "net" and capability.findtext("interface"):
            interfaces.setdefault(parent, set()).add(capability.findtext("interface", ""))
        elif kind == "vdpa":
            vdpa.add(parent)
    made = (replace(one, names=tuple(sorted(interfaces.get(name, ()))), kind="vdpa" if name in vdpa else one.kind)
            for name, one in pci.items())
    return tuple(sorted(made, key=lambda one: one.address))


def _pci(name: str, capability: ET.Element) -> NodeDevice:
    product, vendor, numa = capability.find("product"), capability.find("vendor"), capability.find("numa")
    physical = capability.find("capability[@type='phys_function']/address")
    has_functions = capability.find("capability[@type='virt_functions']") is not None
    parts = [int(capability.findtext(part, "0"), 0) for part in ("domain", "bus", "slot", "function")]
    return NodeDevice(
        name=name, address=_address(parts), vendor_id=_id(vendor), product_id=_id(product),
        kind="type-VF" if physical is not None else "type-PF" if has_functions else "type-PCI",
        cell=int(numa.get("node", "0")) if numa is not None else None,
        parent=_address([int(physical.get(part, "0"), 0) for part in ("domain", "bus", "slot", "function")])
        if physical is not None else None)


def _address(parts: list[int]) -> str:
    domain, bus, slot, function = parts
    return f"{domain:04x}:{bus:02x}:{slot:02x}.{function:x}"


def _id(element: ET.Element | None) -> str:
    return f"{int(element.get('id', '0'), 0):04x}" if element is not None else ""
