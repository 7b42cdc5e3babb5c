"""Network metadata of a guest: network_data.json, and the interfaces file of networks without DHCP.

Pure. An interface lists its subnets in ``subnets``; one stored by an older release only has its first IPv4 subnet.
"""

from __future__ import annotations

import ipaddress
import string
from collections.abc import Iterable, Iterator, Mapping
from typing import TypedDict

from nova.model.network.networks import FixedAddress, Interface, Subnet

JsonObject = Mapping[str, object]

#: Link types that guest programs support since before ``phy``. All other port types are shown as ``phy``.
LINK_TYPES = frozenset({"bridge", "dvs", "hw_veb", "hyperv", "ovs", "tap", "vhostuser", "vif"})
IPV6_MODES = frozenset({"slaac", "dhcpv6-stateful", "dhcpv6-stateless"})

#: Template of the file for a guest without DHCP, as for Debian's ifupdown. ``$interfaces``: one stanza per address.
TEMPLATE = """\
# Written by the cloud that this machine runs in.

auto lo
iface lo inet loopback

$interfaces"""


def network_data(interfaces: Iterable[Interface]) -> dict[str, object]:
    """Return links, their networks, and name servers; empty without interfaces."""
    links: list[JsonObject] = []
    networks: list[JsonObject] = []
    services: list[JsonObject] = []
    for number, interface in enumerate(interfaces):
        link = interface.device or f"interface{number}"
        links.append({"id": link, "vif_id": interface.id,
                      "type": interface.type if interface.type in LINK_TYPES else "phy",
                      "mtu": None if _tells_by_dhcp(interface) else interface.mtu,
                      "ethernet_mac_address": interface.mac})
        for entry in _entries(interface):
            networks.append({"id": f"network{len(networks)}", "link": link, "network_id": interface.network_id,
                             **entry})
            services += [service for service in entry.get("services", ()) if service not in services]
    return {"links": links, "networks": networks, "services": services} if links else {}


def network_config(interfaces: Iterable[Interface], template: str = TEMPLATE) -> str | None:
    """Return the interfaces file for injected addresses, rendered from ``template``; None if no address is injected."""
    stanzas = [stanza for number, interface in enumerate(interfaces) if interface.injected
               for stanza in _stanzas(f"eth{number}", interface)]
    return string.Template(template).safe_substitute(interfaces="\n".join(stanzas)) if stanzas and template else None


def subnets_of(interface: Interface) -> tuple[Subnet, ...]:
    """Return all subnets of an interface. If it only has the facts of its first subnet, the result is built from
    them."""
    if interface.subnets or not interface.cidr:
        return interface.subnets
    version = ipaddress.ip_network(interface.cidr, strict=False).version
    return (Subnet(cidr=interface.cidr, version=version, gateway=interface.gateway, dns=interface.dns,
                   dhcp=bool(interface.dhcp_server), dhcp_server=interface.dhcp_server),)


class NetworkEntry(TypedDict, total=False):
    """An entry of ``networks`` for one address, without the members about its link."""

    type: str
    ip_address: str
    netmask: str
    routes: list[dict[str, str]]
    services: list[dict[str, str]]


def _entries(interface: Interface) -> Iterator[NetworkEntry]:
    """Yield one entry per address; a subnet whose addresses come by DHCP has only one entry."""
    listed: set[tuple[str, str]] = set()
    for address, subnet in _pairs(interface):
        kind = _kind(interface, address, subnet)
        if kind.endswith("_dhcp"):
            key = kind, subnet.cidr if subnet is not None else ""
            if key not in listed:
                yield {"type": kind}
            listed.add(key)
            continue
        yield {"type": kind, "ip_address": address.address, "netmask": _netmask(subnet),
               "routes": list(_routes(address.version, subnet)),
               "services": [{"type": "dns", "address": server} for server in (subnet.dns if subnet else ())]}


def _pairs(interface: Interface) -> Iterator[tuple[FixedAddress, Subnet | None]]:
    subnets = subnets_of(interface)
    for address in interface.addresses:
        yield address, next((one for one in subnets if _holds(one, address)), None)


def _holds(subnet: Subnet, address: FixedAddress) -> bool:
    if subnet.version != address.version:
        return False
    if subnet.id and address.subnet_id:
        return subnet.id == address.subnet_id
    return ipaddress.ip_address(address.address) in ipaddress.ip_network(subnet.cidr, strict=False)


def _kind(interface: Interface, address: FixedAddress, subnet: Subnet | None) -> str:
    family = f"ipv{address.version}"
    if interface.injected:
        return family
    if address.version == 6 and subnet is not None and subnet.ipv6_mode in IPV6_MODES:
        return f"ipv6_{subnet.ipv6_mode}"
    by_dhcp = subnet.dhcp if subnet is not None else bool(interface.dhcp_server)
    return f"{family}_dhcp" if by_dhcp else family


def _tells_by_dhcp(interface: Interface) -> bool:
    """Return whether a DHCP server announces the MTU, among other facts, to the guest."""
    return not interface.injected and (bool(interface.dhcp_server) or any(one.dhcp for one in subnets_of(interface)))


def _netmask(subnet: Subnet | None) -> str:
    return str(ipaddress.ip_network(subnet.cidr, strict=False).netmask) if subnet is not None else ""


def _routes(version: int, subnet: Subnet | None) -> Iterator[dict[str, str]]:
    if subnet is None:
        return
    if subnet.gateway:
        everything = "0.0.0.0" if version == 4 else "::"
        yield {"network": everything, "netmask": everything, "gateway": subnet.gateway}
    for route in subnet.routes:
        to = ipaddress.ip_network(route.cidr, strict=False)
        yield {"network": str(to.network_address), "netmask": str(to.netmask), "gateway": route.gateway}


def _stanzas(device: str, interface: Interface) -> Iterator[str]:
    begun = False
    for address, subnet in _pairs(interface):
        if subnet is None:
            continue
        network = ipaddress.ip_network(subnet.cidr, strict=False)
        lines = [] if begun else [f"auto {device}"]
        lines.append(f"iface {device} {'inet' if address.version == 4 else 'inet6'} static")
        lines += [] if begun else [f"    hwaddress ether {interface.mac}"]
        lines.append(f"    address {address.address}")
        if address.version == 4:
            lines += [f"    netmask {network.netmask}", f"    broadcast {network.broadcast_address}"]
        else:
            lines.append(f"    netmask {network.prefixlen}")
        if interface.mtu and not begun:
            lines.append(f"    mtu {interface.mtu}")
        if subnet.gateway:
            lines.append(f"    gateway {subnet.gateway}")
        if subnet.dns:
            lines.append(f"    dns-nameservers {' '.join(subnet.dns)}")
        lines += [f"    post-up ip route add {route.cidr} via {route.gateway} || true" for route in subnet.routes]
        yield "\n".join(lines) + "\n"
        begun = True
