"""Devices of the host's handed over: a virtual function of a network card, whose MAC address and VLAN libvirt sets; or
a whole card (direct-physical), which is the guest's as it is."""

from __future__ import annotations

from dataclasses import replace

from nova.model.network.networks import Interface
from nova.virt.libvirt.disks.records import PlugRecord
from nova.virt.libvirt.vifs.common import PlugContext, PlugTools, VifRequirements, pci_address, plain, vlan_of
from nova.virt.libvirt.xml.specs import VifSpec

WHOLE = "direct-physical"


def record(interface: Interface) -> PlugRecord:
    """The device is its PCI address. host.VifData: the interface has none."""
    return PlugRecord(id=interface.id, device=pci_address(interface), bridge="", kind="direct")


def prepare(interface: Interface, place: PlugContext) -> None:
    """libvirt does all of it."""
    record(interface)


def unplug(plug: PlugRecord, tools: PlugTools) -> None:
    """libvirt gives the device back when the guest stops."""


def spec(interface: Interface, asked: VifRequirements) -> VifSpec:
    """libvirt's ``interface type='hostdev'``; a whole card is a plain ``hostdev``. host.VifData: its address or VLAN is
    none."""
    return replace(plain(interface, asked), type="hostdev", pci=pci_address(interface), vlan=vlan_of(interface),
                   bare=interface.vnic_type == WHOLE, mtu=None, bandwidth=None)
