"""Interfaces on Open vSwitch. libvirt makes the tap a port of the switch when the guest starts, and the agent finds it
by its ``iface-id``. With hybrid plugging (the agent's firewall is made of iptables rules, which see nothing on the
switch) there is a Linux bridge between: tap - qbr - qvb = qvo - switch."""

from __future__ import annotations

from dataclasses import replace

from nova.model.networks import Interface
from nova.privileged.links import LinkError
from nova.privileged.runner import CommandFailed
from nova.virt.libvirt.folders import PlugRecord
from nova.virt.libvirt.vifs.bridge import NoBridge
from nova.virt.libvirt.vifs.common import Asked, BadPort, Hands, Place, detail, named, plain, tap_name
from nova.virt.libvirt.xml.specs import VifSpec

INTEGRATION_BRIDGE = "br-int"  # where the port's details name none
SWITCH, PORT, CABLE = "switch", "port", "cable"  # in a record's details


def switch_of(interface: Interface) -> str:
    return interface.bridge or detail(interface, "bridge_name") or INTEGRATION_BRIDGE


def hybrid(interface: Interface) -> bool:
    return bool(interface.details.get("ovs_hybrid_plug"))


def port_id(interface: Interface) -> str:
    return interface.ovs_interface_id or interface.id


def record(interface: Interface) -> PlugRecord:
    device, switch = tap_name(interface), switch_of(interface)
    if not hybrid(interface):
        return PlugRecord(id=interface.id, device=device, bridge=switch, kind="ovs",
                          details={SWITCH: switch, PORT: device})
    switch = detail(interface, "bridge_name") or INTEGRATION_BRIDGE
    return PlugRecord(id=interface.id, device=device, bridge=named("qbr", interface), kind="ovs", details={
        SWITCH: switch, PORT: named("qvo", interface), CABLE: named("qvb", interface)})


def prepare(interface: Interface, place: Place) -> None:
    plug, hands = record(interface), place.hands
    try:
        if not hands.ovs.has_bridge(plug.details[SWITCH]):
            raise NoBridge(bridge=plug.details[SWITCH], network=interface.label)
        if CABLE in plug.details:
            hands.links.ensure_bridge(plug.bridge, mtu=interface.mtu)
            hands.links.ensure_veth(plug.details[CABLE], plug.details[PORT], interface.mtu)
            hands.links.enslave(plug.bridge, plug.details[CABLE])
            hands.ovs.ensure_port(plug.details[SWITCH], plug.details[PORT], ids_of(interface, place))
    except (CommandFailed, LinkError) as error:
        raise BadPort(id=interface.id, reason=error.message) from error


def ids_of(interface: Interface, place: Place) -> dict[str, str]:
    """By what the agent knows the port."""
    return {"iface-id": port_id(interface), "iface-status": "active", "attached-mac": interface.mac,
            "vm-uuid": place.server_uuid}


def unplug(plug: PlugRecord, hands: Hands) -> None:
    """Beside what libvirt removes with the guest: the bridge is this interface's alone."""
    hands.ovs.delete_port(plug.details[SWITCH], plug.details[PORT])
    hands.links.delete(plug.device)
    if CABLE in plug.details:
        hands.links.delete(plug.details[CABLE])  # its other end goes with it
        hands.links.delete(plug.bridge)


def spec(interface: Interface, asked: Asked) -> VifSpec:
    plug = record(interface)
    return replace(plain(interface, asked), bridge=plug.bridge, device=plug.device,
                   port_id=None if CABLE in plug.details else port_id(interface))
