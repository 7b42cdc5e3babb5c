"""Networks and subnets of FakeNeutron."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from nova.devel.network import addresses
from nova.devel.network.crud import NetworkResource, tag_routes
from nova.devel.network.kinds import FLOATING, NETWORK, PORT, SUBNET, NetworkError, is_privileged
from nova.devel.network.records import NetworkRecord, SubnetRecord
from nova.devel.network.store import FakeNetworkStore, forbidden, is_own, touch
from nova.devel.service import FakeRoute, TokenOwner

ZONE = "nova"
NUMBERED = ("vxlan", "vlan", "gre", "geneve")  # types of networks whose segments have numbers
IN_NETWORK: Mapping[str, object] = {"status": "ACTIVE", "availability_zones": [ZONE], "ipv4_address_scope": None,
                     "ipv6_address_scope": None}


def make_network(store: FakeNetworkStore, caller: TokenOwner, project_id: str, given: NetworkRecord) -> NetworkRecord:
    """Create a network. Raises 400 for a flat network without a physical one."""
    members = {**IN_NETWORK, **given}
    kind = given.get("provider:network_type", "vxlan")
    if kind == "flat" and not given.get("provider:physical_network"):
        raise NetworkError(400, "InvalidInput", "Invalid input for operation: physical_network required for flat "
                           "provider network.")
    if kind in NUMBERED and given.get("provider:segmentation_id") is None:
        store.segments += 1
        members["provider:segmentation_id"] = store.segments
    return store.insert(NETWORK, project_id, members)


def change_network(store: FakeNetworkStore, caller: TokenOwner, network: NetworkRecord, given: NetworkRecord) -> None:
    """Change a network. Raises 409 if other projects use a network that would no longer be shared."""
    others = [port for port in store.where(PORT, network_id=network["id"])
              if port["project_id"] not in ("", network["project_id"])]
    if given.get("shared") is False and network["shared"] and others:
        raise NetworkError(409, "InvalidSharedSetting", "Unable to reconfigure sharing settings for network "
                           f"{network['id']}. Multiple projects are using it.")
    touch(network, given)


def remove_network(store: FakeNetworkStore, caller: TokenOwner, network: NetworkRecord) -> None:
    """Delete a network with its subnets and unassociated floating addresses. Raises 409 if it has ports."""
    for floating in store.where(FLOATING, floating_network_id=network["id"], port_id=None):
        for port in store.where(PORT, device_id=floating["id"]):
            store.remove(PORT, port)
        store.remove(FLOATING, floating)
    ports = store.where(PORT, network_id=network["id"])
    if ports:
        raise NetworkError(409, "NetworkInUse", f"Unable to complete operation on network {network['id']}. There are "
                           f"one or more ports still in use on the network, id(s): {ports[0]['id']}.")
    for subnet in store.where(SUBNET, network_id=network["id"]):
        store.remove(SUBNET, subnet)
    store.remove(NETWORK, network)


def make_subnet(store: FakeNetworkStore, caller: TokenOwner, project_id: str, given: SubnetRecord) -> SubnetRecord:
    """Create a subnet. Raises 400 for inconsistent members, 403 on another project's network, 404, or 409 for
    overlapping pools."""
    network = store.seen(NETWORK, given["network_id"], caller)
    if not is_privileged(caller) and not is_own(network, caller):
        raise forbidden("create_subnet")
    cidr = ipaddress.ip_network(given["cidr"], strict=False)
    _check_versions(given, cidr.version)
    for other in store.where(SUBNET, network_id=network["id"]):
        if ipaddress.ip_network(other["cidr"]).overlaps(cidr):
            raise NetworkError(400, "InvalidInput", f"Invalid input for operation: Requested subnet with cidr: {cidr} "
                               f"for network: {network['id']} overlaps with another subnet.")
    gateway = given["gateway_ip"] if "gateway_ip" in given else addresses.usual_gateway(cidr)
    pools = given.get("allocation_pools") or addresses.pools_around(cidr, gateway)
    addresses.check_pools(pools, cidr, gateway)
    return store.insert(SUBNET, project_id, {**given, "cidr": str(cidr), "gateway_ip": gateway,
                                             "allocation_pools": pools})


def _check_versions(given: SubnetRecord, version: int) -> None:
    """Raise 400 for addresses or modes of another IP version than the subnet's."""
    if given["ip_version"] != version:
        raise NetworkError(400, "InvalidInput", f"Invalid input for operation: cidr {given['cidr']} does not have "
                           f"ip_version {given['ip_version']}.")
    modes = [given.get("ipv6_address_mode"), given.get("ipv6_ra_mode")]
    if version == 4 and any(modes):
        raise NetworkError(400, "InvalidInput", "Invalid input for operation: ipv6_ra_mode and ipv6_address_mode are "
                           "only valid for ip_version 6.")
    _check_gateway(given.get("gateway_ip"), version)


def _check_gateway(gateway: str | None, version: int) -> None:
    if gateway and ipaddress.ip_address(gateway).version != version:
        raise NetworkError(400, "InvalidInput", f"Invalid input for operation: gateway_ip {gateway} does not have "
                           f"ip_version {version}.")


def change_subnet(store: FakeNetworkStore, caller: TokenOwner, subnet: SubnetRecord, given: SubnetRecord) -> None:
    """Change a subnet. Raises 400, or 409 if the gateway is used by a router or is in a pool."""
    gateway, cidr = given.get("gateway_ip", subnet["gateway_ip"]), ipaddress.ip_network(subnet["cidr"])
    _check_gateway(gateway, cidr.version)
    used = [port for port in store.where(PORT, network_id=subnet["network_id"])
            if subnet["gateway_ip"] in [one["ip_address"] for one in port["fixed_ips"]]]
    if gateway != subnet["gateway_ip"] and used:
        raise NetworkError(409, "GatewayIpInUse", f"Current gateway ip {subnet['gateway_ip']} already in use by port "
                           f"{used[0]['id']}. Unable to update.")
    addresses.check_pools(given.get("allocation_pools") or subnet["allocation_pools"], cidr, gateway)
    touch(subnet, given)


def remove_subnet(store: FakeNetworkStore, caller: TokenOwner, subnet: SubnetRecord) -> None:
    """Delete a subnet. Raises 409 if a port has an address of it."""
    if any(one["subnet_id"] == subnet["id"] for port in store.where(PORT, network_id=subnet["network_id"])
           for one in port["fixed_ips"]):
        raise NetworkError(409, "SubnetInUse", f"Unable to complete operation on subnet {subnet['id']}: One or more "
                           "ports have an IP allocation from this subnet.")
    store.remove(SUBNET, subnet)


NETWORKS = NetworkResource(NETWORK, make_network, change_network, remove_network)
SUBNETS = NetworkResource(SUBNET, make_subnet, change_subnet, remove_subnet)
ROUTES: tuple[FakeRoute[FakeNetworkStore], ...] = (*NETWORKS.routes, *SUBNETS.routes, *tag_routes(NETWORK),
                                                   *tag_routes(SUBNET))
