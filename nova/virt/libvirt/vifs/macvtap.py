"""Macvtap interfaces: on a host device that the agent names, or on a virtual function that belongs to one guest (vnic
type macvtap)."""

from __future__ import annotations

from dataclasses import replace

from nova import errors, failures
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
    """Return the record of the macvtap. libvirt names it, and removes it with the guest."""
    source = pci_address(interface) if interface.type == OF_FUNCTION else _source(interface)
    return PlugRecord(id=interface.id, device=named("tap", interface), bridge="", kind="macvtap",
                      details={"source": source})


def prepare(interface: Interface, place: PlugContext) -> None:
    """Set the MAC address and VLAN of a virtual function, which the macvtap's guest cannot change; else check the
    device."""
    if interface.type != OF_FUNCTION:
        source = _source(interface)
        if not place.tools.links.exists(source):
            raise errors.host.VifData(id=interface.id, reason=f"the device {source} is not on this host")
        return
    address = pci_address(interface)
    function = vfs.function_of(address, place.tools.sysfs)
    if function is None or vfs.device_of(address, place.tools.sysfs) is None:
        raise errors.host.VifData(id=interface.id,
                                  reason=f"PCI device {address} is not a virtual function with a network device")
    with failures.translated(errors.host.Link,
            lambda error: errors.host.VifData(id=interface.id, reason=error.message)):
        vfs.set_up(function, interface.mac, vlan_of(interface) or 0)


def unplug(plug: PlugRecord, tools: PlugTools) -> None:
    """Do nothing: the macvtap does not outlive the guest."""


def spec(interface: Interface, asked: VifRequirements) -> VifSpec:
    """Return libvirt's ``interface type='direct'``. A virtual function has mode passthrough; else the binding sets the
    mode, vepa by default. Raises host.VifData."""
    if interface.type != OF_FUNCTION:
        source, mode = _source(interface), detail(interface, "macvtap_mode") or "vepa"
    else:
        source, mode = vfs.device_of(pci_address(interface), asked.sysfs) or "", "passthrough"
    if mode not in MODES:
        raise errors.host.VifData(id=interface.id, reason=f"a macvtap does not support mode {mode}")
    return replace(plain(interface, asked), type="direct", source={"dev": source, "mode": mode}, mtu=None)


def _source(interface: Interface) -> str:
    source = detail(interface, "macvtap_source") or detail(interface, "physical_interface")
    if not source:
        raise errors.host.VifData(id=interface.id, reason="its binding names no device of the host (macvtap_source)")
    return source
