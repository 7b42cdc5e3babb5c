"""Conversion of ports to a server's interfaces: pure functions."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from nova.model.network.networks import FixedAddress, Interface, RequestedNetwork, Subnet
from nova.model.network.ports import UNBOUND, NeutronFloating, NeutronNetwork, NeutronSubnet, Port, PortBinding

TAP = 14  # one less than the longest device name of Linux, in characters

#: Binding types with a bridge for the guest's device -> the bridge's default name.
BRIDGES = {"ovs": "br-int", "bridge": ""}


class Around(NamedTuple):
    """Networks, subnets and floating addresses that ports refer to."""

    networks: Mapping[str, NeutronNetwork] = {}
    subnets: Mapping[str, NeutronSubnet] = {}
    floating: Sequence[NeutronFloating] = ()
    ovs_bridge: str = "br-int"


def interface(port: Port, around: Around, tag: str | None = None, given: bool = False) -> Interface:
    """Return a port as an interface, with all its facts for hosts, guests and the API."""
    network = around.networks.get(port.network_id) or NeutronNetwork(id=port.network_id)
    subnets = _subnets(port, around.subnets)
    first = next((one for one in subnets if one.version == 4), None)
    bridge = _bridge(port.vif_type, port.vif_details, port.network_id, around.ovs_bridge)
    return Interface(
        id=port.id, mac=port.mac, network_id=port.network_id, label=network.name or "", bridge=bridge,
        addresses=tuple(_address(one.address, one.subnet_id) for one in port.addresses),
        floating_addresses=tuple(_address(one.address) for one in around.floating if one.port_id == port.id),
        cidr=first.cidr if first else None, gateway=first.gateway if first else None,
        dhcp_server=first.dhcp_server if first else None, dns=first.dns if first else (), mtu=network.mtu, tag=tag,
        type=port.vif_type or UNBOUND, device=device_of(port), subnets=subnets,
        should_create_bridge=port.vif_type == "bridge", injected=any(not one.dhcp for one in subnets),
        project_id=network.project_id or None, vnic_type=port.vnic_type, profile=port.profile,
        details=port.vif_details, ovs_interface_id=port.id if port.vif_type == "ovs" else None, status=port.status,
        given=given, filtered=port.port_security, security_group_ids=port.security_group_ids)


def device_of(port: Port) -> str:
    """Return the name of the tap device, by which Neutron's agents find it."""
    return f"tap{port.id}"[:TAP]


def _bridge(vif_type: str | None, details: Mapping[str, object], network_id: str, ovs_bridge: str) -> str | None:
    if vif_type not in BRIDGES:
        return None
    said = details.get("bridge_name")
    if said:
        return str(said)
    return ovs_bridge if vif_type == "ovs" else f"brq{network_id}"[:TAP]


def _address(address: str, subnet_id: str | None = None) -> FixedAddress:
    return FixedAddress(address=address, version=ipaddress.ip_address(address).version, subnet_id=subnet_id or None)


def _subnets(port: Port, subnets: Mapping[str, NeutronSubnet]) -> tuple[Subnet, ...]:
    """Return the subnets of the port's addresses, in their order."""
    ids = dict.fromkeys(one.subnet_id for one in port.addresses)
    return tuple(Subnet(cidr=one.cidr, version=one.version, gateway=one.gateway, dns=one.dns, routes=one.routes,
                        dhcp=one.dhcp, ipv6_mode=one.ipv6_mode, id=one.id)
                 for one in (subnets[key] for key in ids if key in subnets))


def bound_as(before: Interface, binding: PortBinding, ovs_bridge: str = "br-int") -> Interface:
    """Return the interface with another binding of its port."""
    return msgspec.structs.replace(
        before, type=binding.vif_type, details=binding.vif_details, profile=binding.profile,
        bridge=_bridge(binding.vif_type, binding.vif_details, before.network_id, ovs_bridge),
        should_create_bridge=binding.vif_type == "bridge",
        ovs_interface_id=before.id if binding.vif_type == "ovs" else None)


def keeping(new: Interface, old: Interface) -> Interface:
    """Return the new interface with old facts that were not read again."""
    return msgspec.structs.replace(
        new, label=new.label or old.label, mtu=new.mtu if new.mtu is not None else old.mtu,
        floating_addresses=new.floating_addresses or old.floating_addresses, subnets=new.subnets or old.subnets,
        project_id=new.project_id or old.project_id)


def ordered(found: Iterable[Interface], before: Sequence[Interface],
            requested: Sequence[RequestedNetwork]) -> tuple[Interface, ...]:
    """Return the interfaces in the server's order, then in the order of the request, then by ID: the guest's devices
    keep their places."""
    known = {one.id: at for at, one in enumerate(before)}
    ports = {one.port_id: at for at, one in enumerate(requested) if one.port_id}
    networks = {one.network_id: at for at, one in reversed(list(enumerate(requested))) if one.network_id}
    end = len(requested)

    def place(one: Interface) -> tuple[int, int, str]:
        if one.id in known:
            return 0, known[one.id], one.id
        return 1, ports.get(one.id, networks.get(one.network_id, end)), one.id
    return tuple(sorted(found, key=place))


__all__ = ["Around", "bound_as", "device_of", "interface", "keeping", "ordered"]
