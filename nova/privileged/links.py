"""Bridges, taps, VLANs, addresses and routes over netlink. Each call states the wanted result, and is idempotent.

Each is one conversation of :mod:`nova.privileged.netlink`.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from nova import errors
from nova.model.network.addressing import generate_mac
from nova.privileged import files
from nova.privileged.client import forwarded
from nova.privileged.netlink import NetlinkMessage, conversation, ignoring, index_of, index_or_none
from nova.privileged.taps import Tap, make_tap

if TYPE_CHECKING:
    from pyroute2 import IPRoute

IPV4, IPV6 = socket.AF_INET, socket.AF_INET6
SCOPES = {"global": 0, "link": 253, "host": 254}
MAIN_TABLE = 254
NO_DAD = 0x02  # an IPv6 address is usable immediately, without duplicate address detection
KERNEL_MADE = 2  # protocol of routes that the kernel keeps with their address
IFF_UP = 0x1


class Address(NamedTuple):
    """An address on a device. ``broadcast`` is for IPv4."""

    address: str
    prefix: int
    broadcast: str | None = None
    scope: int = SCOPES["global"]


class LinkRoute(NamedTuple):
    """A route over a device that an operator or a DHCP client made. ``destination`` "" is IPv4's default route."""

    destination: str
    prefix: int
    gateway: str | None = None
    metric: int | None = None
    source: str | None = None
    protocol: int = 3
    scope: int = 0


class Vlan(NamedTuple):
    """A device for one VLAN of another device."""

    name: str
    parent: str
    id: int
    mac: str | None = None
    mtu: int | None = None


# --- devices ----------------------------------------------------------------------------------------------------------

def exists(device: str) -> bool:
    """Return whether there is a device of that name. Raises host.Link if the kernel does not answer."""
    return conversation(device, lambda ip: index_or_none(ip, device) is not None)


@forwarded("links.ensure_bridge")
def ensure_bridge(name: str, interface: str | None = None, mtu: int | None = None, mac: str | None = None) -> None:
    """Ensure a bridge that is up, without forwarding delay and STP; ``interface`` becomes its port, with its addresses.

    The host has no IPv6 on a new bridge: guests could otherwise reach services here by the link-local address. ``mac``
    applies to a new bridge; an existing one keeps its own. Raises host.Link if the interface is missing or belongs to
    another bridge, or if the kernel refuses.
    """
    conversation(name, _ensure_bridge, name, interface, (mtu, mac))
    if interface:
        enslave(name, interface)


@forwarded("links.enslave")
def enslave(bridge: str, interface: str) -> None:
    """Make ``interface`` a port of ``bridge``, up, and move its IPv4 addresses and routes to the bridge. If it has IPv6
    addresses, the host keeps using IPv6 on that network.

    Addresses are removed only after they exist on the bridge: if killed at any point, the host keeps its address, and
    the next call continues from there.
    """
    conversation(interface, _enslave, bridge, interface)


@forwarded("links.set_ipv6")
def set_ipv6(device: str, on: bool) -> None:
    """Enable or disable the host's own IPv6 on the device, and with it its link-local address. If the host will be the
    guests' router there, it ignores other routers, unless the network is one in which the host itself has addresses."""
    def work(ip: IPRoute) -> None:
        index = index_of(ip, device)
        if on and not _lives_on(ip, index):
            files.hear_no_routers(device)
        files.speak_ipv6(device, on)
    conversation(device, work)


@forwarded("links.ensure_tap")
def ensure_tap(tap: Tap) -> None:
    """Ensure a tap that outlives this process, up, as a port of its bridge."""
    conversation(tap.name, _ensure_tap, tap)


@forwarded("links.ensure_vlan")
def ensure_vlan(vlan: Vlan) -> None:
    """Ensure the VLAN's device, up, on its parent, which is set up too. Raises host.Link if the parent is missing, or
    if another device has that name."""
    conversation(vlan.name, _ensure_vlan, vlan)


@forwarded("links.ensure_up")
def ensure_up(device: str, mac: str | None = None, mtu: int | None = None) -> None:
    """Set an existing device up, with this MAC and MTU."""
    conversation(device, _ensure_up, device, mac, mtu)


@forwarded("links.release")
def release(interface: str) -> None:
    """Remove a port from its bridge; does nothing if it is not a port or does not exist."""
    def work(ip: IPRoute) -> None:
        index = index_or_none(ip, interface)
        if index is not None and _link(ip, index).get_attr("IFLA_MASTER"):
            ip.link("set", index=index, master=0)
    conversation(interface, work)


@forwarded("links.delete")
def delete(device: str) -> None:
    """Remove a device; does nothing if there is none."""
    def work(ip: IPRoute) -> None:
        index = index_or_none(ip, device)
        if index is not None:
            with ignoring(errno.ENODEV):
                ip.link("del", index=index)
    conversation(device, work)


@forwarded("links.ensure_guest_ports")
def ensure_guest_ports(devices: Iterable[str]) -> tuple[str, ...]:
    """Enable hairpin mode on bridge ports, and disable the host's own IPv6 on them; return the ports whose mode was
    off. Devices that do not exist, or are not bridge ports, are skipped."""
    def work(ip: IPRoute) -> tuple[str, ...]:
        turned = []
        for link in ip.get_links():
            name, reflects = link.get_attr("IFLA_IFNAME"), _reflects(link)
            if name not in wanted or reflects is None:
                continue
            files.speak_ipv6(name, False)
            if not reflects:
                with ignoring(errno.ENODEV):
                    ip.brport("set", index=link["index"], mode=1)
                    turned.append(name)
        return tuple(turned)
    wanted = frozenset(devices)
    return conversation(", ".join(sorted(wanted)), work) if wanted else ()


def ports(bridge: str) -> tuple[str, ...]:
    """Return the names of a bridge's ports; empty if there is no such bridge."""
    def work(ip: IPRoute) -> tuple[str, ...]:
        index = index_or_none(ip, bridge)
        if index is None:
            return ()
        return tuple(sorted(link.get_attr("IFLA_IFNAME") for link in ip.get_links()
                            if link.get_attr("IFLA_MASTER") == index))
    return conversation(bridge, work)


# --- addresses and routes ---------------------------------------------------------------------------------------------

def addresses(device: str) -> tuple[Address, ...]:
    """Return IPv4 addresses in the kernel's order: the first is its source address."""
    return conversation(device, lambda ip: _addresses(ip, index_of(ip, device)))


def addresses_v6(device: str) -> tuple[Address, ...]:
    """Return IPv6 addresses, including the link-local address. Raises host.Link if there is no such device."""
    return conversation(device, lambda ip: _addresses(ip, index_of(ip, device), IPV6))


@forwarded("links.ensure_address")
def ensure_address(device: str, address: Address) -> None:
    """Add an IPv4 or IPv6 address, unless the device has it. Raises host.Link if there is no such device, or if the
    kernel refuses."""
    conversation(device, lambda ip: _add_address(ip, index_of(ip, device), address))


@forwarded("links.delete_address")
def delete_address(device: str, address: Address) -> None:
    """Remove an address, if the device has it. Raises host.Link if there is no such device."""
    conversation(device, lambda ip: _delete_address(ip, index_of(ip, device), address))


def routes(device: str) -> tuple[LinkRoute, ...]:
    """Return routes over the device that the kernel did not make itself."""
    return conversation(device, lambda ip: _routes(ip, index_of(ip, device)))


@forwarded("links.ensure_route")
def ensure_route(device: str, route: LinkRoute) -> None:
    """Create or replace a route over the device."""
    conversation(device, lambda ip: _put_route(ip, index_of(ip, device), route))


# --- inside one netlink conversation ----------------------------------------------------------------------------------

def _link(ip: IPRoute, index: int) -> NetlinkMessage:
    found: NetlinkMessage = ip.get_links(index)[0]
    return found


def _ensure_bridge(ip: IPRoute, name: str, interface: str | None, wanted: tuple[int | None, str | None]) -> None:
    mtu, mac = wanted
    index = index_or_none(ip, name)
    if index is None:
        # Set a MAC of its own: a bridge otherwise takes the lowest MAC of its ports, and changes it as guests come and
        # go.
        mac = mac or (_link(ip, index_of(ip, interface)).get_attr("IFLA_ADDRESS") if interface else generate_mac())
        with ignoring(errno.EEXIST):
            ip.link("add", ifname=name, kind="bridge", address=mac, br_forward_delay=0, br_stp_state=0)
        index = index_of(ip, name)
    link = _link(ip, index)
    info = link.get_attr("IFLA_LINKINFO")
    if info is None or info.get_attr("IFLA_INFO_KIND") != "bridge":
        raise errors.host.Link(device=name, reason="it exists, but is not a bridge")
    data = info.get_attr("IFLA_INFO_DATA")
    if data.get_attr("IFLA_BR_STP_STATE") or data.get_attr("IFLA_BR_FORWARD_DELAY"):
        ip.link("set", index=index, kind="bridge", br_stp_state=0, br_forward_delay=0)
    if not link["flags"] & IFF_UP:  # new (or left unfinished by a process that died here): before it has any address
        files.speak_ipv6(name, False)
    _up(ip, link, mtu)


def _lives_on(ip: IPRoute, index: int) -> bool:
    """Return whether the host has IPv6 addresses of its own on the device, or on a port of it."""
    devices = {index} | {link["index"] for link in ip.get_links() if link.get_attr("IFLA_MASTER") == index}
    return any(found["scope"] == SCOPES["global"] and found["index"] in devices for found in ip.get_addr(family=IPV6))


def _reflects(link: NetlinkMessage) -> bool | None:
    """Return whether hairpin mode is on; None if the link is not a bridge port."""
    info = link.get_attr("IFLA_LINKINFO")
    if info is None or info.get_attr("IFLA_INFO_SLAVE_KIND") != "bridge":
        return None
    return bool(info.get_attr("IFLA_INFO_SLAVE_DATA").get_attr("IFLA_BRPORT_MODE"))


def _up(ip: IPRoute, link: NetlinkMessage, mtu: int | None = None) -> None:
    if mtu and link.get_attr("IFLA_MTU") != mtu:
        ip.link("set", index=link["index"], mtu=mtu)
    if not link["flags"] & IFF_UP:
        ip.link("set", index=link["index"], state="up")


def _enslave(ip: IPRoute, bridge: str, interface: str) -> None:
    master, index = index_of(ip, bridge), index_of(ip, interface)
    link = _link(ip, index)
    current = link.get_attr("IFLA_MASTER")
    if current not in (None, 0, master):
        raise errors.host.Link(device=interface, reason=f"it is a port of {_link(ip, current).get_attr('IFLA_IFNAME')}")
    if current != master:
        ip.link("set", index=index, master=master)
    _up(ip, link)
    if any(one.scope == SCOPES["global"] for one in _addresses(ip, index, IPV6)):
        files.speak_ipv6(_link(ip, master).get_attr("IFLA_IFNAME"), True)
    moving = _addresses(ip, index)
    for address in moving:
        _add_address(ip, master, address)
    for route in _routes(ip, index):
        _put_route(ip, master, route)
    for address in moving:
        _delete_address(ip, index, address)


def _ensure_vlan(ip: IPRoute, vlan: Vlan) -> None:
    parent = index_of(ip, vlan.parent)
    _up(ip, _link(ip, parent))  # a VLAN device cannot be up if its parent is down
    index = index_or_none(ip, vlan.name)
    if index is None:
        with ignoring(errno.EEXIST):
            ip.link("add", ifname=vlan.name, kind="vlan", link=parent, vlan_id=vlan.id,
                    **({"address": vlan.mac} if vlan.mac else {}))
        index = index_of(ip, vlan.name)
    link = _link(ip, index)
    info = link.get_attr("IFLA_LINKINFO")
    if (info is None or info.get_attr("IFLA_INFO_KIND") != "vlan" or link.get_attr("IFLA_LINK") != parent
            or info.get_attr("IFLA_INFO_DATA").get_attr("IFLA_VLAN_ID") != vlan.id):
        raise errors.host.Link(device=vlan.name, reason=f"it exists, but is not VLAN {vlan.id} of {vlan.parent}")
    _up(ip, link, vlan.mtu)


def _ensure_up(ip: IPRoute, device: str, mac: str | None, mtu: int | None) -> None:
    link = _link(ip, index_of(ip, device))
    if mac and link.get_attr("IFLA_ADDRESS") != mac:
        ip.link("set", index=link["index"], address=mac)
    _up(ip, link, mtu)


def _ensure_tap(ip: IPRoute, tap: Tap) -> None:
    index = index_or_none(ip, tap.name)
    if index is None:
        make_tap(tap)
        index = index_of(ip, tap.name)
    link = _link(ip, index)
    if tap.mac and link.get_attr("IFLA_ADDRESS") != tap.mac:
        ip.link("set", index=index, address=tap.mac)
    if tap.bridge:
        master = index_of(ip, tap.bridge)
        if link.get_attr("IFLA_MASTER") != master:
            ip.link("set", index=index, master=master)
    _up(ip, link, tap.mtu)


def _family(address: str) -> int:
    return IPV6 if ":" in address else IPV4


def _addresses(ip: IPRoute, index: int, family: int = IPV4) -> tuple[Address, ...]:
    """Return the device's addresses. The kernel names an IPv4 address IFA_LOCAL, and an IPv6 address IFA_ADDRESS."""
    return tuple(Address(found.get_attr("IFA_LOCAL") or found.get_attr("IFA_ADDRESS"), found["prefixlen"],
                         found.get_attr("IFA_BROADCAST"), found["scope"])
                 for found in ip.get_addr(family=family, index=index))


def _add_address(ip: IPRoute, index: int, address: Address) -> None:
    family = _family(address.address)
    more: dict[str, str | int] = {"broadcast": address.broadcast} if address.broadcast else {}
    if family == IPV6:
        more = {"flags": NO_DAD}
    with ignoring(errno.EEXIST):
        ip.addr("add", index=index, address=address.address, prefixlen=address.prefix, family=family,
                scope=address.scope, **more)


def _delete_address(ip: IPRoute, index: int, address: Address) -> None:
    with ignoring(errno.EADDRNOTAVAIL, errno.ENODEV):
        ip.addr("del", index=index, address=address.address, prefixlen=address.prefix,
                family=_family(address.address))


def _routes(ip: IPRoute, index: int) -> tuple[LinkRoute, ...]:
    return tuple(LinkRoute(found.get_attr("RTA_DST") or "", found["dst_len"], found.get_attr("RTA_GATEWAY"),
                           found.get_attr("RTA_PRIORITY"), found.get_attr("RTA_PREFSRC"), found["proto"],
                           found["scope"])
                 for found in ip.get_routes(family=IPV4, oif=index, table=MAIN_TABLE)
                 if found["proto"] != KERNEL_MADE)


def _put_route(ip: IPRoute, index: int, route: LinkRoute) -> None:
    destination = f"{route.destination or '0.0.0.0'}/{route.prefix}"
    optional = {"gateway": route.gateway, "priority": route.metric, "prefsrc": route.source}
    ip.route("replace", dst=destination, oif=index, family=_family(route.destination), proto=route.protocol,
             scope=route.scope, **{key: value for key, value in optional.items() if value is not None})
