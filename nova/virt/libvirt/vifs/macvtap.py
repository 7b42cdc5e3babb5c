"""Interfaces on a macvtap: of a device of the host's that the agent names, or of a virtual function that is the
guest's alone (vnic type macvtap)."""

from __future__ import annotations

from dataclasses import replace

from nova import errors
from nova.model.network.networks import Interface
from nova.privileged import vfs
from nova.virt.libvirt.disks.records import PlugRecord
from nova.virt.libvirt.vifs.common import (
    PlugContext,
    PlugTools,
    VifRequirements,
    detail,
    named,
    pci_address,
    plain,
    vlan_of,
)
from nova.virt.libvirt.xml.specs import VifSpec

OF_FUNCTION = "hw_veb"
MODES = frozenset({"vepa", "bridge", "private", "passthrough"})


def record(interface: Interface) -> PlugRecord:
    """libvirt names the macvtap, and removes it with the guest."""
    source = pci_address(interface) if interface.type == OF_FUNCTION else _source(interface)
    return PlugRecord(id=interface.id, device=named("tap", interface), bridge="", kind="macvtap",
                      details={"source": source})


def prepare(interface: Interface, place: PlugContext) -> None:
    """Of a virtual function: its MAC address and VLAN, which a macvtap's guest cannot change."""
    if interface.type != OF_FUNCTION:
        source = _source(interface)
        if not place.tools.links.exists(source):
            raise errors.host.VifData(id=interface.id, reason=f"the device {source} is not on this host")
        return
    address = pci_address(interface)
    function = vfs.function_of(address, place.tools.sysfs)
    if function is None or vfs.device_of(address, place.tools.sysfs) is None:
        raise errors.host.VifData(id=interface.id,
                                  reason=f"PCI device {address} is no virtual function with a network device")
    try:
        vfs.set_up(function, interface.mac, vlan_of(interface) or 0)
    except errors.host.Link as error:
        raise errors.host.VifData(id=interface.id, reason=error.message) from error


def unplug(plug: PlugRecord, tools: PlugTools) -> None:
    """Nothing of it outlives the guest."""


def spec(interface: Interface, asked: VifRequirements) -> VifSpec:
    """libvirt's ``interface type='direct'``. A virtual function is passed through; else the binding says the mode, vepa
    where it says none. host.VifData."""
    if interface.type != OF_FUNCTION:
        source, mode = _source(interface), detail(interface, "macvtap_mode") or "vepa"
    else:
        source, mode = vfs.device_of(pci_address(interface), asked.sysfs) or "", "passthrough"
    if mode not in MODES:
        raise errors.host.VifData(id=interface.id, reason=f"a macvtap has no mode {mode}")
    return replace(plain(interface, asked), type="direct", source={"dev": source, "mode": mode}, mtu=None)


def _source(interface: Interface) -> str:
    source = detail(interface, "macvtap_source") or detail(interface, "physical_interface")
    if not source:
        raise errors.host.VifData(id=interface.id, reason="its binding names no device of the host's (macvtap_source)")
    return source
