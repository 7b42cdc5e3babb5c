"""Records of FakeNeutron's resources, in the form of the Network API's JSON. A client's request has some of the
members."""

from __future__ import annotations

from typing import TypedDict

from nova.model.base import JsonValue


class NeutronResource(TypedDict, total=False):
    """Members of every resource."""

    id: str
    tenant_id: str
    project_id: str
    name: str
    description: str
    revision_number: int
    created_at: str
    updated_at: str
    tags: list[str]


_OfNetwork = TypedDict("_OfNetwork", {
    "router:external": bool, "provider:network_type": str, "provider:physical_network": str | None,
    "provider:segmentation_id": int | None}, total=False)


class NetworkRecord(_OfNetwork, NeutronResource, total=False):
    admin_state_up: bool
    shared: bool
    is_default: bool
    port_security_enabled: bool
    dns_domain: str
    mtu: int
    status: str


class AddressPool(TypedDict):
    """A range of addresses that ports get; ``end`` is in it."""

    start: str
    end: str


class SubnetRecord(NeutronResource, total=False):
    network_id: str
    ip_version: int
    cidr: str
    gateway_ip: str | None
    allocation_pools: list[AddressPool]
    enable_dhcp: bool
    dns_nameservers: list[str]
    ipv6_address_mode: str | None
    ipv6_ra_mode: str | None


class FixedIp(TypedDict, total=False):
    """An address of a port; a request may have one of the members only."""

    subnet_id: str
    ip_address: str


_OfPort = TypedDict("_OfPort", {
    "binding:vnic_type": str, "binding:host_id": str, "binding:profile": dict[str, JsonValue]}, total=False)


class PortRecord(_OfPort, NeutronResource, total=False):
    network_id: str
    admin_state_up: bool
    fixed_ips: list[FixedIp]
    device_id: str
    device_owner: str
    mac_address: str
    security_groups: list[str]
    port_security_enabled: bool
    dns_name: str
    status: str


class BindingRecord(TypedDict):
    """The binding of a port to a host."""

    host: str
    vif_type: str
    vnic_type: str
    profile: dict[str, JsonValue]
    status: str
    vif_details: dict[str, bool | str]


class GroupRecord(NeutronResource, total=False):
    stateful: bool


class RuleRecord(NeutronResource, total=False):
    security_group_id: str
    port_range_min: int | None
    port_range_max: int | None
    direction: str
    ethertype: str
    protocol: str | None
    remote_ip_prefix: str | None
    remote_group_id: str | None


class RouterGateway(TypedDict, total=False):
    """A router's port on an external network."""

    network_id: str
    enable_snat: bool
    external_fixed_ips: list[FixedIp]


class RouterRecord(NeutronResource, total=False):
    admin_state_up: bool
    external_gateway_info: RouterGateway | None
    status: str


class FloatingRecord(NeutronResource, total=False):
    floating_network_id: str
    floating_ip_address: str
    subnet_id: str | None
    port_id: str | None
    fixed_ip_address: str | None
    router_id: str | None
    status: str
    port_details: dict[str, bool | str] | None
