"""Addresses of FakeNeutron's subnets: pools, gateways, and allocation."""

from __future__ import annotations

import ipaddress
import uuid
from collections.abc import Iterator, Sequence

from nova.devel.network.kinds import PORT, SUBNET, NetworkError
from nova.devel.network.records import AddressPool, FixedIp, SubnetRecord
from nova.devel.network.store import FakeNetworkStore

AUTOMATIC = ("slaac", "dhcpv6-stateless")  # IPv6 address modes that derive the address from the MAC
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Pool = tuple[int, int]


def first_and_last(network: Network) -> Pool:
    """Return the first and last address for hosts."""
    first, last = int(network.network_address), int(network.broadcast_address)
    few = last - first < 2  # with one or two addresses, all are for hosts
    return (first, last) if few else (first + 1, last - (network.version == 4))


def usual_gateway(network: Network) -> str:
    """Return the first address for hosts."""
    return _text(first_and_last(network)[0], network)


def pools_around(network: Network, gateway: str | None) -> list[AddressPool]:
    """Return pools of all host addresses except the gateway's."""
    first, last = first_and_last(network)
    taken = int(ipaddress.ip_address(gateway)) if gateway else None
    inside = taken is not None and first <= taken <= last
    pools = [(first, taken - 1), (taken + 1, last)] if inside and taken is not None else [(first, last)]
    return [{"start": _text(start, network), "end": _text(end, network)} for start, end in pools if start <= end]


def check_pools(pools: Sequence[AddressPool], network: Network, gateway: str | None) -> None:
    """Check pools. Raises 400 for a pool outside of the subnet or in reverse order; 409 if pools overlap or contain the
    gateway."""
    ranges = sorted(_ends(one) for one in pools)
    for pool, (start, end) in zip(sorted(pools, key=_ends), ranges, strict=True):
        inside = all(ipaddress.ip_address(one) in network for one in (pool["start"], pool["end"]))
        if start > end or not inside:
            raise NetworkError(400, "InvalidAllocationPool" if start > end else "OutOfBoundsAllocationPool",
                               f"The allocation pool {pool['start']}-{pool['end']} is not valid for subnet {network}.")
    if any(one[1] >= other[0] for one, other in zip(ranges, ranges[1:], strict=False)):
        raise NetworkError(409, "OverlappingAllocationPools", "Found overlapping allocation pools for subnet "
                           f"{network}.")
    if gateway and any(start <= int(ipaddress.ip_address(gateway)) <= end for start, end in ranges):
        raise NetworkError(409, "GatewayConflictWithAllocationPools", f"Gateway ip {gateway} conflicts with an "
                           "allocation pool.")


def allocate(store: FakeNetworkStore, network_id: str, wanted: Sequence[FixedIp] | None, mac: str,
             port_id: str = "") -> list[FixedIp]:
    """Return a port's addresses: the requested ones, or else one of each IP version of the network. The port's present
    addresses may be requested again. Raises 400, 404, or 409 if an address is in use or none is free."""
    subnets = store.where(SUBNET, network_id=network_id)
    used = {one["ip_address"] for port in store.where(PORT, network_id=network_id) if port["id"] != port_id
            for one in port["fixed_ips"]}
    if wanted is None:
        return list(_usual(subnets, used, network_id, mac))
    port = store.of(PORT).get(port_id)
    kept = {one["subnet_id"]: one["ip_address"] for one in port["fixed_ips"]} if port else {}
    found: list[FixedIp] = []
    for one in wanted:
        subnet = _subnet_of(one, subnets)
        address = _same_text(one.get("ip_address")) or kept.get(subnet["id"]) or _next(subnet, used, mac)
        if address is None:
            raise _none_left(network_id)
        if address in used:
            raise NetworkError(409, "IpAddressAlreadyAllocated", f"IP address {address} already allocated in subnet "
                               f"{subnet['id']}")
        used.add(address)
        found.append({"subnet_id": subnet["id"], "ip_address": address})
    return found


def new_mac(store: FakeNetworkStore) -> str:
    """Return a MAC address that no port has."""
    used = {port["mac_address"] for port in store.of(PORT).values()}
    while True:
        made = "fa:16:3e:" + ":".join(f"{one:02x}" for one in uuid.uuid4().bytes[:3])
        if made not in used:
            return made


def _usual(subnets: Sequence[SubnetRecord], used: set[str], network_id: str, mac: str) -> Iterator[FixedIp]:
    for version in (4, 6):
        mine = [one for one in subnets if one["ip_version"] == version]
        free = next(((one, address) for one in mine if (address := _next(one, used, mac))), None)
        if free is not None:
            yield {"subnet_id": free[0]["id"], "ip_address": free[1]}
        elif mine:
            raise _none_left(network_id)


def _none_left(network_id: str) -> NetworkError:
    return NetworkError(409, "IpAddressGenerationFailure", f"No more IP addresses available on network {network_id}.")


def _subnet_of(wanted: FixedIp, subnets: Sequence[SubnetRecord]) -> SubnetRecord:
    """Return the subnet of a requested address. Raises 400."""
    address = wanted.get("ip_address")
    for subnet in subnets:
        if wanted.get("subnet_id", subnet["id"]) == subnet["id"] and (
                address is None or ipaddress.ip_address(address) in ipaddress.ip_network(subnet["cidr"])):
            return subnet
    if address is None:
        raise NetworkError(400, "InvalidInput", f"Invalid input for operation: Failed to create port: subnet "
                           f"{wanted.get('subnet_id')} is not in the port's network.")
    raise NetworkError(400, "InvalidIpForNetwork", f"IP address {address} is not a valid IP for any of the subnets on "
                       "the specified network.")


def _next(subnet: SubnetRecord, used: set[str], mac: str) -> str | None:
    """Return the next free address of a subnet; None if there is none."""
    network = ipaddress.ip_network(subnet["cidr"])
    if subnet["ipv6_address_mode"] in AUTOMATIC:
        return _text(int(network.network_address) + _interface_of(mac), network)
    for start, end in map(_ends, subnet["allocation_pools"]):
        at = start
        while at <= end:
            text = _text(at, network)
            if text not in used:
                return text
            at += 1
    return None


def _interface_of(mac: str) -> int:
    """Return the EUI-64 interface id of a MAC address."""
    parts = [int(one, 16) for one in mac.split(":")]
    return int.from_bytes(bytes([parts[0] ^ 2, *parts[1:3], 0xFF, 0xFE, *parts[3:]]))


def _same_text(address: str | None) -> str | None:
    """Return an address in the stored form: IPv6 has several notations."""
    return str(ipaddress.ip_address(address)) if address else None


def _ends(pool: AddressPool) -> Pool:
    return int(ipaddress.ip_address(pool["start"])), int(ipaddress.ip_address(pool["end"]))


def _text(number: int, network: Network) -> str:
    """Return a number as an address of the network's IP version, as numbers like 4294967296 are ambiguous."""
    return str(ipaddress.IPv4Address(number) if network.version == 4 else ipaddress.IPv6Address(number))
