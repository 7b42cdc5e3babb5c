"""Neutron's answers, and their conversion to nova's values. Members that Neutron may omit may also be null."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import msgspec

from nova.model.network.networks import GuestRoute
from nova.model.network.ports import (
    Counted,
    NeutronFloating,
    NeutronGroup,
    NeutronNetwork,
    NeutronRule,
    NeutronSubnet,
    Port,
    PortAddress,
    PortBinding,
    ResourceAsked,
    ResourceGroup,
)

TUNNELS = frozenset({"vxlan", "gre", "geneve"})


class _Owned(msgspec.Struct, frozen=True, kw_only=True):
    """A resource of a project. ``tenant_id``: the older name of ``project_id``."""

    project_id: str | None = None
    tenant_id: str | None = None

    @property
    def project(self) -> str:
        return self.project_id or self.tenant_id or ""


class SegmentJson(msgspec.Struct, frozen=True, kw_only=True):
    """A segment of a network."""

    physical_network: str | None = msgspec.field(name="provider:physical_network", default=None)
    network_type: str | None = msgspec.field(name="provider:network_type", default=None)


class NetworkJson(_Owned, frozen=True, kw_only=True):
    """A network. ``segments`` is from the extension multi-provider, the members ``provider:`` from provider."""

    id: str
    name: str | None = None
    shared: bool | None = None
    external: bool | None = msgspec.field(name="router:external", default=None)
    port_security_enabled: bool | None = None
    subnets: tuple[str, ...] | None = None
    mtu: int | None = None
    status: str | None = None
    admin_state_up: bool | None = None
    segments: tuple[SegmentJson, ...] | None = None
    physical_network: str | None = msgspec.field(name="provider:physical_network", default=None)
    network_type: str | None = msgspec.field(name="provider:network_type", default=None)


class RouteJson(msgspec.Struct, frozen=True):
    """A route of a subnet for its servers."""

    destination: str
    nexthop: str


class SubnetJson(msgspec.Struct, frozen=True, kw_only=True):
    """A subnet."""

    id: str
    network_id: str
    cidr: str
    ip_version: int | None = None
    gateway_ip: str | None = None
    dns_nameservers: tuple[str, ...] | None = None
    host_routes: tuple[RouteJson, ...] | None = None
    enable_dhcp: bool | None = None
    ipv6_address_mode: str | None = None


class FixedIpJson(msgspec.Struct, frozen=True):
    """An address of a port."""

    ip_address: str | None = None
    subnet_id: str | None = None


class ResourceGroupJson(msgspec.Struct, frozen=True):
    """Resources that a port requests from one provider."""

    id: str | None = None
    resources: Mapping[str, int] | None = None
    required: tuple[str, ...] | None = None


class ResourceRequestJson(ResourceGroupJson, frozen=True):
    """A port's ``resource_request``: of one group, whose members it has itself, or of several."""

    request_groups: tuple[ResourceGroupJson, ...] | None = None
    same_subtree: tuple[str, ...] | None = None


class PortJson(_Owned, frozen=True, kw_only=True):
    """A port, with the members of extensions if present."""

    id: str
    network_id: str
    name: str | None = None
    mac_address: str | None = None
    device_id: str | None = None
    device_owner: str | None = None
    fixed_ips: tuple[FixedIpJson, ...] | None = None
    status: str | None = None
    admin_state_up: bool | None = None
    security_groups: tuple[str, ...] | None = None
    port_security_enabled: bool | None = None
    ip_allocation: str | None = None
    host: str | None = msgspec.field(name="binding:host_id", default=None)
    vnic_type: str | None = msgspec.field(name="binding:vnic_type", default=None)
    vif_type: str | None = msgspec.field(name="binding:vif_type", default=None)
    vif_details: Mapping[str, Any] | None = msgspec.field(name="binding:vif_details", default=None)
    profile: Mapping[str, Any] | None = msgspec.field(name="binding:profile", default=None)
    resource_request: ResourceRequestJson | None = None
    numa_affinity_policy: str | None = None
    tags: tuple[str, ...] | None = None
    dns_name: str | None = None
    revision_number: int | None = None
    created_at: str | None = None


class BindingJson(msgspec.Struct, frozen=True, kw_only=True):
    """A port's binding to one host (extension binding-extended)."""

    host: str
    status: str | None = None
    vif_type: str | None = None
    vif_details: Mapping[str, Any] | None = None
    vnic_type: str | None = None
    profile: Mapping[str, Any] | None = None


class RuleJson(_Owned, frozen=True, kw_only=True):
    """A rule of a security group."""

    id: str
    security_group_id: str
    direction: str | None = None
    ethertype: str | None = None
    protocol: str | None = None
    port_range_min: int | None = None
    port_range_max: int | None = None
    remote_group_id: str | None = None
    remote_ip_prefix: str | None = None


class GroupJson(_Owned, frozen=True, kw_only=True):
    """A security group, with its rules if they were requested."""

    id: str
    name: str | None = None
    description: str | None = None
    stateful: bool | None = None
    security_group_rules: tuple[RuleJson, ...] | None = None


class PortDetails(msgspec.Struct, frozen=True):
    """The port of a floating IP (extension fip-port-details)."""

    device_id: str | None = None


class FloatingJson(_Owned, frozen=True, kw_only=True):
    """A floating IP."""

    id: str
    floating_ip_address: str
    floating_network_id: str
    port_id: str | None = None
    fixed_ip_address: str | None = None
    status: str | None = None
    port_details: PortDetails | None = None


class QuotaJson(msgspec.Struct, frozen=True):
    """The quota of a resource, with details."""

    limit: int
    used: int | None = None
    reserved: int | None = None


class ExtensionJson(msgspec.Struct, frozen=True):
    """An extension of the service."""

    alias: str


class TopologyJson(msgspec.Struct, frozen=True):
    """A project's own network; a dry run has no id."""

    id: str | None = None


# Answers with one resource, or with a list that has no pages.


class TopologyAnswer(msgspec.Struct, frozen=True):
    auto_allocated_topology: TopologyJson


class PortAnswer(msgspec.Struct, frozen=True):
    port: PortJson


class PortsAnswer(msgspec.Struct, frozen=True):
    ports: tuple[PortJson, ...]


class BindingAnswer(msgspec.Struct, frozen=True):
    binding: BindingJson


class BindingsAnswer(msgspec.Struct, frozen=True):
    bindings: tuple[BindingJson, ...]


class GroupAnswer(msgspec.Struct, frozen=True):
    security_group: GroupJson


class RuleAnswer(msgspec.Struct, frozen=True):
    security_group_rule: RuleJson


class FloatingAnswer(msgspec.Struct, frozen=True):
    floatingip: FloatingJson


class QuotaAnswer(msgspec.Struct, frozen=True):
    quota: Mapping[str, QuotaJson | bool | int | float | str | None]


class ExtensionsAnswer(msgspec.Struct, frozen=True):
    extensions: tuple[ExtensionJson, ...]


# Conversion to nova's values.


def _time(text: str | None) -> datetime.datetime | None:
    """Return a time in UTC without zone, like all of nova's times."""
    return datetime.datetime.fromisoformat(text).replace(tzinfo=None) if text else None


def network(one: NetworkJson) -> NeutronNetwork:
    """Return a network. ``physical_network``: that of the first segment that has one; ``tunnelled``: True if any
    segment is."""
    segments = one.segments or (one,)
    physical = (segment.physical_network for segment in segments)
    return NeutronNetwork(
        id=one.id, name=one.name or "", project_id=one.project, shared=bool(one.shared), external=bool(one.external),
        port_security=one.port_security_enabled is not False, subnet_ids=one.subnets or (), mtu=one.mtu or None,
        status=one.status or "ACTIVE", admin_state_up=one.admin_state_up is not False,
        physical_network=next(filter(None, physical), None),
        tunnelled=any(segment.network_type in TUNNELS for segment in segments))


def subnet(one: SubnetJson) -> NeutronSubnet:
    """Return a subnet. ``version``: 4 or 6; ``dhcp`` is True unless Neutron disables it."""
    return NeutronSubnet(
        id=one.id, network_id=one.network_id, cidr=one.cidr, version=one.ip_version or 4,
        gateway=one.gateway_ip or None, dns=one.dns_nameservers or (),
        routes=tuple(GuestRoute(cidr=route.destination, gateway=route.nexthop) for route in one.host_routes or ()),
        dhcp=one.enable_dhcp is not False, ipv6_mode=one.ipv6_address_mode or None)


def port(one: PortJson) -> Port:
    """Return a port; the MAC in lower case, times in UTC."""
    return Port(
        id=one.id, network_id=one.network_id, project_id=one.project, name=one.name or "",
        mac=(one.mac_address or "").lower(), device_id=one.device_id or "",
        addresses=tuple(PortAddress(address=fixed.ip_address, subnet_id=fixed.subnet_id or "")
                        for fixed in one.fixed_ips or () if fixed.ip_address),
        device_owner=one.device_owner or "", status=one.status or "DOWN",
        admin_state_up=one.admin_state_up is not False, security_group_ids=one.security_groups or (),
        port_security=one.port_security_enabled is not False, ip_allocation=one.ip_allocation, host=one.host or "",
        vnic_type=one.vnic_type or "normal", vif_type=one.vif_type, vif_details=one.vif_details or {},
        profile=one.profile or {}, asked=asked(one.resource_request), numa_policy=one.numa_affinity_policy,
        tags=one.tags or (), dns_name=one.dns_name or "", revision=one.revision_number,
        created_at=_time(one.created_at))


def asked(one: ResourceRequestJson | None) -> ResourceAsked:
    """Return a port's ``resource_request``, in the format of one group or of several."""
    if one is None:
        return ResourceAsked()
    groups = one.request_groups
    if groups is None:
        groups = (one,) if one.resources else ()
    return ResourceAsked(
        groups=tuple(ResourceGroup(id=group.id or "", traits=group.required or (), resources=group.resources or {})
                     for group in groups),
        same_subtree=one.same_subtree or ())


def binding(one: BindingJson) -> PortBinding:
    """Return a port's binding to one host."""
    return PortBinding(host=one.host, status=one.status or "ACTIVE", vif_type=one.vif_type or "unbound",
                       vif_details=one.vif_details or {}, vnic_type=one.vnic_type or "normal",
                       profile=one.profile or {})


def rule(one: RuleJson) -> NeutronRule:
    """Return a rule. None as port, protocol or remote means any."""
    return NeutronRule(
        id=one.id, group_id=one.security_group_id, project_id=one.project, direction=one.direction or "ingress",
        ethertype=one.ethertype or "IPv4", protocol=one.protocol, port_from=one.port_range_min,
        port_to=one.port_range_max, remote_group_id=one.remote_group_id, remote_prefix=one.remote_ip_prefix)


def group(one: GroupJson) -> NeutronGroup:
    """Return a security group, with its rules if they were requested."""
    return NeutronGroup(id=one.id, name=one.name or "", project_id=one.project, description=one.description or "",
                        stateful=one.stateful is not False, rules=tuple(map(rule, one.security_group_rules or ())))


def floating(one: FloatingJson) -> NeutronFloating:
    """Return a floating IP. ``device_id`` is empty without the extension fip-port-details."""
    return NeutronFloating(
        id=one.id, address=one.floating_ip_address, network_id=one.floating_network_id, project_id=one.project,
        port_id=one.port_id, fixed_address=one.fixed_ip_address,
        device_id=(one.port_details.device_id if one.port_details else None) or "", status=one.status or "")


def counted(quota: Mapping[str, object]) -> dict[str, Counted]:
    """Return quotas from an answer's ``quota``: numbers, or (with details) limit, used and reserved."""
    found = {}
    for name, one in quota.items():
        if isinstance(one, QuotaJson):
            found[name] = Counted(limit=one.limit, used=one.used, reserved=one.reserved or 0)
        elif isinstance(one, int) and not isinstance(one, bool):
            found[name] = Counted(limit=one)
    return found
