"""Interfaces on a Linux bridge. libvirt creates the tap when the guest starts, and removes it when it stops."""

from __future__ import annotations

import time
from dataclasses import replace

from nova import errors, failures
from nova.model.network.networks import Interface
from nova.privileged import links
from nova.privileged.os_vif_plugs import LINUX_BRIDGE, VifPort
from nova.virt.libvirt.disks.records import PlugRecord
from nova.virt.libvirt.settings import LibvirtSettings
from nova.virt.libvirt.vifs.common import PlugContext, VifRequirements, plain, tap_name
from nova.virt.libvirt.xml.specs import VifSpec

LOCAL_PATIENCE_S, POLL_S = 10.0, 0.2  # for a bridge that nova-network on this host creates


def record(interface: Interface) -> PlugRecord:
    """Return the record of the tap and its bridge. Raises host.VifNotBridged if the interface names no bridge."""
    if interface.type != "bridge" or not interface.bridge:
        raise errors.host.VifNotBridged(id=interface.id, type=interface.type)
    return PlugRecord(id=interface.id, device=tap_name(interface), bridge=interface.bridge)


def prepare_neutrons(interface: Interface, place: PlugContext) -> None:
    """Have os-vif create the bridge of a Neutron network, which the agent then joins to the network. Raises
    NotPlugged."""
    plug = record(interface)
    place.tools.os_vif.plug(VifPort(
        id=interface.id, plugin=LINUX_BRIDGE, device=plug.device, bridge=plug.bridge, mac=interface.mac,
        network_id=interface.network_id, label=interface.label, mtu=interface.mtu, filtered=interface.filtered),
        place.server_uuid)


def prepare(interface: Interface, settings: LibvirtSettings, timeout_s: float = LOCAL_PATIENCE_S) -> None:
    """Ensure that the bridge exists on this host. Raises HostRefused if it is missing and nova does not create it.

    The bridge of a multi-host network is created by nova-network on this host, which receives its order before the
    guest's; when the host itself starts, the bridge may appear a moment later.
    """
    wanted = record(interface)
    if (interface.should_create_bridge or interface.should_create_vlan) and not interface.multi_host:
        with failures.translated(errors.host.Link,
                lambda error: errors.host.NoBridge(str(error), bridge=wanted.bridge, network=interface.label)):
            links.ensure_bridge(wanted.bridge, _uplink(interface, settings), interface.mtu)
    elif not _comes(wanted.bridge, timeout_s if interface.multi_host else 0):
        missing = errors.host.NoLocalBridge if interface.multi_host else errors.host.NoBridge
        raise missing(bridge=wanted.bridge, network=interface.label)


def _uplink(interface: Interface, settings: LibvirtSettings) -> str | None:
    """Return the bridge's uplink to other hosts: a VLAN device, created here, or an interface of the host."""
    if not interface.should_create_vlan or interface.vlan is None:
        return interface.bridge_interface or settings.flat_interface
    parent, device = settings.vlan_interface or interface.bridge_interface, f"vlan{interface.vlan}"
    if not parent:
        raise errors.host.NoUplink(vlan=interface.vlan, network=interface.label)
    links.ensure_vlan(links.Vlan(device, parent, interface.vlan, mtu=interface.mtu))
    return device


def _comes(device: str, timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while not links.exists(device):
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_S)
    return True


def unplug(plug: PlugRecord) -> None:
    """Remove the tap if libvirt left it. The bridge stays: other guests use it."""
    links.delete(plug.device)


def spec(interface: Interface, asked: VifRequirements) -> VifSpec:
    """Return libvirt's spec of the interface. Pure."""
    plug = record(interface)
    return replace(plain(interface, asked), bridge=plug.bridge, device=plug.device)
