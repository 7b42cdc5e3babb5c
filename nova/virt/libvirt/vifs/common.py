"""What the kinds of interfaces share: what a guest sees of them whatever is behind, and what is said of bad ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from nova import errors
from nova.model.network.networks import Interface
from nova.privileged import links, vfs
from nova.privileged.os_vif_plugs import Plugs
from nova.privileged.ovs import OpenVSwitch
from nova.virt.libvirt.disks.records import PlugRecord
from nova.virt.libvirt.properties import RequestedProperties
from nova.virt.libvirt.settings import LibvirtSettings
from nova.virt.libvirt.xml.specs import VifSpec

TAP_CHARACTERS = 11  # of the interface's id; a device's name has 15 at most
MOST_QUEUES = 8
BANDWIDTH = ("average", "peak", "burst")


class PlugTools(NamedTuple):
    """What touches the host."""

    ovs: OpenVSwitch
    os_vif: Plugs
    links: Any = links
    sysfs: Path = vfs.SYSFS


class PlugContext(NamedTuple):
    """Whose interface it is, and on which host."""

    server_uuid: str
    settings: LibvirtSettings
    tools: PlugTools


class VifRequirements(NamedTuple):
    """What the guest's image and flavor ask for, and what this host can."""

    requested: RequestedProperties
    settings: LibvirtSettings
    kvm: bool
    vcpus: int
    extra_specs: Mapping[str, str]
    sysfs: Path = vfs.SYSFS


class VifKind(Protocol):
    """One kind of interface: a module of this package."""

    def record(self, interface: Interface) -> PlugRecord:
        """What will be plugged, and how it is found again. host.VifData."""

    def prepare(self, interface: Interface, place: PlugContext) -> None:
        """Have all there is on this host before the guest starts. HostRefused. Repeated: the same."""

    def unplug(self, plug: PlugRecord, tools: PlugTools) -> None:
        """Leave nothing of it. Safe when there is nothing."""

    def spec(self, interface: Interface, asked: VifRequirements) -> VifSpec:
        """What libvirt is told."""


def tap_name(interface: Interface) -> str:
    """The name that the interface's network gave, else ``tap`` and the first eleven characters of its id."""
    return interface.device or f"tap{interface.id[:TAP_CHARACTERS]}"


def named(prefix: str, interface: Interface) -> str:
    """A device's name with the interface in it."""
    return f"{prefix}{interface.id[:TAP_CHARACTERS]}"


def detail(interface: Interface, name: str) -> str:
    """Of binding:vif_details, as text; empty where it has none."""
    value = interface.details.get(name)
    return "" if value is None else str(value)


def pci_address(interface: Interface) -> str:
    """Of the device that its claim found. host.VifData: there is none, or it is no address."""
    address = str(interface.profile.get("pci_slot") or "").lower()
    if not vfs.PCI.fullmatch(address):
        raise errors.host.VifData(id=interface.id,
                                  reason=f"its binding profile names no PCI device ({address or 'none'})")
    return address


def vlan_of(interface: Interface) -> int | None:
    """The VLAN that its device must tag. host.VifData: what it says is none."""
    text = detail(interface, "vlan")
    if not text:
        return None
    if not text.isdecimal() or not 0 <= int(text) < 4095:
        raise errors.host.VifData(id=interface.id, reason=f"VLAN {text} is none")
    return int(text) or None


def plain(interface: Interface, asked: VifRequirements) -> VifSpec:
    """Without what is behind it. Pure."""
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
    """``quota:vif_inbound_average`` and its like, in kB/s and kB, as libvirt takes them."""
    found: dict[str, dict[str, int]] = {}
    for direction in ("inbound", "outbound"):
        for amount in BANDWIDTH:
            name = f"quota:vif_{direction}_{amount}"
            if name in extra_specs:
                found.setdefault(direction, {})[amount] = _number(name, extra_specs[name])
        if direction in found and "average" not in found[direction]:
            raise errors.image.WrongProperty(name=f"quota:vif_{direction}_*", value="",
                                             reason="it needs an average, too")
    return found or None


def _number(name: str, text: str) -> int:
    if not text.isdecimal():
        raise errors.image.WrongProperty(name=name, value=text, reason="it is no number")
    return int(text)
