"""Facts of a running guest from its domain XML, and the XML of a copy of its disks. Pure.

https://libvirt.org/formatdomain.html, https://libvirt.org/formatbackup.html
"""

from __future__ import annotations

import xml.etree.ElementTree as ET

from nova.model.guest.guests import DevicePlace
from nova.virt.libvirt.xml.build import add
from nova.virt.libvirt.xml.devices import AGENT_CHANNEL


def target_of(definition: str, path: str) -> str | None:
    """Return the name (vda) of the disk whose source is ``path`` (a file, a device, pool/image); None if there is
    none."""
    for disk in ET.fromstring(definition).iterfind("devices/disk"):
        source, target = disk.find("source"), disk.find("target")
        if source is not None and target is not None and path in (
                source.get("file"), source.get("dev"), source.get("name")):
            return target.get("dev")
    return None


def has_agent(definition: str) -> bool:
    """Return whether the guest has a channel for a guest agent."""
    return ET.fromstring(definition).find(f"devices/channel/target[@name='{AGENT_CHANNEL}']") is not None


def places(definition: str) -> dict[str, DevicePlace]:
    """Return the guest-visible PCI addresses of network cards, by MAC address; cards on other buses are omitted."""
    found = {}
    for card in ET.fromstring(definition).iterfind("devices/interface"):
        mac, address = card.find("mac"), card.find("address")  # direct child: a host device's source has another
        if mac is not None and address is not None and address.get("type") == "pci":
            domain, bus, slot, function = (int(address.get(name, "0"), 0)
                                           for name in ("domain", "bus", "slot", "function"))
            found[mac.get("address", "").lower()] = DevicePlace(
                bus="pci", address=f"{domain:04x}:{bus:02x}:{slot:02x}.{function:x}")
    return found


def copy_xml(definition: str, target: str, path: str, image_format: str) -> str:
    """Return the XML of a backup of only the disk ``target`` into the new file ``path``."""
    backup = ET.Element("domainbackup", mode="push")
    copied = _one_disk(backup, definition, target, "backup", "yes")
    add(copied, "driver", type_=image_format)
    add(copied, "target", file=path)
    return ET.tostring(backup, encoding="unicode")


def disk_snapshot_xml(definition: str, target: str, path: str, image_format: str) -> str:
    """Return the XML of a snapshot of only the disk ``target`` into the file ``path``."""
    snapshot = ET.Element("domainsnapshot")
    made = _one_disk(snapshot, definition, target, "snapshot", "external")
    add(made, "driver", type_=image_format)
    add(made, "source", file=path)
    return ET.tostring(snapshot, encoding="unicode")


def _one_disk(parent: ET.Element, definition: str, target: str, what: str, value: str) -> ET.Element:
    """Return the element of the disk ``target``, with ``value`` in its attribute ``what``; it is "no" for all
    others."""
    disks = add(parent, "disks")
    names = [disk.get("dev") for disk in ET.fromstring(definition).iterfind("devices/disk/target")]
    for name in names:
        if name != target:
            add(disks, "disk", name=name, **{what: "no"})
    return add(disks, "disk", name=target, type_="file", **{what: value})


def copies_to(backup: str) -> frozenset[str]:
    """Return the files that a backup writes to."""
    return frozenset(target.get("file", "") for target in ET.fromstring(backup).iterfind("disks/disk/target"))
