"""Interfaces on Open vSwitch. libvirt makes the tap a port of the switch when the guest starts, and the agent finds it
by its ``iface-id``. With hybrid plugging (the agent's firewall consists of iptables rules, which do not see traffic on
the switch) a Linux bridge is in between: tap - qbr - qvb = qvo - switch."""

from __future__ import annotations

from dataclasses import replace

from nova import errors, failures
from nova.model.network.networks import Interface
from nova.privileged.os_vif_plugs import OVS, VifPort
from nova.virt.libvirt.disks.records import PlugRecord
from nova.virt.libvirt.vifs.common import PlugContext, PlugTools, VifRequirements, detail, named, plain, tap_name
from nova.virt.libvirt.xml.specs import VifSpec

INTEGRATION_BRIDGE = "br-int"  # default if the port's details name no bridge
SWITCH, PORT, CABLE = "switch", "port", "cable"  # in a record's details
DATAPATH, PORT_ID = "datapath_type", "port_id"


def switch_of(interface: Interface) -> str:
    """Return the interface's bridge, else the bridge in ``binding:vif_details``, else br-int."""
    return interface.bridge or detail(interface, "bridge_name") or INTEGRATION_BRIDGE


def hybrid(interface: Interface) -> bool:
    """Return whether a Linux bridge is needed between guest and switch (``ovs_hybrid_plug`` of
    ``binding:vif_details``)."""
    return bool(interface.details.get("ovs_hybrid_plug"))


def port_id(interface: Interface) -> str:
    """Return the port's ``iface-id`` in the switch, by which the agent finds it: the interface's id, unless its binding
    names another."""
    return interface.ovs_interface_id or interface.id


def record(interface: Interface) -> PlugRecord:
    """Return the record of the plug. Its ``details`` have the data for removal: the switch, its port, and with hybrid
    plugging the cable."""
    device, switch = tap_name(interface), switch_of(interface)
    known = {DATAPATH: detail(interface, DATAPATH), PORT_ID: port_id(interface)}
    if not hybrid(interface):
        return PlugRecord(id=interface.id, device=device, bridge=switch, kind="ovs",
                          details={SWITCH: switch, PORT: device, **known})
    switch = detail(interface, "bridge_name") or INTEGRATION_BRIDGE
    return PlugRecord(id=interface.id, device=device, bridge=named("qbr", interface), kind="ovs", details={
        SWITCH: switch, PORT: named("qvo", interface), CABLE: named("qvb", interface), **known})


def prepare(interface: Interface, place: PlugContext) -> None:
    """Plug the interface. Raises host.NoBridge if the switch is missing: os-vif would create it, and change its
    datapath type."""
    plug, tools = record(interface), place.tools
    switch = plug.details[SWITCH]
    with failures.translated(errors.host.CommandFailed,
            lambda error: errors.host.VifData(id=interface.id, reason=error.message)):
        if not tools.ovs.has_bridge(switch):
            raise errors.host.NoBridge(bridge=switch, network=interface.label)
        port = replace(_port(plug), datapath=plug.details[DATAPATH] or tools.ovs.datapath_of(switch), mtu=interface.mtu,
                       mac=interface.mac, network_id=interface.network_id, label=interface.label,
                       filtered=interface.filtered)
        tools.os_vif.plug(port, place.server_uuid)
        if port.between and not tools.ovs.has_port(switch, plug.details[PORT]):
            tools.os_vif.unplug(port)  # os-vif takes a cable for a port if the process that plugged it died halfway
            tools.os_vif.plug(port, place.server_uuid)


def ids_of(interface: Interface, place: PlugContext) -> dict[str, str]:
    """Return the external ids by which the agent finds the port."""
    return {"iface-id": port_id(interface), "iface-status": "active", "attached-mac": interface.mac,
            "vm-uuid": place.server_uuid}


def unplug(plug: PlugRecord, tools: PlugTools) -> None:
    """Remove what libvirt does not remove with the guest, including the bridge, which only this interface uses."""
    tools.os_vif.unplug(_port(plug))
    tools.links.delete(plug.device)
    if CABLE in plug.details:
        tools.links.delete(plug.details[CABLE])  # this also removes its other end
        tools.links.delete(plug.bridge)


def _port(plug: PlugRecord) -> VifPort:
    """Return the port that a record describes; a record of an older release has fewer fields."""
    return VifPort(id=plug.id, plugin=OVS, device=plug.device, bridge=plug.details[SWITCH],
                   between=plug.bridge if CABLE in plug.details else "",
                   datapath=plug.details.get(DATAPATH, ""), port_id=plug.details.get(PORT_ID, ""))


def spec(interface: Interface, asked: VifRequirements) -> VifSpec:
    """Return libvirt's spec. The tap is a port of the switch itself, or of the Linux bridge in front of it, which has
    no ``iface-id``."""
    plug = record(interface)
    return replace(plain(interface, asked), bridge=plug.bridge, device=plug.device,
                   port_id=None if CABLE in plug.details else port_id(interface))
