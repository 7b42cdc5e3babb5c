"""Conversion from Neutron's JSON to nova's values."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

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

Body = Mapping[str, Any]

TUNNELS = frozenset({"vxlan", "gre", "geneve"})


def _project(body: Body) -> str:
    return body.get("project_id") or body.get("tenant_id") or ""


def _time(text: str | None) -> datetime.datetime | None:
    """Return a time in UTC without zone, like all of nova's times."""
    return datetime.datetime.fromisoformat(text).replace(tzinfo=None) if text else None


def network(body: Body) -> NeutronNetwork:
    """Return a network from ``network``. ``physical_network``: that of the first segment that has one; ``tunnelled``:
    True if any segment is."""
    segments = body.get("segments") or [body]  # from the extensions multi-provider or provider
    physical = [one.get("provider:physical_network") for one in segments]
    kinds = [one.get("provider:network_type") for one in segments]
    return NeutronNetwork(
        id=body["id"], name=body.get("name") or "", project_id=_project(body), shared=bool(body.get("shared")),
        external=bool(body.get("router:external")), port_security=body.get("port_security_enabled") is not False,
        subnet_ids=tuple(body.get("subnets") or ()), mtu=body.get("mtu") or None, status=body.get("status") or "ACTIVE",
        admin_state_up=body.get("admin_state_up") is not False, physical_network=next(filter(None, physical), None),
        tunnelled=bool(TUNNELS.intersection(filter(None, kinds))))


def subnet(body: Body) -> NeutronSubnet:
    """Return a subnet from ``subnet``. ``version``: 4 or 6; ``dhcp`` is True unless Neutron disables it."""
    return NeutronSubnet(
        id=body["id"], network_id=body["network_id"], cidr=body["cidr"], version=int(body.get("ip_version") or 4),
        gateway=body.get("gateway_ip") or None, dns=tuple(body.get("dns_nameservers") or ()),
        routes=tuple(GuestRoute(cidr=one["destination"],
                                gateway=one["nexthop"]) for one in body.get("host_routes") or ()),
        dhcp=body.get("enable_dhcp") is not False, ipv6_mode=body.get("ipv6_address_mode") or None)


def port(body: Body) -> Port:
    """Return a port from ``port``, with the attributes of extensions if present; the MAC in lower case, times in
    UTC."""
    return Port(
        id=body["id"], network_id=body["network_id"], project_id=_project(body), name=body.get("name") or "",
        mac=(body.get("mac_address") or "").lower(), device_id=body.get("device_id") or "",
        addresses=tuple(PortAddress(address=one["ip_address"], subnet_id=one.get("subnet_id") or "")
                        for one in body.get("fixed_ips") or () if one.get("ip_address")),
        device_owner=body.get("device_owner") or "", status=body.get("status") or "DOWN",
        admin_state_up=body.get("admin_state_up") is not False,
        security_group_ids=tuple(body.get("security_groups") or ()),
        port_security=body.get("port_security_enabled") is not False, ip_allocation=body.get("ip_allocation"),
        host=body.get("binding:host_id") or "", vnic_type=body.get("binding:vnic_type") or "normal",
        vif_type=body.get("binding:vif_type"), vif_details=body.get("binding:vif_details") or {},
        profile=body.get("binding:profile") or {}, asked=asked(body.get("resource_request")),
        numa_policy=body.get("numa_affinity_policy"), tags=tuple(body.get("tags") or ()),
        dns_name=body.get("dns_name") or "", revision=body.get("revision_number"),
        created_at=_time(body.get("created_at")))


def asked(body: Body | None) -> ResourceAsked:
    """Return a port's ``resource_request``, in the format of one group (``resources``, ``required``) or of several."""
    if not body:
        return ResourceAsked()
    groups = body.get("request_groups")
    if groups is None:
        groups = [body] if body.get("resources") else []
    return ResourceAsked(
        groups=tuple(ResourceGroup(id=one.get("id") or "", traits=tuple(one.get("required") or ()),
                                   resources={name: int(amount) for name, amount in one["resources"].items()})
                     for one in groups),
        same_subtree=tuple(body.get("same_subtree") or ()))


def binding(body: Body) -> PortBinding:
    """Return a binding from ``binding``, that of one host (extension binding-extended)."""
    return PortBinding(host=body["host"], status=body.get("status") or "ACTIVE",
                       vif_type=body.get("vif_type") or "unbound", vif_details=body.get("vif_details") or {},
                       vnic_type=body.get("vnic_type") or "normal", profile=body.get("profile") or {})


def rule(body: Body) -> NeutronRule:
    """Return a rule from ``security_group_rule``. None as port, protocol or remote means any."""
    return NeutronRule(
        id=body["id"], group_id=body["security_group_id"], project_id=_project(body),
        direction=body.get("direction") or "ingress", ethertype=body.get("ethertype") or "IPv4",
        protocol=body.get("protocol"), port_from=body.get("port_range_min"), port_to=body.get("port_range_max"),
        remote_group_id=body.get("remote_group_id"), remote_prefix=body.get("remote_ip_prefix"))


def group(body: Body) -> NeutronGroup:
    """Return a security group from ``security_group``, with its rules if they were requested."""
    return NeutronGroup(id=body["id"], name=body.get("name") or "", project_id=_project(body),
                        description=body.get("description") or "", stateful=body.get("stateful") is not False,
                        rules=tuple(rule(one) for one in body.get("security_group_rules") or ()))


def floating(body: Body) -> NeutronFloating:
    """Return a floating IP from ``floatingip``. ``device_id`` is empty without the extension fip-port-details."""
    details = body.get("port_details") or {}  # from the extension fip-port-details
    return NeutronFloating(
        id=body["id"], address=body["floating_ip_address"], network_id=body["floating_network_id"],
        project_id=_project(body), port_id=body.get("port_id"), fixed_address=body.get("fixed_ip_address"),
        device_id=details.get("device_id") or "", status=body.get("status") or "")


def counted(body: Body) -> dict[str, Counted]:
    """Return quotas from an answer's ``quota``: numbers, or (with details) limit, used and reserved."""
    found = {}
    for name, one in body.items():
        if isinstance(one, Mapping):
            found[name] = Counted(limit=int(one["limit"]), used=one.get("used"), reserved=int(one.get("reserved") or 0))
        elif isinstance(one, int) and not isinstance(one, bool):
            found[name] = Counted(limit=one)
    return found
