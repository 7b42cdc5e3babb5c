"""Security groups, and their contents for a host's packet filter."""

from __future__ import annotations

from nova.model.base import HostName, Page, Scope, Value

DEFAULT = "default"


class SecurityRule(Value):
    """A rule for incoming traffic. ``protocol``: tcp, udp, icmp, icmpv6 or None (any); ports -1 to 65535, for ICMP type
    and code (-1 is any). Sources: ``cidr``, or the members of the group ``source_id``."""

    id: str
    group_id: str
    protocol: str | None = None
    from_port: int | None = None
    to_port: int | None = None
    cidr: str | None = None
    source_id: str | None = None
    source_name: str | None = None
    source_project_id: str | None = None


class SecurityGroup(Value):
    """A security group. ``id`` is the API's uuid: Neutron's, or (nova-network) one derived from the row's key."""

    id: str
    name: str
    project_id: str
    description: str = ""
    rules: tuple[SecurityRule, ...] = ()


class SecurityGroupQuery(Value):
    scope: Scope = Scope()
    page: Page = Page()
    names: tuple[str, ...] = ()


class NewSecurityGroup(Value):
    name: str
    description: str = ""
    project_id: str = ""


class SecurityGroupUpdate(Value):
    id: str
    scope: Scope = Scope()
    name: str | None = None
    description: str | None = None


class NewSecurityRule(Value):
    group_id: str
    protocol: str | None = None
    from_port: int | None = None
    to_port: int | None = None
    cidr: str | None = None
    source_id: str | None = None


class GroupMembership(Value):
    """Membership of a server in a group, which is given by name or id."""

    server_uuid: str
    group: str
    member: bool = True  # False: remove the server from the group


class AllowedTraffic(Value):
    """A rule as a host applies it, with source groups resolved to ranges."""

    protocol: str | None = None
    from_port: int | None = None
    to_port: int | None = None
    cidr: str | None = None  # None: from anywhere


class GuardedInterface(Value):
    """Permitted addresses of an interface, and the sources of its DHCP and router advertisements."""

    mac: str
    device: str
    bridge: str | None = None
    addresses: tuple[str, ...] = ()
    ranges: tuple[str, ...] = ()  # of its project's own network: admitted by allow_same_net_traffic
    dhcp_server: str | None = None
    gateway_v6: str | None = None
    routes_for_others: bool = False  # a VPN guest: packets with other source addresses pass


class GuestFirewall(Value):
    """The packet filter of one guest on its host. ``id`` is the internal key, which names the guest's chain."""

    server_uuid: str
    id: int
    instance_name: str
    interfaces: tuple[GuardedInterface, ...] = ()
    allowed: tuple[AllowedTraffic, ...] = ()


class HostFirewall(Value):
    """The packet filter of a whole host: guests that it does not contain have no rules there. ``dropped``: rules of the
    administrator. ``kept_elsewhere``: the network backend filters packets, and the host adds no rules."""

    host: HostName
    guests: tuple[GuestFirewall, ...] = ()
    dropped: tuple[AllowedTraffic, ...] = ()
    kept_elsewhere: bool = False
