"""Calls for devices, addresses and routes, and for announcing them to hosts and guests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from nova.privileged import announcements, dnsmasq, files, kernel_switches, links, netlink, ovs, processes, vfs
from nova.privileged.helper import arguments as types
from nova.privileged.helper.calling import HelperCall, call
from nova.privileged.links import Vlan
from nova.privileged.taps import Tap

if TYPE_CHECKING:
    from pyroute2 import IPRoute

#: Software devices. A physical card of the host is never deleted.
DELETABLE = frozenset({"bridge", "vlan", "tun", "veth"})
MOST_DEVICES = 20000


@call("links.ensure_bridge")
def ensure_bridge(call: HelperCall, name: types.Device, interface: types.Device | None = None,
                  mtu: types.Mtu | None = None, mac: types.Mac | None = None) -> None:
    links.ensure_bridge(name, interface, mtu, mac)


@call("links.enslave")
def enslave(call: HelperCall, bridge: types.Device, interface: types.Device) -> None:
    links.enslave(bridge, interface)


@call("links.set_ipv6")
def set_ipv6(call: HelperCall, device: types.Device, on: bool) -> None:
    links.set_ipv6(device, on)


@call("links.ensure_tap")
def ensure_tap(call: HelperCall, tap: types.GivenTap) -> None:
    links.ensure_tap(Tap(tap.name, tap.mac, tap.mtu, tap.bridge))


@call("links.ensure_vlan")
def ensure_vlan(call: HelperCall, vlan: types.GivenVlan) -> None:
    links.ensure_vlan(Vlan(vlan.name, vlan.parent, vlan.id, vlan.mac, vlan.mtu))


@call("links.ensure_up")
def ensure_up(call: HelperCall, device: types.GatewayDevice, mac: types.Mac | None = None,
              mtu: types.Mtu | None = None) -> None:
    links.ensure_up(device, mac, mtu)


@call("links.release")
def release(call: HelperCall, interface: types.Device) -> None:
    links.release(interface)


@call("links.delete")
def delete(call: HelperCall, device: types.Device) -> None:
    def kind_of(ip: IPRoute) -> str | None:
        found = ip.link_lookup(ifname=device)
        if not found:
            return None
        info = ip.get_links(found[0])[0].get_attr("IFLA_LINKINFO")
        return str(info.get_attr("IFLA_INFO_KIND")) if info is not None else ""
    kind = netlink.conversation(device, kind_of)
    if kind is not None and kind not in DELETABLE:
        raise call.refused(f"{device} is not a bridge, VLAN, tap or veth pair")
    links.delete(device)


@call("links.ensure_guest_ports")
def ensure_guest_ports(call: HelperCall, devices: Annotated[tuple[types.Device, ...], Meta(max_length=MOST_DEVICES)]
                       ) -> tuple[str, ...]:
    return links.ensure_guest_ports(devices)


@call("links.ensure_address")
def ensure_address(call: HelperCall, device: types.Device, address: types.GivenAddress) -> None:
    links.ensure_address(device, types.link_address(address))


@call("links.delete_address")
def delete_address(call: HelperCall, device: types.Device, address: types.GivenAddress) -> None:
    links.delete_address(device, types.link_address(address))


@call("links.ensure_route")
def ensure_route(call: HelperCall, device: types.Device, route: types.GivenRoute) -> None:
    links.ensure_route(device, types.link_route(route))


@call("vfs.set_up")
def set_up(call: HelperCall, function: types.GivenFunction, mac: types.Mac, vlan: types.VlanId) -> None:
    vfs.set_up(vfs.Function(function.parent, function.number), mac, vlan)


# --- kernel settings

@call("files.enable_forwarding")
def enable_forwarding(call: HelperCall) -> None:
    files.enable_forwarding()


@call("files.enable_forwarding_v6")
def enable_forwarding_v6(call: HelperCall) -> None:
    files.enable_forwarding_v6()


@call("kernel_switches.filter_bridged")
def filter_bridged(call: HelperCall) -> tuple[str, ...]:
    return kernel_switches.filter_bridged()


# --- neighbours, and tracked connections

@call("announcements.announce")
def announce(call: HelperCall, device: types.Device, address: types.AddressText,
             count: Annotated[int, Meta(ge=1, le=100)]) -> None:
    announcements.announce(call.runner(30.0), device, types.address(address), count)


@call("announcements.release_lease")
def release_lease(call: HelperCall, device: types.Device, address: types.AddressText, mac: types.Mac) -> None:
    announcements.release_lease(call.runner(30.0), device, types.address(address), mac)


@call("announcements.forget_connections")
def forget_connections(call: HelperCall, which: announcements.Which, address: types.AddressText) -> None:
    announcements.forget_connections(call.runner(30.0), which, types.address(address))


@call("announcements.mark_connections")
def mark_connections(call: HelperCall, address: types.AddressText) -> None:
    announcements.mark_connections(call.runner(30.0), types.address(address))


# --- daemons that give guests their addresses

Server = Annotated[str, Meta(pattern=r"\A[0-9A-Za-z.:#@/_][0-9A-Za-z.:#@/_-]{0,254}\Z")]
NetworkId = Annotated[str, Meta(pattern=r"\A[0-9A-Za-z][0-9A-Za-z-]{0,63}\Z")]
NetworkLabel = Annotated[str, Meta(pattern=r"\A[^\x00-\x1f,]{1,255}\Z")]
DaemonName = Annotated[str, Meta(pattern=r"\A(dnsmasq|radvd)\Z")]
Pid = Annotated[int, Meta(ge=2, le=1 << 22)]


class GivenNetwork(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Wire form of ``nova.privileged.dnsmasq.DnsmasqOrder``."""

    network: NetworkId
    bridge: types.Device
    label: NetworkLabel
    address: types.AddressText
    start: types.AddressText
    netmask: types.AddressText
    most_leases: Annotated[int, Meta(ge=0, le=1 << 32)]
    multi_host: bool = False
    servers: Annotated[tuple[Server, ...], Meta(max_length=32)] = ()


@call("dnsmasq.start")
def start_dnsmasq(call: HelperCall, order: GivenNetwork) -> None:
    given = dnsmasq.DnsmasqOrder(
        network=order.network, bridge=order.bridge, label=order.label, address=types.address(order.address),
        start=types.address(order.start), netmask=types.address(order.netmask), most_leases=order.most_leases,
        multi_host=order.multi_host, servers=order.servers)
    own = call.settings
    dnsmasq.start(call.runner(30.0), given, dnsmasq.DnsmasqSettings(
        own.networks_path, own.dhcpbridge, own.dhcpbridge_flagfile, own.dnsmasq_config_file, own.dhcp_lease_time,
        own.dhcp_domain, own.user))


@call("radvd.start")
def start_radvd(call: HelperCall, device: types.Device) -> None:
    pids = call.own(dnsmasq.RADVD_PIDS.name)
    pids.chmod(0o755)  # the calling daemon reads the pid there
    dnsmasq.start_radvd(call.runner(30.0), device,
                        dnsmasq.RadvdPaths.of(call.settings.networks_path, device, pids))


@call("processes.read_again")
def read_again(call: HelperCall, pid: Pid, program: DaemonName, device: types.Device) -> None:
    processes.read_again(pid, program, device, _check(call, program, device))


@call("processes.end")
def end(call: HelperCall, pid: Pid, program: DaemonName, device: types.Device) -> None:
    processes.end(pid, program, device, _check(call, program, device))


def _check(call: HelperCall, program: str, device: str) -> processes.Check:
    """Return a check of the process by its command line. A process that only imitates the command line belongs to the
    caller."""
    own = call.settings.networks_path
    mark = dnsmasq.Paths.of(own, device).mark if program == "dnsmasq" else str(dnsmasq.RadvdPaths.of(own, device).conf)

    def check(pid: int) -> None:
        words = processes.command_line(pid)
        if words and mark not in words:
            raise call.refused(f"process {pid} is not {program} of {device}")
    return check


# --- Open vSwitch

Ids = Annotated[dict[Annotated[str, Meta(pattern=r"\A[a-z][a-z0-9_-]{0,63}\Z")],
                     Annotated[str, Meta(pattern=r"\A[ -~]{0,255}\Z")]], Meta(max_length=16)]
PortType = Annotated[str, Meta(pattern=r"\A(dpdkvhostuser(client)?)?\Z")]
SocketPath = Annotated[dict[Annotated[str, Meta(pattern=r"\Avhost-server-path\Z")], types.HostPath],
                       Meta(max_length=1)]


def _switch(call: HelperCall) -> ovs.OpenVSwitch:
    return ovs.OpenVSwitch(call.runner(ovs.TIMEOUT_S + 5.0))


@call("ovs.has_bridge")
def has_bridge(call: HelperCall, name: types.Device) -> bool:
    return _switch(call).has_bridge(name)


@call("ovs.datapath_of")
def datapath_of(call: HelperCall, bridge: types.Device) -> str:
    return _switch(call).datapath_of(bridge)


@call("ovs.has_port")
def has_port(call: HelperCall, bridge: types.Device, port: types.Device) -> bool:
    return _switch(call).has_port(bridge, port)


@call("ovs.ensure_port")
def ensure_port(call: HelperCall, bridge: types.Device, port: types.Device, ids: Ids, kind: PortType = "",
                options: SocketPath | None = None) -> None:
    _switch(call).ensure_port(bridge, port, ids, kind, options)


@call("ovs.delete_port")
def delete_port(call: HelperCall, bridge: types.Device, port: types.Device) -> None:
    _switch(call).delete_port(bridge, port)


@call("ovs.ensure_internal_port")
def ensure_internal_port(call: HelperCall, timeout_s: Annotated[int, Meta(ge=1, le=600)], bridge: types.Device,
                         device: types.GatewayDevice, mac: types.Mac) -> None:
    ovs.ensure_internal_port(call.runner(timeout_s + 5.0), timeout_s, bridge, device, mac)


@call("ovs.delete_internal_port")
def delete_internal_port(call: HelperCall, timeout_s: Annotated[int, Meta(ge=1, le=600)], bridge: types.Device,
                         device: types.GatewayDevice) -> None:
    ovs.delete_internal_port(call.runner(timeout_s + 5.0), timeout_s, bridge, device)
