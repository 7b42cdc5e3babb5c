"""Rules of security groups: their validation, and their conversion to a host's filter. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Set

import msgspec

from nova import errors, failures
from nova.model.network.networks import Interface
from nova.model.network.security_groups import AllowedTraffic, GuardedInterface, NewSecurityRule, SecurityRule

TCP, UDP, ICMP, ICMPV6 = "tcp", "udp", "icmp", "icmpv6"
PROTOCOLS = (TCP, UDP, ICMP, ICMPV6)
WITH_PORTS = (TCP, UDP)
ANY = -1  # ICMP: any type, any code
FIRST_PORT, LAST_PORT, LAST_TYPE = 1, 65535, 255
EVERYWHERE = ("0.0.0.0/0", "::/0")  # the only notations for a range of all addresses


def checked(rule: NewSecurityRule) -> NewSecurityRule:
    """Validate a rule and return it with all fields set: protocol in lower case, ports, and a range if it has no source
    group."""
    protocol = _protocol(rule)
    from_port, to_port = _ports(rule, protocol)
    cidr = None if rule.source_id else _range(rule.cidr)
    if protocol == ICMPV6 and cidr is not None and version(cidr) == 4:
        raise errors.security_group.BadCidr(cidr=cidr, reason="ICMPv6 requires an IPv6 range")
    return msgspec.structs.replace(rule, protocol=protocol, from_port=from_port, to_port=to_port, cidr=cidr)


def same(one: SecurityRule | NewSecurityRule, other: SecurityRule | NewSecurityRule) -> bool:
    """Return whether two validated rules are equal."""
    return all(getattr(one, name) == getattr(other, name)
               for name in ("from_port", "to_port", "cidr", "source_id")) and \
        (one.protocol or "").lower() == (other.protocol or "").lower()


def version(cidr: str) -> int:
    """Return the IP version of a range: 4 or 6."""
    return ipaddress.ip_network(cidr).version


def _protocol(rule: NewSecurityRule) -> str | None:
    if not rule.protocol:
        if not rule.source_id:
            raise errors.security_group.NotEnough(what="ip_protocol")
        return None
    protocol = rule.protocol.lower()
    if protocol not in PROTOCOLS:
        raise errors.security_group.BadProtocol(protocol=rule.protocol, allowed=", ".join(PROTOCOLS))
    return protocol


def _ports(rule: NewSecurityRule, protocol: str | None) -> tuple[int | None, int | None]:
    first, last = rule.from_port, rule.to_port
    if protocol is None:  # all of tcp, udp and icmp, from a group
        if {first, last} - {None, ANY}:
            raise errors.security_group.NotEnough(what="ip_protocol")
        return None, None
    if first is None and last is None and (rule.source_id or protocol not in WITH_PORTS):
        return (FIRST_PORT, LAST_PORT) if protocol in WITH_PORTS else (ANY, ANY)
    if first is None or last is None:
        raise errors.security_group.NotEnough(what="from_port" if first is None else "to_port")
    reason = _wrong_ports(first, last) if protocol in WITH_PORTS else _wrong_types(first, last)
    if reason:
        raise errors.security_group.BadPorts(from_port=first, to_port=last, reason=reason)
    return first, last


def _wrong_ports(first: int, last: int) -> str:
    if not FIRST_PORT <= first <= LAST_PORT or not FIRST_PORT <= last <= LAST_PORT:
        return f"Valid TCP and UDP ports are between {FIRST_PORT} and {LAST_PORT}."
    return "Former value cannot be greater than the later" if first > last else ""


def _wrong_types(kind: int, code: int) -> str:
    if not ANY <= kind <= LAST_TYPE or not ANY <= code <= LAST_TYPE:
        return f"For ICMP, the type and code must be between {ANY} (any) and {LAST_TYPE}."
    return "For ICMP, a code requires a type." if kind == ANY and code != ANY else ""


def _range(cidr: str | None) -> str:
    if not cidr:
        return EVERYWHERE[0]
    with failures.replaced(ValueError,
            lambda _: errors.security_group.BadCidr(cidr=cidr, reason="it is not a valid address range")):
        found = ipaddress.ip_network(cidr, strict=False)
    if "/" not in cidr:
        raise errors.security_group.BadCidr(cidr=cidr, reason="it has no prefix length")
    if found.prefixlen == 0 and cidr not in EVERYWHERE:
        raise errors.security_group.BadCidr(cidr=cidr, reason=f"for all addresses, use {' or '.join(EVERYWHERE)}")
    return str(found)


def allowed(rule: SecurityRule, sources: Iterable[str]) -> Iterator[AllowedTraffic]:
    """Yield the traffic that a host admits for the rule. ``sources``: addresses of the source group's members; an empty
    or deleted group admits no traffic."""
    ranges = [str(ipaddress.ip_network(one)) for one in sources] if rule.source_id else [rule.cidr] if rule.cidr else []
    for cidr in ranges:
        for protocol, first, last in _parts(rule):
            six = version(cidr) == 6
            if protocol == ICMP and six:
                protocol = ICMPV6
            if protocol != ICMPV6 or six:
                yield AllowedTraffic(protocol=protocol, from_port=first, to_port=last, cidr=cidr)


def _parts(rule: SecurityRule) -> tuple[tuple[str, int | None, int | None], ...]:
    if rule.protocol:
        return ((rule.protocol.lower(), rule.from_port, rule.to_port),)
    return ((TCP, FIRST_PORT, LAST_PORT), (UDP, FIRST_PORT, LAST_PORT), (ICMP, ANY, ANY))


def guarded(interfaces: Iterable[Interface], routers: Set[str] = frozenset()) -> tuple[GuardedInterface, ...]:
    """Return the filtered interfaces of a guest: interfaces with a device on the host and with port security.
    ``routers``: addresses of guests that forward packets of others."""
    return tuple(_guard(one, routers) for one in interfaces if one.device and one.filtered)


def _guard(interface: Interface, routers: Set[str]) -> GuardedInterface:
    addresses = tuple(address.address for address in interface.addresses)
    return GuardedInterface(
        mac=interface.mac.lower(), device=interface.device or "", bridge=interface.bridge, addresses=addresses,
        ranges=tuple(dict.fromkeys(_ranges(interface))), dhcp_server=interface.dhcp_server,
        gateway_v6=next((subnet.gateway for subnet in interface.subnets if subnet.version == 6), None),
        routes_for_others=not routers.isdisjoint(addresses))


def _ranges(interface: Interface) -> Iterator[str]:
    """Yield the ranges that ``allow_same_net_traffic`` admits: only of a network with a VLAN, which belongs to one
    project. Other networks are shared by guests of all projects."""
    for cidr in (interface.cidr, *(subnet.cidr for subnet in interface.subnets)) if interface.vlan is not None else ():
        if cidr:
            yield str(ipaddress.ip_network(cidr, strict=False))
