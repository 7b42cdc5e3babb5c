"""PCI devices as resource providers below their node: one for each standalone device, and one for a physical function
with its virtual functions. Pure."""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Iterable

from nova.model.numa.pci_aliases import class_of, normal_traits
from nova.model.numa.topology import PciDevice
from nova.model.placement.providers import ChildProvider, ClassInventory

MANAGED, LIVE_MIGRATABLE = "COMPUTE_MANAGED_PCI_DEVICE", "HW_PCI_LIVE_MIGRATABLE"
NETWORK_FUNCTION = "SRIOV_NET_VF"


def children(node: str, node_uuid: str, devices: Iterable[PciDevice]) -> tuple[ChildProvider, ...]:
    """Return a provider for each address: a device's own, or its physical function's. A physical function is not
    offered together with its virtual functions, because its guest would control those of other guests."""
    by_address: dict[str, list[PciDevice]] = {}
    for device in devices:
        by_address.setdefault(device.parent or device.address, []).append(device)
    return tuple(_child(node, node_uuid, address, found) for address, found in sorted(by_address.items()))


def exclusive(devices: Iterable[PciDevice]) -> tuple[PciDevice, ...]:
    """Return the devices to report, without physical functions whose virtual functions are offered."""
    found = tuple(devices)
    parents = {device.parent for device in found}
    return tuple(device for device in found if device.address not in parents)


def resource_class(device: PciDevice) -> str:
    """Return the class of the device's spec, else that of a network's virtual function, else one by vendor and
    product."""
    named = device.tags.get("resource_class")
    if not named and device.kind in ("type-VF", "vdpa") and device.tags.get("physical_network"):
        return NETWORK_FUNCTION
    return class_of(device.vendor_id, device.product_id, named)


def _child(node: str, node_uuid: str, address: str, found: list[PciDevice]) -> ChildProvider:
    functions = [device for device in found if device.parent] or found
    counts = Counter(resource_class(device) for device in functions)
    name = f"{node}_{address}"
    networks = {device.tags["physical_network"] for device in functions if device.tags.get("physical_network")}
    traits = {trait for device in functions for trait in normal_traits(device.tags.get("traits", ""))}
    traits |= {"CUSTOM_PHYSNET_" + re.sub("[^A-Z0-9_]", "_", network.upper()) for network in networks}
    if all(device.live_migratable for device in functions):
        traits.add(LIVE_MIGRATABLE)
    return ChildProvider(
        name=name, uuid=str(uuid.uuid5(uuid.UUID(node_uuid), name)), traits=tuple(sorted({*traits, MANAGED})),
        inventories=tuple(ClassInventory(resource_class=one, total=count, max_unit=count)
                          for one, count in sorted(counts.items())))
