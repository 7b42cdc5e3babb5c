"""Code shared by all VIF types: the guest side of an interface, and checks of port data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from nova import errors
from nova.model.network.networks import Interface
from nova.privileged import links, vfs
from nova.privileged.os_vif_plugs import Plugs
from nova.privileged.ovs import OpenVSwitch
from nova.virt.libvirt.disks.records import PlugRecord
from nova.virt.libvirt.properties import RequestedProperties
from nova.virt.libvirt.settings import LibvirtSettings
from nova.virt.libvirt.xml.specs import VifSpec

TAP_CHARACTERS = 11  # of the interface's id; a device name has at most 15
MOST_QUEUES = 8
BANDWIDTH = ("average", "peak", "burst")


class DeviceCalls(Protocol):
    """The calls of :mod:`nova.privileged.links` that plugging needs."""

    def exists(self, device: str) -> bool:
        """Return whether the device exists."""

    def delete(self, device: str) -> None:
        """Delete the device, if it exists."""


class PlugTools(NamedTuple):
    """Tools that change the host."""

    ovs: OpenVSwitch
    os_vif: Plugs
    links: DeviceCalls = links
    sysfs: Path = vfs.SYSFS


class PlugContext(NamedTuple):
    """The guest and host of an interface."""

    server_uuid: str
    settings: LibvirtSettings
    tools: PlugTools


class VifRequirements(NamedTuple):
    """The requirements of the guest's image and flavor, and the host's capabilities."""

    requested: RequestedProperties
    settings: LibvirtSettings
    kvm: bool
    vcpus: int
    extra_specs: Mapping[str, str]
    sysfs: Path = vfs.SYSFS


class VifKind(Protocol):
    """A kind of interface: a module of this package."""

    def record(self, interface: Interface) -> PlugRecord:
        """Return the record by which the interface is unplugged later. Raises host.VifData."""

    def prepare(self, interface: Interface, place: PlugContext) -> None:
        """Prepare the host side before the guest starts. Raises HostRefused. Safe to repeat."""

    def unplug(self, plug: PlugRecord, tools: PlugTools) -> None:
        """Remove the interface's host side. Safe if there is none."""

    def spec(self, interface: Interface, asked: VifRequirements) -> VifSpec:
        """Return libvirt's spec of the interface."""


def tap_name(interface: Interface) -> str:
    """Return the network's device name, else ``tap`` and the first eleven characters of the interface's id."""
    return interface.device or f"tap{interface.id[:TAP_CHARACTERS]}"


def named(prefix: str, interface: Interface) -> str:
    """Return a device name with the interface's id."""
    return f"{prefix}{interface.id[:TAP_CHARACTERS]}"


def detail(interface: Interface, name: str) -> str:
    """Return a field of binding:vif_details, as text; empty if it is missing."""
    value = interface.details.get(name)
    return "" if value is None else str(value)


def pci_address(interface: Interface) -> str:
    """Return the PCI address of the claimed device. Raises host.VifData if it is missing or invalid."""
    address = str(interface.profile.get("pci_slot") or "").lower()
    if not vfs.PCI.fullmatch(address):
        raise errors.host.VifData(id=interface.id,
                                  reason=f"its binding profile names no PCI device ({address or 'none'})")
    return address


def vlan_of(interface: Interface) -> int | None:
    """Return the VLAN that the device must tag. Raises host.VifData if it is invalid."""
    text = detail(interface, "vlan")
    if not text:
        return None
    if not text.isdecimal() or not 0 <= int(text) < 4095:
        raise errors.host.VifData(id=interface.id, reason=f"VLAN {text} is not valid")
    return int(text) or None


def plain(interface: Interface, asked: VifRequirements) -> VifSpec:
    """Return the guest side of the spec, without its host side. Pure."""
    requested, settings = asked.requested, asked.settings
    model = requested.vif_model or "virtio"
    virtio = model == "virtio"
    return VifSpec(
        mac=interface.mac, model=model, mtu=interface.mtu,
        queues=min(asked.vcpus, MOST_QUEUES) if virtio and requested.multiqueue else 1,
        backend="qemu" if virtio and not asked.kvm else None,
        rx_queue_size=settings.rx_queue_size if asked.kvm else None,
        tx_queue_size=settings.tx_queue_size if asked.kvm else None, packed=requested.packed_ring,
        bandwidth=bandwidth(asked.extra_specs))


def bandwidth(extra_specs: Mapping[str, str]) -> Mapping[str, Mapping[str, int]] | None:
    """Return the limits of ``quota:vif_inbound_average`` and similar, in kB/s and kB, in libvirt's form."""
    found: dict[str, dict[str, int]] = {}
    for direction in ("inbound", "outbound"):
        for amount in BANDWIDTH:
            name = f"quota:vif_{direction}_{amount}"
            if name in extra_specs:
                found.setdefault(direction, {})[amount] = _number(name, extra_specs[name])
        if direction in found and "average" not in found[direction]:
            raise errors.image.WrongProperty(name=f"quota:vif_{direction}_*", value="",
                                             reason="it also needs an average")
    return found or None


def _number(name: str, text: str) -> int:
    if not text.isdecimal():
        raise errors.image.WrongProperty(name=name, value=text, reason="it is not a number")
    return int(text)
