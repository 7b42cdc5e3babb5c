"""Frames that a guest may send from each of its interfaces, as ebtables rules. Pure.

Each tap has a chain, called in the bridges' PREROUTING, which is before a frame is either forwarded or delivered to the
host. Sources are bound to the interface: its MAC and its addresses. These rules are not libvirt nwfilters, because
nwfilters come and go with the domain. Nova's rules exist before a guest runs, and survive its restart and libvirtd's.
They change together with the security groups, and are compared with the kernel's periodically.

A tap in hairpin mode (``hairpins.py``) would also return a guest's own multicast frames to it. For IPv6 that means
a duplicate address, so those frames are dropped.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from nova.compute.filter.packet_rules import OWN, PROGRAM, link_local
from nova.model.network.security_groups import GuardedInterface, HostFirewall
from nova.privileged.iptables import Table

TABLE = "nat"
TAPS, ECHOES = f"{OWN}taps", f"{OWN}echoes"

#: Frames that no guest may send: DHCP server replies, router advertisements, redirects, tagged frames.
NEVER = (
    "-p IPv4 --ip-proto udp --ip-sport 67 --ip-dport 68 -j DROP",
    "-p IPv6 --ip6-proto udp --ip6-sport 547 --ip6-dport 546 -j DROP",
    "-p IPv6 --ip6-proto ipv6-icmp --ip6-icmp-type router-advertisement -j DROP",
    "-p IPv6 --ip6-proto ipv6-icmp --ip6-icmp-type redirect -j DROP",
)
REDIRECTS = "-p IPv4 --ip-proto icmp --ip-icmp-type redirect -j DROP"  # only routers have a reason to send them
DHCP_REQUEST = "-p IPv4 --ip-src 0.0.0.0 --ip-dst 255.255.255.255 --ip-proto udp --ip-sport 68 --ip-dport 67 -j RETURN"
ADDRESS_PROBE = "-p ARP --arp-ip-src 0.0.0.0 -j RETURN"
DUPLICATE_DETECTION = "-p IPv6 --ip6-src :: --ip6-proto ipv6-icmp -j RETURN"
ANNOUNCEMENT = "-p RARP -j RETURN"  # QEMU announces a migrated guest's new location to switches


def table(state: HostFirewall) -> Table:
    """Return the complete table of this host's frame rules: a chain for each tap of each guarded guest, and the jumps
    to them."""
    taps = sorted((one for guest in state.guests for one in guest.interfaces), key=lambda one: one.device)
    chains = {TAPS: tuple(f"-i {one.device} -j {PROGRAM}-{one.device}" for one in taps),
              ECHOES: tuple(f"-s {one.mac} -d Multicast -o {one.device} -j DROP" for one in taps),
              **{f"{PROGRAM}-{one.device}": tuple(_sends(one)) for one in taps}}
    return Table(TABLE, chains=chains, first={"PREROUTING": (TAPS,), "POSTROUTING": (ECHOES,)},
                 own=OWN, sparse=True)


def _sends(interface: GuardedInterface) -> Iterator[str]:
    mac, addresses = interface.mac, [ipaddress.ip_address(one) for one in interface.addresses]
    yield f"-s ! {mac} -j DROP"
    yield f"-p ARP --arp-mac-src ! {mac} -j DROP"
    for address in addresses:
        if address.version == 4:
            yield f"-p ARP --arp-ip-src {address} -j RETURN"
    yield ADDRESS_PROBE
    yield "-p ARP -j DROP"
    yield from NEVER
    if interface.routes_for_others:
        yield from ("-p IPv4 -j RETURN", "-p IPv6 -j RETURN")
    else:
        yield from _own_sources(mac, addresses)
    yield ANNOUNCEMENT
    yield "-j DROP"


def _own_sources(mac: str, addresses: list[ipaddress.IPv4Address | ipaddress.IPv6Address]) -> Iterator[str]:
    yield REDIRECTS
    yield DHCP_REQUEST
    for address in (*addresses, link_local(mac)):
        yield f"-p IPv4 --ip-src {address} -j RETURN" if address.version == 4 else \
            f"-p IPv6 --ip6-src {address} -j RETURN"
    yield DUPLICATE_DETECTION
