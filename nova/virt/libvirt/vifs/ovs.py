"""Interfaces on Open vSwitch. libvirt makes the tap a port of the switch when the guest starts, and the agent finds it
by its ``iface-id``. With hybrid plugging (the agent's firewall is made of iptables rules, which see nothing on the
switch) there is a Linux bridge between: tap - qbr - qvb = qvo - switch."""

from __future__ import annotations

from dataclasses import replace

from nova import errors
from nova.model.network.networks import Interface
from nova.privileged.os_vif_plugs import OVS, VifPort
from nova.virt.libvirt.disks.records import PlugRecord
from nova.virt.libvirt.vifs.common import PlugContext, PlugTools, VifRequirements, detail, named, plain, tap_name
from nova.virt.libvirt.xml.specs import VifSpec

INTEGRATION_BRIDGE = "br-int"  # where the port's details name none
SWITCH, PORT, CABLE = "switch", "port", "cable"  # in a record's details
DATAPATH, PORT_ID = "datapath_type", "port_id"


def switch_of(interface: Interface) -> str:
    """The interface's bridge, else the bridge in ``binding:vif_details``, else br-int."""
    return interface.bridge or detail(interface, "bridge_name") or INTEGRATION_BRIDGE


def hybrid(interface: Interface) -> bool:
    """Whether a Linux bridge is wanted between guest and switch (``ovs_hybrid_plug`` of ``binding:vif_details``)."""
    return bool(interface.details.get("ovs_hybrid_plug"))


def port_id(interface: Interface) -> str:
    """The port's ``iface-id`` in the switch, by which the agent finds it: the interface's id, unless its binding names
    another."""
    return interface.ovs_interface_id or interface.id


def record(interface: Interface) -> PlugRecord:
    """What is plugged, and in ``details`` what its removal needs: switch, port of it, and with hybrid plugging the
    cable."""
    device, switch = tap_name(interface), switch_of(interface)
    known = {DATAPATH: detail(interface, DATAPATH), PORT_ID: port_id(interface)}
    if not hybrid(interface):
        return PlugRecord(id=interface.id, device=device, bridge=switch, kind="ovs",
                          details={SWITCH: switch, PORT: device, **known})
    switch = detail(interface, "bridge_name") or INTEGRATION_BRIDGE
    return PlugRecord(id=interface.id, device=device, bridge=named("qbr", interface), kind="ovs", details={
        SWITCH: switch, PORT: named("qvo", interface), CABLE: named("qvb", interface), **known})


def prepare(interface: Interface, place: PlugContext) -> None:
    """The switch is not ours to make, nor is what moves its packets ours to change: os-vif would do both."""
    plug, tools = record(interface), place.tools
    switch = plug.details[SWITCH]
    try:
        if not tools.ovs.has_bridge(switch):
            raise errors.host.NoBridge(bridge=switch, network=interface.label)
        port = replace(_port(plug), datapath=plug.details[DATAPATH] or tools.ovs.datapath_of(switch), mtu=interface.mtu,
                       mac=interface.mac, network_id=interface.network_id, label=interface.label,
                       filtered=interface.filtered)
        tools.os_vif.plug(port, place.server_uuid)
        if port.between and not tools.ovs.has_port(switch, plug.details[PORT]):
            tools.os_vif.unplug(port)  # to os-vif a cable is a port, should whoever laid it have died before the end
            tools.os_vif.plug(port, place.server_uuid)
    except errors.host.CommandFailed as error:
        raise errors.host.VifData(id=interface.id, reason=error.message) from error


def ids_of(interface: Interface, place: PlugContext) -> dict[str, str]:
    """By what the agent knows the port."""
    return {"iface-id": port_id(interface), "iface-status": "active", "attached-mac": interface.mac,
            "vm-uuid": place.server_uuid}


def unplug(plug: PlugRecord, tools: PlugTools) -> None:
    """Beside what libvirt removes with the guest: the bridge is this interface's alone."""
    tools.os_vif.unplug(_port(plug))
    tools.links.delete(plug.device)
    if CABLE in plug.details:
        tools.links.delete(plug.details[CABLE])  # its other end goes with it
        tools.links.delete(plug.bridge)


def _port(plug: PlugRecord) -> VifPort:
    """As far as a record tells, one of an older release, too."""
    return VifPort(id=plug.id, plugin=OVS, device=plug.device, bridge=plug.details[SWITCH],
                   between=plug.bridge if CABLE in plug.details else "",
                   datapath=plug.details.get(DATAPATH, ""), port_id=plug.details.get(PORT_ID, ""))


def spec(interface: Interface, asked: VifRequirements) -> VifSpec:
    """The tap is a port of the switch itself, or of the Linux bridge before it: then libvirt is told no
    ``iface-id``."""
    plug = record(interface)
    return replace(plain(interface, asked), bridge=plug.bridge, device=plug.device,
                   port_id=None if CABLE in plug.details else port_id(interface))
