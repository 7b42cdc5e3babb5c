"""Security groups, and what of them a host's packet filter must know."""

from __future__ import annotations

from nova.model.base import HostName, Page, Scope, Value

DEFAULT = "default"


class SecurityRule(Value):
    """What may come in. ``protocol`` tcp, udp, icmp, icmpv6 or None (any); ports -1 to 65535, of ICMP its type and code
    (-1 is any). From ``cidr``, or from the members of the group ``source_id``."""

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
    """``id`` is the API's, a uuid: Neutron's, or (nova-network) one that is made of its row's key."""

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
    """A server and a group, by its name or id."""

    server_uuid: str
    group: str
    member: bool = True  # False: it leaves the group


class AllowedTraffic(Value):
    """A rule as a host applies it: groups of sources are ranges by now."""

    protocol: str | None = None
    from_port: int | None = None
    to_port: int | None = None
    cidr: str | None = None  # None: from anywhere


class GuardedInterface(Value):
    """What a guest may send from an interface, and where its DHCP and router advertisements come from."""

    mac: str
    device: str
    bridge: str | None = None
    addresses: tuple[str, ...] = ()
    ranges: tuple[str, ...] = ()  # of its project's own network: open to it with allow_same_net_traffic
    dhcp_server: str | None = None
    gateway_v6: str | None = None
    routes_for_others: bool = False  # a VPN guest: other sources than its own pass


class GuestFirewall(Value):
    """All that a host's packet filter holds for one guest. ``id`` is the internal key: it names the guest's chain."""

    server_uuid: str
    id: int
    instance_name: str
    interfaces: tuple[GuardedInterface, ...] = ()
    allowed: tuple[AllowedTraffic, ...] = ()


class HostFirewall(Value):
    """The state of a whole host: what is not in it has no rules there. ``dropped``: the administrator's own.
    ``kept_elsewhere``: whoever keeps the networks filters, and the host adds nothing of its own."""

    host: HostName
    guests: tuple[GuestFirewall, ...] = ()
    dropped: tuple[AllowedTraffic, ...] = ()
    kept_elsewhere: bool = False
