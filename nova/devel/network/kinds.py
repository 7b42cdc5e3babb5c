"""Kinds of FakeNeutron's resources: members that clients set, their valid values, and the rights to set and see
them."""

from __future__ import annotations

import contextlib
import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeGuard, TypeVar, cast

from nova.devel.network.records import (
    FloatingRecord,
    GroupRecord,
    NetworkRecord,
    NeutronResource,
    PortRecord,
    RouterRecord,
    RuleRecord,
    SubnetRecord,
)
from nova.devel.service import FakeError, TokenOwner
from nova.model.base import JsonValue

Record = TypeVar("Record", bound=NeutronResource)
Record_co = TypeVar("Record_co", bound=NeutronResource, covariant=True)

LONGEST = 255  # characters of a name
MAC = re.compile("([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}")
PROTOCOLS = ("ah", "dccp", "egp", "esp", "gre", "icmp", "icmpv6", "igmp", "ipip", "ipv6-encap", "ipv6-frag",
             "ipv6-icmp", "ipv6-nonxt", "ipv6-opts", "ipv6-route", "ospf", "pgm", "rsvp", "sctp", "tcp", "udp",
             "udplite", "vrrp")
IPV6_MODES = ("slaac", "dhcpv6-stateful", "dhcpv6-stateless")
VNIC_TYPES = ("normal", "direct", "macvtap", "baremetal", "direct-physical", "virtio-forwarder", "smart-nic", "vdpa",
              "remote-managed", "accelerator-direct", "accelerator-direct-physical")


class NetworkError(FakeError):
    """Error response to a client. ``kind``: the error's type in Neutron's body."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(status, message)
        self.kind = kind


class NetworkMember(NamedTuple):
    """A member of a resource. ``fits`` checks a value; ``wanted`` describes the valid values. ``default``: for a new
    resource; ``required``: it has no default. ``post``, ``put``: whether clients may set it then. ``guarded``: only
    administrators and services set it; ``hidden``: only they see it."""

    fits: Callable[[object], bool]
    wanted: str
    default: JsonValue = None
    required: bool = False
    post: bool = True
    put: bool = True
    guarded: bool = False
    hidden: bool = False


def is_privileged(owner: TokenOwner) -> bool:
    """Return whether the owner is an administrator, or a service such as nova."""
    return owner.is_admin or "service" in owner.roles


def is_address(value: object) -> bool:
    """Return whether the value is an IPv4 or IPv6 address as text."""
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(value if isinstance(value, str) else "")
        return True
    return False


def is_prefix(value: object) -> bool:
    """Return whether the value is a network in CIDR notation; host bits are allowed."""
    with contextlib.suppress(ValueError):
        ipaddress.ip_network(value if isinstance(value, str) else "", strict=False)
        return True
    return False


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _list_of(fits: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, list) and all(fits(one) for one in value)


def _object_with(**members: Callable[[object], bool]) -> Callable[[object], TypeGuard[dict[str, JsonValue]]]:
    """Return a check for an object with only these members, each of which is optional."""
    def fits(value: object) -> TypeGuard[dict[str, JsonValue]]:
        return isinstance(value, dict) and all(name in members and members[name](one) for name, one in value.items())
    return fits


def _or_null(fits: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or fits(value)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST


def _is_protocol(value: object) -> bool:
    text = str(value).lower()
    return value is None or text in ("any", *PROTOCOLS) or (text.isascii() and text.isdecimal() and int(text) < 256)


TEXT = NetworkMember(_is_text, f"a string of at most {LONGEST} characters", "")
ID = NetworkMember(_is_text, "an id", required=True, put=False)
OTHERS_ID = NetworkMember(_or_null(_is_text), "an id or null")
YES = NetworkMember(lambda value: isinstance(value, bool), "a boolean", True)
NO = YES._replace(default=False)
HINTS = NetworkMember(_list_of(lambda value: value == "nova"), "an array of availability zones, which are: nova", [],
                      put=False)
POOLS = NetworkMember(_list_of(lambda one: _object_with(start=is_address, end=is_address)(one) and len(one) == 2),
                      "an array of objects with start and end", None)
ROUTES = NetworkMember(_or_null(_list_of(lambda one: _object_with(destination=is_prefix, nexthop=is_address)(one)
                                         and len(one) == 2)), "an array of objects with destination and nexthop", [])
FIXED_IPS = NetworkMember(_or_null(_list_of(_object_with(subnet_id=_is_text, ip_address=is_address))),
                          "an array of objects with subnet_id or ip_address")
PAIRS = NetworkMember(_list_of(lambda one: _object_with(ip_address=is_prefix, mac_address=_is_text)(one)
                               and "ip_address" in one), "an array of objects with ip_address", [])
_is_gateway = _object_with(network_id=_is_text, enable_snat=lambda value: isinstance(value, bool),
                           external_fixed_ips=FIXED_IPS.fits)
GATEWAY = NetworkMember(_or_null(lambda value: _is_gateway(value) and (not value or "network_id" in value)),
                        "null or an object with network_id, enable_snat and external_fixed_ips")
_NUMBER = NetworkMember(_or_null(_is_number), "an integer", put=False)


def _one_of(*values: str | int | None, default: JsonValue = None, required: bool = False, put: bool = True,
            guarded: bool = False, hidden: bool = False) -> NetworkMember:
    return NetworkMember(lambda value: value in list(values) and not isinstance(value, bool),
                         f"one of {', '.join(map(str, values))}", default, required, put=put, guarded=guarded,
                         hidden=hidden)


@dataclass(frozen=True)
class NeutronKind(Generic[Record_co]):
    """A kind of resource. ``name``: singular, in bodies and quotas; ``title``: in errors, such as PortNotFound."""

    name: str
    title: str
    members: Mapping[str, NetworkMember]

    @property
    def plural(self) -> str:
        """Plural name, in bodies of lists."""
        return f"{self.name}s"

    @property
    def path(self) -> str:
        """Path of the list."""
        return f"/v2.0/{self.plural.replace('_', '-')}"

    def missing(self, key: str) -> NetworkError:
        """Return a 404 error for an unknown id."""
        return NetworkError(404, f"{self.title}NotFound",
                            f"{self.name.replace('_', ' ').capitalize()} {key} could not be found.")


_NAMED = {"name": TEXT, "description": TEXT}
NETWORK: NeutronKind[NetworkRecord] = NeutronKind("network", "Network", {
    **_NAMED, "admin_state_up": YES, "shared": NO._replace(guarded=True), "router:external": NO._replace(guarded=True),
    "is_default": NO._replace(guarded=True), "port_security_enabled": YES, "dns_domain": TEXT,
    "availability_zone_hints": HINTS,
    "mtu": NetworkMember(lambda value: _is_number(value) and 68 <= value <= 65535, "an integer from 68", 1450),
    "provider:network_type": _one_of("local", "flat", "vlan", "vxlan", "gre", "geneve", default="vxlan", put=False,
                                     guarded=True, hidden=True),
    "provider:physical_network": OTHERS_ID._replace(put=False, guarded=True, hidden=True),
    "provider:segmentation_id": NetworkMember(lambda value: value is None or _is_number(value), "an integer",
                                              put=False, guarded=True, hidden=True)})
SUBNET: NeutronKind[SubnetRecord] = NeutronKind("subnet", "Subnet", {
    **_NAMED, "network_id": ID, "ip_version": _one_of(4, 6, required=True, put=False),
    "cidr": NetworkMember(is_prefix, "a network in CIDR", required=True, put=False),
    "gateway_ip": NetworkMember(_or_null(is_address), "an address or null"), "allocation_pools": POOLS,
    "enable_dhcp": YES, "dns_nameservers": NetworkMember(_list_of(is_address), "an array of addresses", []),
    "host_routes": ROUTES, "ipv6_address_mode": _one_of(None, *IPV6_MODES, put=False),
    "ipv6_ra_mode": _one_of(None, *IPV6_MODES, put=False), "subnetpool_id": _one_of(None, put=False)})
PORT: NeutronKind[PortRecord] = NeutronKind("port", "Port", {
    **_NAMED, "network_id": ID, "admin_state_up": YES, "fixed_ips": FIXED_IPS, "device_id": TEXT, "device_owner": TEXT,
    "mac_address": NetworkMember(lambda value: isinstance(value, str) and bool(MAC.fullmatch(value)), "a MAC address"),
    "security_groups": NetworkMember(_or_null(_list_of(_is_text)), "an array of ids"),
    "port_security_enabled": YES, "allowed_address_pairs": PAIRS, "dns_name": TEXT,
    "extra_dhcp_opts": NetworkMember(_list_of(lambda one: isinstance(one, dict) and "opt_name" in one),
                                     "an array of objects with opt_name and opt_value", []),
    "binding:vnic_type": _one_of(*VNIC_TYPES, default="normal"),
    "binding:host_id": NetworkMember(_or_null(_is_text), "a host's name", "", guarded=True, hidden=True),
    "binding:profile": NetworkMember(_or_null(lambda value: isinstance(value, dict)), "an object", {}, guarded=True,
                                     hidden=True)})
GROUP: NeutronKind[GroupRecord] = NeutronKind("security_group", "SecurityGroup", {**_NAMED, "stateful": YES})
RULE: NeutronKind[RuleRecord] = NeutronKind("security_group_rule", "SecurityGroupRule", {
    "description": TEXT._replace(put=False), "security_group_id": ID, "port_range_min": _NUMBER,
    "port_range_max": _NUMBER, "direction": _one_of("ingress", "egress", required=True, put=False),
    "ethertype": _one_of("IPv4", "IPv6", default="IPv4", put=False),
    "protocol": NetworkMember(_is_protocol, "a protocol's name or number", put=False),
    "remote_ip_prefix": NetworkMember(_or_null(is_prefix), "a network in CIDR", put=False),
    "remote_group_id": OTHERS_ID._replace(put=False)})
ROUTER: NeutronKind[RouterRecord] = NeutronKind("router", "Router", {
    **_NAMED, "admin_state_up": YES, "external_gateway_info": GATEWAY, "routes": ROUTES,
    "availability_zone_hints": HINTS})
FLOATING: NeutronKind[FloatingRecord] = NeutronKind("floatingip", "FloatingIP", {
    "description": TEXT, "floating_network_id": ID, "subnet_id": OTHERS_ID._replace(put=False), "port_id": OTHERS_ID,
    "floating_ip_address": NetworkMember(_or_null(is_address), "an address", put=False, guarded=True),
    "fixed_ip_address": NetworkMember(_or_null(is_address), "an address"), "dns_name": TEXT._replace(put=False),
    "dns_domain": TEXT._replace(put=False)})
KINDS: tuple[NeutronKind[NeutronResource], ...] = (NETWORK, SUBNET, PORT, GROUP, RULE, ROUTER, FLOATING)


def checked(kind: NeutronKind[Record], given: Mapping[str, JsonValue], caller: TokenOwner, is_new: bool) -> Record:
    """Check the members that a client sets, and return them. Raises 400, which names the member, or 403 if the caller
    may not set it."""
    found = dict(given)
    if is_new:
        _check_project(found, caller)
    for name, value in found.items():
        member = kind.members.get(name)
        if member is None or not (member.post if is_new else member.put):
            verb = "POST" if is_new else "PUT"
            raise NetworkError(400, "HTTPBadRequest", f"Attribute '{name}' not allowed in {verb}" if member
                               else f"Unrecognized attribute(s) '{name}'")
        if not member.fits(value):
            raise NetworkError(400, "HTTPBadRequest", f"Invalid input for {name}. Reason: {member.wanted} is required.")
        if member.guarded and value != member.default and not is_privileged(caller):
            raise NetworkError(403, "HTTPForbidden", f"(rule:{'create' if is_new else 'update'}_{kind.name}:{name}) is "
                               "disallowed by policy")
    lacking = [name for name, member in kind.members.items() if is_new and member.required and name not in found]
    if lacking:
        raise NetworkError(400, "HTTPBadRequest", "Failed to parse request. Required attribute "
                           f"'{lacking[0]}' not specified")
    return cast(Record, found)


def _check_project(given: dict[str, JsonValue], caller: TokenOwner) -> None:
    """Remove the project from the members and check it. Raises 400."""
    said = {str(given.pop(name)) for name in ("tenant_id", "project_id") if name in given}
    if len(said) > 1:
        raise NetworkError(400, "HTTPBadRequest", "'project_id' and 'tenant_id' do not match")
    if said - {caller.project_id} and not is_privileged(caller):
        raise NetworkError(400, "HTTPBadRequest", "Specifying 'project_id' or 'tenant_id' other than the authenticated "
                           "project in request requires admin privileges")
