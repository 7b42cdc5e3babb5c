"""Host devices passed through: a virtual function of a network card, whose MAC address and VLAN libvirt sets; or a
whole card (direct-physical), which the guest uses unchanged."""

from __future__ import annotations

from dataclasses import replace

from nova.model.network.networks import Interface
from nova.virt.libvirt.disks.records import PlugRecord
from nova.virt.libvirt.vifs.common import PlugContext, PlugTools, VifRequirements, pci_address, plain, vlan_of
from nova.virt.libvirt.xml.specs import VifSpec

WHOLE = "direct-physical"


def record(interface: Interface) -> PlugRecord:
    """Return the record, whose device is a PCI address. Raises host.VifData if the interface has none."""
    return PlugRecord(id=interface.id, device=pci_address(interface), bridge="", kind="direct")


def prepare(interface: Interface, place: PlugContext) -> None:
    """Check the interface's data; libvirt does the rest."""
    record(interface)


def unplug(plug: PlugRecord, tools: PlugTools) -> None:
    """Do nothing: libvirt returns the device to the host when the guest stops."""


def spec(interface: Interface, asked: VifRequirements) -> VifSpec:
    """Return libvirt's ``interface type='hostdev'``, or a plain ``hostdev`` for a whole card. Raises host.VifData if
    its address or VLAN is invalid."""
    return replace(plain(interface, asked), type="hostdev", pci=pci_address(interface), vlan=vlan_of(interface),
                   bare=interface.vnic_type == WHOLE, mtu=None, bandwidth=None)
