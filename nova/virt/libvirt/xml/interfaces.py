"""A single interface as libvirt's XML, and its element in a guest's definition. Pure."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from nova.virt.libvirt.xml.build import Element
from nova.virt.libvirt.xml.devices import add_vif
from nova.virt.libvirt.xml.specs import VifSpec


def device_xml(spec: VifSpec, definition: str) -> str:
    """Return the XML of an interface to attach to the guest of that definition. A guest with encrypted memory needs
    buffers that the host can write."""
    devices = ET.Element("devices")
    add_vif(devices, spec)
    [device] = devices
    if spec.model == "virtio" and not spec.pci and ET.fromstring(definition).find("launchSecurity") is not None:
        driver = device.find("driver")
        (driver if driver is not None else ET.SubElement(device, "driver")).set("iommu", "on")
    return ET.tostring(device, encoding="unicode")


def find(definition: str, spec: VifSpec) -> Element | None:
    """Return the interface in a guest's definition, found by its MAC address, or (a whole card) by its PCI address."""
    domain = ET.fromstring(definition)
    for interface in domain.iterfind("devices/interface"):
        mac = interface.find("mac")
        if mac is not None and mac.get("address", "").lower() == spec.mac.lower():
            return interface
    for device in domain.iterfind("devices/hostdev") if spec.pci and spec.bare else ():
        address = device.find("source/address")
        if address is not None and _spelled(address) == spec.pci:
            return device
    return None


def _spelled(address: Element) -> str:
    domain, bus, slot, function = (int(address.get(name, "0"), 0) for name in ("domain", "bus", "slot", "function"))
    return f"{domain:04x}:{bus:02x}:{slot:02x}.{function:x}"
