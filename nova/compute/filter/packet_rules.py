"""Packet filter rules of security groups on a compute host, for iptables and ip6tables. Pure: the rules are derived
from the traffic that the guests may receive.

Operators know these chains and rules (contract: security groups on compute hosts); the format is that of
iptables-save. Packets for a guest pass through its chain, selected by its addresses; packets that no rule accepts end
in ``sg-fallback``. Traffic between two guests on one bridge also passes through FORWARD if bridges call iptables
(:mod:`nova.compute.filter.host_filter` enables that).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nova.model.network.forbidden_ranges import Forbidden
from nova.model.network.security_groups import AllowedTraffic, GuardedInterface, GuestFirewall, HostFirewall
from nova.privileged import forbidden_rules
from nova.privileged.announcements import MARKED
from nova.privileged.forbidden_rules import MetadataService
from nova.privileged.iptables import Table

PROGRAM, TABLE = "nova-compute", "filter"
OWN = f"{PROGRAM}-"  # prefix of the names of all chains of this program
TOP = "nova-filter-top"  # shared with nova-network
INSTANCE = f"{PROGRAM}-inst-"
ANY = -1
NEIGHBOUR_TYPES = (135, 136)  # neighbour discovery: without these types, a guest's IPv6 address cannot be resolved
LINK_LOCAL = ipaddress.IPv6Network("fe80::/64")
NOTHING = Forbidden()


@dataclass(frozen=True)
class RuleOptions:
    """Options of the rules. ``same_net``: guests of one network reach each other regardless of their groups; ``drop``:
    the target for packets that no rule accepts."""

    same_net: bool = True
    drop: str = "DROP"
    metadata: MetadataService = MetadataService()


def chain(name: str) -> str:
    """Return the name of a chain of this program."""
    return f"{PROGRAM}-{name}"


def table(state: HostFirewall, options: RuleOptions, version: int, forbidden: Forbidden = NOTHING) -> Table:
    """Return the whole filter table of IPv4 or IPv6; it does not depend on the order of the state."""
    guests = sorted(state.guests, key=lambda guest: guest.id)
    cards = [interface for guest in guests for interface in guest.interfaces]
    begun = _unique([*(_dhcp_requests() if version == 4 else ()), *_entries(cards, forbidden, version)])
    chains = {
        chain("INPUT"): begun,
        chain("OUTPUT"): (),
        chain("FORWARD"): begun,
        chain("forbidden"): _unique(forbidden_rules.verdicts(
            forbidden, version, options.metadata,
            [f"{sent} -j {options.drop}" for card in cards for sent in _sent_by(card, version)])),
        chain("local"): _unique(jump for guest in guests for jump in _jumps(guest, version)),
        chain("provider"): _unique(rule for one in state.dropped for rule in _rules(one, version, options.drop)),
        chain("sg-fallback"): (f"-j {options.drop}",),
        **{f"{INSTANCE}{guest.id}": _unique(_guest(guest, options, version)) for guest in guests}}
    return Table(TABLE, chains=chains, shared=(TOP,), own=INSTANCE,
                 first={"INPUT": (chain("INPUT"),), "FORWARD": (TOP, chain("FORWARD")),
                        "OUTPUT": (TOP, chain("OUTPUT")), TOP: (chain("local"),)})


def link_local(mac: str) -> ipaddress.IPv6Address:
    """Return the link-local address of a MAC (RFC 4291, appendix A): a guest may use no other link-local address."""
    high, low = int(mac.replace(":", "")[:6], 16), int(mac.replace(":", "")[6:], 16)
    return LINK_LOCAL[((high ^ 0x020000) << 40) | 0xFFFE << 24 | low]


def _jumps(guest: GuestFirewall, version: int) -> Iterator[str]:
    for interface in guest.interfaces:
        for address in _addresses(interface, version):
            yield f"-d {_single(address)} -j {INSTANCE}{guest.id}"


def _addresses(interface: GuardedInterface, version: int) -> Iterator[str]:
    for address in interface.addresses:
        if ipaddress.ip_address(address).version == version:
            yield address
    if version == 6:
        yield str(link_local(interface.mac))


def _entries(cards: Iterable[GuardedInterface], forbidden: Forbidden, version: int) -> Iterator[str]:
    """Yield entry rules only for packets from the guests' bridges, so that many guests do not slow down the host's own
    traffic."""
    for bridge in sorted({card.bridge or "" for card in cards}):
        yield from forbidden_rules.entries(forbidden, version, bridge or None, chain("forbidden"))


def _sent_by(card: GuardedInterface, version: int) -> Iterator[str]:
    """Yield matches for packets from an interface. Its bridge may also be the host's uplink, so packets are matched by
    their source, which :mod:`nova.compute.filter.frame_rules` binds to the interface. A guest that forwards others'
    packets has a bridge of its project."""
    if card.routes_for_others and card.bridge:
        yield f"-i {card.bridge}"
        return
    for address in _addresses(card, version):
        yield f"-s {_single(address)}"


def _guest(guest: GuestFirewall, options: RuleOptions, version: int) -> Iterator[str]:
    yield f"-m conntrack --ctstate INVALID -j {options.drop}"
    yield "-m conntrack --ctstate RELATED -j ACCEPT"
    yield "-m conntrack --ctstate ESTABLISHED --ctdir REPLY -j ACCEPT"
    yield f"-m conntrack --ctstate ESTABLISHED -m connmark ! --mark {MARKED} -j ACCEPT"
    yield f"-j {chain('provider')}"
    for interface in guest.interfaces:
        if version == 4 and interface.dhcp_server:
            yield f"-s {_single(interface.dhcp_server)} -p udp -m udp --sport 67 --dport 68 -j ACCEPT"
    yield from _neighbours(guest, options, version)
    for allowed in guest.allowed:
        yield from _rules(allowed, version, "ACCEPT")
    yield f"-j {chain('sg-fallback')}"


def _neighbours(guest: GuestFirewall, options: RuleOptions, version: int) -> Iterator[str]:
    if options.same_net:
        for cidr in (cidr for interface in guest.interfaces for cidr in interface.ranges):
            if ipaddress.ip_network(cidr).version == version:
                yield f"-s {cidr} -j ACCEPT"
    if version == 4:
        return
    for interface in guest.interfaces:
        if interface.gateway_v6:
            yield f"-s {_single(interface.gateway_v6)} -p ipv6-icmp -j ACCEPT"
    if options.same_net:
        yield f"-s {LINK_LOCAL} -j ACCEPT"
    else:
        for kind in NEIGHBOUR_TYPES:
            yield f"-p ipv6-icmp -m icmp6 --icmpv6-type {kind} -j ACCEPT"


def _rules(traffic: AllowedTraffic, version: int, target: str) -> Iterator[str]:
    """Yield the rule for this traffic, if it applies to this IP version."""
    source = ""
    if traffic.cidr is not None:
        cidr = ipaddress.ip_network(traffic.cidr)
        if cidr.version != version:
            return
        source = f"-s {cidr} " if cidr.prefixlen else ""
    match = _match(traffic, version)
    if match is not None:
        yield f"{source}{match}-j {target}"


def _match(traffic: AllowedTraffic, version: int) -> str | None:
    """Return the match expression; None if this IP version has no such protocol."""
    protocol = traffic.protocol
    if protocol is None:
        return ""
    if protocol in ("tcp", "udp"):
        return f"-p {protocol} {_ports(protocol, traffic)}"
    if (protocol, version) == ("icmp", 4):
        return "-p icmp " + _type("-m icmp --icmp-type", traffic)
    if (protocol, version) == ("icmpv6", 6):
        return "-p ipv6-icmp " + _type("-m icmp6 --icmpv6-type", traffic)
    return None


def _ports(protocol: str, traffic: AllowedTraffic) -> str:
    if traffic.from_port is None or traffic.to_port is None:
        return ""
    if traffic.from_port == traffic.to_port:
        return f"-m {protocol} --dport {traffic.from_port} "
    return f"-m multiport --dports {traffic.from_port}:{traffic.to_port} "


def _type(match: str, traffic: AllowedTraffic) -> str:
    kind, code = traffic.from_port, traffic.to_port
    if kind is None or kind == ANY:
        return ""
    return f"{match} {kind} " if code is None or code == ANY else f"{match} {kind}/{code} "


def _dhcp_requests() -> tuple[str, ...]:
    return ("-s 0.0.0.0/32 -d 255.255.255.255/32 -p udp -m udp --sport 68 --dport 67 -j ACCEPT",)


def _single(address: str) -> str:
    return str(ipaddress.ip_network(address))


def _unique(rules: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(rules))
