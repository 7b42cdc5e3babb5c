"""Interfaces on a Linux bridge. libvirt makes the tap when the guest starts, and removes it when it stops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nova import errors
from nova.model.networks import Interface
from nova.privileged import links
from nova.virt.libvirt.folders import PlugRecord
from nova.virt.libvirt.properties import Wishes, WrongValue
from nova.virt.libvirt.settings import Settings
from nova.virt.libvirt.xml.specs import VifSpec

TAP_CHARACTERS = 11  # of the interface's id; a device's name has 15 at most
MOST_QUEUES = 8
BANDWIDTH = ("average", "peak", "burst")


class NoBridge(errors.HostRefused):
    code, message = "host.no_bridge", "The bridge {bridge} of network {network} is not on this host."


class NotBridged(errors.HostRefused):
    code, message = "host.vif_type", "Interface {id} is of type {type}, which this host can not plug."


def tap_name(interface: Interface) -> str:
    return interface.device or f"tap{interface.id[:TAP_CHARACTERS]}"


def record(interface: Interface) -> PlugRecord:
    if interface.type != "bridge" or not interface.bridge:
        raise NotBridged(id=interface.id, type=interface.type)
    return PlugRecord(id=interface.id, device=tap_name(interface), bridge=interface.bridge)


def prepare(interface: Interface) -> None:
    """Have the bridge on this host. HostRefused when it is missing and not ours to make."""
    wanted = record(interface)
    if interface.should_create_bridge:
        try:
            links.ensure_bridge(wanted.bridge, interface.bridge_interface, interface.mtu)
        except links.LinkError as error:
            raise NoBridge(str(error), bridge=wanted.bridge, network=interface.label) from error
    elif not links.exists(wanted.bridge):
        raise NoBridge(bridge=wanted.bridge, network=interface.label)


def unplug(plug: PlugRecord) -> None:
    """Remove the tap, should libvirt have left it. Never the bridge: others are on it."""
    links.delete(plug.device)


def spec(interface: Interface, wishes: Wishes, settings: Settings, kvm: bool, vcpus: int,
         extra_specs: Mapping[str, str]) -> VifSpec:
    """What libvirt is told of the interface. Pure."""
    plug, model = record(interface), wishes.vif_model or "virtio"
    virtio = model == "virtio"
    return VifSpec(
        mac=interface.mac, bridge=plug.bridge, device=plug.device, model=model, mtu=interface.mtu,
        queues=min(vcpus, MOST_QUEUES) if virtio and wishes.multiqueue else 1,
        backend="qemu" if virtio and not kvm else None, rx_queue_size=settings.rx_queue_size if kvm else None,
        tx_queue_size=settings.tx_queue_size if kvm else None, packed=wishes.packed_ring,
        bandwidth=bandwidth(extra_specs))


def bandwidth(extra_specs: Mapping[str, str]) -> Mapping[str, Mapping[str, int]] | None:
    """``quota:vif_inbound_average`` and its like, in kB/s and kB, as libvirt takes them."""
    found: dict[str, dict[str, int]] = {}
    for direction in ("inbound", "outbound"):
        for amount in BANDWIDTH:
            name = f"quota:vif_{direction}_{amount}"
            if name in extra_specs:
                found.setdefault(direction, {})[amount] = _number(name, extra_specs[name])
        if direction in found and "average" not in found[direction]:
            raise WrongValue(name=f"quota:vif_{direction}_*", value="", reason="it needs an average, too")
    return found or None


def records(interfaces: Iterable[Interface]) -> tuple[PlugRecord, ...]:
    return tuple(record(interface) for interface in interfaces)


def _number(name: str, text: str) -> int:
    if not text.isdecimal():
        raise WrongValue(name=name, value=text, reason="it is no number")
    return int(text)
