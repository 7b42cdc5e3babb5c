"""Rules that divide a range into networks, choose the addresses for servers, and generate MAC addresses.

Pure rules (nova-manage(1), network create): the request and the existing networks go in, rows come out. They read no
clock, database or socket; identifiers and random bytes are arguments.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import itertools
import re
import secrets
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import msgspec

from nova import errors, failures
from nova.model.base import Value
from nova.model.network import vlans
from nova.model.network.network_managers import FLAT_DHCP, NetworkKind, named
from nova.model.network.networks import Network, NewNetwork

IPv4 = ipaddress.IPv4Address
IPv4Net = ipaddress.IPv4Network
_Net = TypeVar("_Net", ipaddress.IPv4Network, ipaddress.IPv6Network)
_Address = TypeVar("_Address")

LABEL_LENGTH = 255
SMALLEST_NETWORK = 4  # network address, gateway, one server, broadcast
LARGEST_POOL = 1 << 20  # addresses of one request; each is a row
SHORTEST_V6_PREFIX = 64  # guests generate their own lower 64 bits
MTU_RANGE = range(68, 65536)
DEVICE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}")  # Linux: 15 bytes, no blank, no slash
MAC_PREFIX = "fa:16:3e"


class Defaults(Value):
    """Configured defaults of a request's fields. ``network_size`` counts addresses."""

    network_size: int = 256
    bridge: str | None = None
    bridge_interface: str | None = None
    dns1: str | None = "8.8.4.4"
    mtu: int | None = None
    multi_host: bool = False
    injected: bool = False
    manager: str = FLAT_DHCP.path
    gateway: str | None = None  # this and the next: only for a single new network
    gateway_v6: str | None = None
    vlan_interface: str | None = None
    vlan_start: int = 100
    vpn_ip: str | None = None
    vpn_start: int = 1000
    cnt_vpn_clients: int = 0
    share_address: bool = False


class PoolAddress(NamedTuple):
    """A row of a network's pool. A reserved address is never given to a server."""

    address: str
    reserved: bool


class PlannedNetwork(NamedTuple):
    """A network to create, with its pool in ascending order."""

    network: Network
    pool: tuple[PoolAddress, ...]


class NetworksPlan(NamedTuple):
    """All networks of one request; ``warnings`` are sentences for the user."""

    networks: tuple[PlannedNetwork, ...]
    warnings: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class _Cut:
    """The subnets of one network; None for a family that the request has no range of."""

    v4: IPv4Net | None
    v6: ipaddress.IPv6Network | None
    vlan: int | None = None
    number: int = 0  # number of networks before it


def plan(asked: NewNetwork, existing: Iterable[Network], defaults: Defaults | None = None,
         new_uuid: Callable[[], str] = lambda: str(uuid.uuid4())) -> NetworksPlan:
    """Return the networks that a request creates, in addition to the existing (live) ones.

    Raises network.Invalid, which names the field, or network.CidrConflict.
    """
    defaults = defaults or Defaults()
    manager = named(defaults.manager)
    asked = _with_defaults(asked, defaults, manager)
    _check_plain_fields(asked, manager)
    present = tuple(existing)
    range_v4 = _range(asked.cidr, "cidr", ipaddress.IPv4Network)
    range_v6 = _range(asked.cidr_v6, "cidr_v6", ipaddress.IPv6Network)
    if range_v4 is None and range_v6 is None:
        raise errors.network.Invalid(field="cidr", reason="At least one of cidr and cidr_v6 is required.")
    for field, whole in (("cidr", range_v4), ("cidr_v6", range_v6)):
        if whole is not None:
            _check_not_of_hosts(field, whole)
    size, warnings = _network_size(asked, range_v4, defaults)
    cuts_v4 = _cut(asked, range_v4, _prefix(32, size), (net.cidr for net in present))
    cuts_v6 = _cut(asked, range_v6, min(SHORTEST_V6_PREFIX, _prefix(128, size)), (net.cidr_v6 for net in present))
    numbers = _vlan_numbers(asked, present, defaults, manager)
    planned = tuple(_planned(asked, index, _Cut(v4, v6, next(numbers), len(present) + index),
                             asked.uuid or new_uuid(), defaults)
                    for index, (v4, v6) in enumerate(zip(cuts_v4, cuts_v6, strict=True)))
    return NetworksPlan(planned, warnings)


def generate_mac(random_bytes: Callable[[int], bytes] = secrets.token_bytes) -> str:
    """Return a generated MAC address: ``fa:16:3e`` (locally administered, unicast) and three random bytes."""
    return ":".join([MAC_PREFIX, *(f"{byte:02x}" for byte in random_bytes(3))])


# --- checks -----------------------------------------------------------------------------------------------------------

def _with_defaults(asked: NewNetwork, defaults: Defaults, manager: NetworkKind) -> NewNetwork:
    single = asked.num_networks == 1
    joined = defaults.vlan_interface if manager.vlans else defaults.bridge_interface
    return msgspec.structs.replace(
        asked,
        bridge=None if manager.vlans else asked.bridge or defaults.bridge,
        bridge_interface=asked.bridge_interface or joined,
        gateway=asked.gateway or (defaults.gateway if single and asked.cidr else None),
        gateway_v6=asked.gateway_v6 or (defaults.gateway_v6 if single and asked.cidr_v6 else None),
        share_address=asked.share_address or defaults.share_address,
        dns1=asked.dns1 or defaults.dns1,
        mtu=asked.mtu if asked.mtu is not None else defaults.mtu,
        multi_host=asked.multi_host or (defaults.multi_host and not asked.single_host))


def _check_plain_fields(asked: NewNetwork, manager: NetworkKind) -> None:
    longest = LABEL_LENGTH - (len(f"_{asked.num_networks - 1}") if asked.num_networks > 1 else 0)
    if not 1 <= len(asked.label) <= longest:
        raise errors.network.Invalid(field="label", reason=f"A label of 1 to {longest} characters is required.")
    if not asked.label.isprintable() or "," in asked.label:  # the label is part of dnsmasq's comma-separated arguments
        raise errors.network.Invalid(field="label", reason="Only printable characters other than a comma may be used.")
    if not getattr(asked, manager.needs):
        raise errors.network.Invalid(field=manager.needs,
                                     reason=f"Required, here or as {_OPTION_OF[manager.needs]} in nova.conf.")
    for field in ("bridge", "bridge_interface"):
        name = getattr(asked, field)
        if name and not DEVICE_NAME.fullmatch(name):
            raise errors.network.Invalid(field=field, reason=f"{name!r} is not a network device's name.")
    if asked.mtu is not None and asked.mtu not in MTU_RANGE:
        raise errors.network.Invalid(field="mtu", reason=f"{asked.mtu} is not between 68 and 65535.")
    if asked.num_networks < 1:
        raise errors.network.Invalid(field="num_networks", reason="At least one network is required.")
    for field in ("dns1", "dns2"):
        _address(getattr(asked, field), field, ipaddress.ip_address)
    _check_single(asked)


_OPTION_OF = {"bridge": "flat_network_bridge", "bridge_interface": "vlan_interface"}


def _check_single(asked: NewNetwork) -> None:
    """Refuse fields that name one address or identifier if several networks are requested."""
    if asked.num_networks > 1:
        for field in ("gateway", "gateway_v6", "dhcp_server", "uuid", "fixed_cidr", "allowed_start", "allowed_end"):
            if getattr(asked, field):
                raise errors.network.Invalid(field=field, reason="It can only be given for a single network.")
    if asked.uuid:
        with failures.replaced(ValueError,
                lambda _: errors.network.Invalid(field="uuid", reason=f"{asked.uuid!r} is not a valid UUID.")):
            uuid.UUID(asked.uuid)


def _range(text: str | None, field: str, kind: type[_Net]) -> _Net | None:
    """Parse a range; host bits are allowed and dropped, as in `10.0.0.5/24`."""
    if not text:
        return None
    with failures.replaced(ValueError, lambda _: errors.network.Invalid(field=field,
            reason=f"{text!r} is not a valid range of that family.")):
        return kind(text, strict=False)


def _address(text: str | None, field: str, kind: Callable[[str], _Address]) -> _Address | None:
    if not text:
        return None
    with failures.replaced(ValueError, lambda _: errors.network.Invalid(field=field,
            reason=f"{text!r} is not a valid address of that family.")):
        return kind(text)


#: Ranges that hosts themselves use: a network in one of them would break the hosts' own traffic.
_OF_HOSTS = tuple(map(ipaddress.ip_network, ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3", "::/8",
                                             "fe80::/10", "ff00::/8")))


def _check_not_of_hosts(field: str, whole: IPv4Net | ipaddress.IPv6Network) -> None:
    for taken in _OF_HOSTS:
        if taken.version == whole.version and taken.overlaps(whole):
            raise errors.network.Invalid(field=field,
                                         reason=f"{whole} overlaps {taken}, which is reserved for hosts.")


# --- division ---------------------------------------------------------------------------------------------------------

def _network_size(asked: NewNetwork, whole: IPv4Net | None, defaults: Defaults) -> tuple[int, tuple[str, ...]]:
    """Return the addresses per network, and a warning if the configured size reduced the networks."""
    if asked.network_size is not None:
        if asked.network_size < SMALLEST_NETWORK:
            raise errors.network.Invalid(field="network_size",
                                         reason=f"At least {SMALLEST_NETWORK} addresses are needed.")
        return _checked_size(asked.network_size, whole, asked), ()
    if whole is None:
        return defaults.network_size, ()
    share = whole.num_addresses // asked.num_networks
    if share < SMALLEST_NETWORK:
        raise errors.network.Invalid(field="cidr",
                                     reason=f"{whole} is too small for {asked.num_networks} network(s) of at "
                                     f"least {SMALLEST_NETWORK} addresses.")
    size = min(share, defaults.network_size)
    if size == share:
        return _checked_size(1 << (share.bit_length() - 1), whole, asked), ()
    warning = (f"Subnet(s) too large, defaulting to {_prefix_text(size)}. To override, specify network_size flag.")
    return _checked_size(size, whole, asked), (warning,)


def _prefix_text(size: int) -> str:
    return f"/{_prefix(32, size)}"


def _checked_size(size: int, whole: IPv4Net | None, asked: NewNetwork) -> int:
    if whole is None:
        return size
    rounded = 1 << (32 - _prefix(32, size))
    if rounded * asked.num_networks > whole.num_addresses:
        raise errors.network.Invalid(field="network_size",
                                     reason=f"{asked.num_networks} network(s) of {rounded} addresses do "
                                     f"not fit in {whole}.")
    if rounded * asked.num_networks > LARGEST_POOL:
        raise errors.network.Invalid(field="network_size",
                                     reason=f"A request cannot have more than {LARGEST_POOL} addresses.")
    return size


def _prefix(bits: int, size: int) -> int:
    """Return the prefix length of the smallest power of two that holds ``size`` addresses."""
    return max(0, bits - (size - 1).bit_length())


def _cut(asked: NewNetwork, whole: _Net | None, prefix: int, used: Iterable[str | None]) -> list[_Net | None]:
    """Return the first ``num_networks`` free subnets of ``whole``, which overlap no used range."""
    if whole is None:
        return [None] * asked.num_networks
    if whole.prefixlen > prefix:
        raise errors.network.Invalid(field="cidr" if whole.version == 4 else "cidr_v6",
                                     reason=f"{whole} is smaller than one network (/{prefix}).")
    taken = [type(whole)(text, strict=False) for text in used if text]
    cuts: list[_Net | None] = []
    for _ in range(asked.num_networks):
        free = _first_free(whole, prefix, taken)
        if free is None:
            other = next((net for net in taken if net.overlaps(whole)), None)
            raise errors.network.CidrConflict(cidr=str(whole), other=str(other))
        taken.append(free)
        cuts.append(free)
    return cuts


def _first_free(whole: _Net, prefix: int, taken: list[_Net]) -> _Net | None:
    """Return the first free subnet. Skips used ranges instead of trying every subnet: a /8 has four million /30."""
    step = 1 << (whole.max_prefixlen - prefix)
    start, last = int(whole.network_address), int(whole.broadcast_address)
    while start + step - 1 <= last:
        candidate = type(whole)((start, prefix))
        ends = [int(net.broadcast_address) for net in taken if net.overlaps(candidate)]
        if not ends:
            return candidate
        start += -(-(max(ends) + 1 - start) // step) * step
    return None


def _vlan_numbers(asked: NewNetwork, present: tuple[Network, ...], defaults: Defaults, manager: NetworkKind,
                 ) -> Iterator[int | None]:
    """Return an iterator over the VLAN numbers of the networks, or over None if the manager has no VLANs. Raises
    network.Invalid if a number is out of range."""
    if not manager.vlans:
        return itertools.repeat(None)
    start = asked.vlan_start if asked.vlan_start is not None else defaults.vlan_start
    for field, first in (("vlan", asked.vlan), ("vlan_start", start)):
        if first is not None and not (vlans.FIRST <= first <= vlans.LAST and
                                      first + asked.num_networks - 1 <= vlans.LAST):
            raise errors.network.Invalid(field=field,
                                         reason=f"{asked.num_networks} VLAN number(s) from {first} must be "
                                         f"between {vlans.FIRST} and {vlans.LAST}.")
    used = [network.vlan for network in present if network.vlan is not None]
    return vlans.numbers(asked.vlan, start, used, len(present))


# --- rows -------------------------------------------------------------------------------------------------------------

def _planned(asked: NewNetwork, index: int, cut: _Cut, network_uuid: str, defaults: Defaults) -> PlannedNetwork:
    label = asked.label if asked.num_networks == 1 else f"{asked.label}_{index}"
    as_asked = ("bridge", "bridge_interface", "dns1", "dns2", "mtu", "multi_host", "project_id", "priority",
                "enable_dhcp", "share_address")
    values: dict[str, Any] = {field: getattr(asked, field) for field in as_asked}
    manager = named(defaults.manager)
    if cut.vlan is not None:
        values.update(vlan=cut.vlan, bridge=vlans.bridge(cut.vlan))
    pool: tuple[PoolAddress, ...] = ()
    if cut.v4:
        fields = _fields_v4(asked, cut.v4)
        values.update(fields)
        if manager.vlans:
            values.update(_fields_vpn(asked, cut, defaults))
        pool = tuple(_pool(asked, cut.v4, fields, (manager.low_reserved, manager.high_reserved +
                                                   (defaults.cnt_vpn_clients if manager.vlans else 0))))
        if all(row.reserved for row in pool):
            raise errors.network.Invalid(field="fixed_cidr" if asked.fixed_cidr else "cidr",
                                         reason="No address remains for servers.")
    if cut.v6:
        values.update(_fields_v6(asked, cut.v6))
    return PlannedNetwork(Network(uuid=network_uuid, label=label, injected=defaults.injected, **values), pool)


def _fields_v4(asked: NewNetwork, subnet: IPv4Net) -> dict[str, str]:
    gateway = _address(asked.gateway, "gateway", IPv4) or subnet[1]
    dhcp_server = _address(asked.dhcp_server, "dhcp_server", IPv4) or gateway
    for field, address in (("gateway", gateway), ("dhcp_server", dhcp_server)):
        if address not in subnet or address in (subnet[0], subnet[-1]):
            raise errors.network.Invalid(field=field, reason=f"{address} is not a host address in {subnet}.")
    return {"cidr": str(subnet), "netmask": str(subnet.netmask), "broadcast": str(subnet.broadcast_address),
            "gateway": str(gateway), "dhcp_server": str(dhcp_server), "dhcp_start": str(subnet[2])}


def _fields_vpn(asked: NewNetwork, cut: _Cut, defaults: Defaults) -> dict[str, object]:
    """Return the VPN's fields. The first address of the DHCP range is the VPN guest's."""
    assert cut.v4 is not None
    first = asked.vpn_start if asked.vpn_start is not None else defaults.vpn_start
    if cut.v4.num_addresses <= SMALLEST_NETWORK:
        raise errors.network.Invalid(field="network_size",
                                     reason=f"{cut.v4} is too small for the VPN's address and a server.")
    return {"vpn_private_address": str(cut.v4[2]), "dhcp_start": str(cut.v4[3]), "vpn_public_address": defaults.vpn_ip,
            "vpn_public_port": first + cut.number}


def _fields_v6(asked: NewNetwork, subnet: ipaddress.IPv6Network) -> dict[str, str]:
    gateway = _address(asked.gateway_v6, "gateway_v6", ipaddress.IPv6Address) or subnet[1]
    if gateway not in subnet and not gateway.is_link_local:
        raise errors.network.Invalid(field="gateway_v6", reason=f"{gateway} is not in {subnet}.")
    return {"cidr_v6": str(subnet), "gateway_v6": str(gateway), "netmask_v6": str(subnet.prefixlen)}


def _pool(asked: NewNetwork, subnet: IPv4Net, fields: dict[str, str], ends: tuple[int, int]) -> Iterator[PoolAddress]:
    """Yield every address of the subnet (or of ``fixed_cidr`` in it). Its ends, the gateway and the DHCP server are
    reserved."""
    rows = _range(asked.fixed_cidr, "fixed_cidr", ipaddress.IPv4Network) or subnet
    if not rows.subnet_of(subnet):
        raise errors.network.Invalid(field="fixed_cidr", reason=f"{rows} is not in {subnet}.")
    first, last = _allowed(asked, subnet)
    ours = {int(IPv4(fields["gateway"])), int(IPv4(fields["dhcp_server"]))}
    low, high = int(subnet[0]) + ends[0], int(subnet[-1]) - ends[1]
    for number in range(int(rows[0]), int(rows[-1]) + 1):
        usable = max(first, low) <= number <= min(last, high) and number not in ours
        yield PoolAddress(str(IPv4(number)), reserved=not usable)


def _allowed(asked: NewNetwork, subnet: IPv4Net) -> tuple[int, int]:
    start = _address(asked.allowed_start, "allowed_start", IPv4) or subnet[0]
    end = _address(asked.allowed_end, "allowed_end", IPv4) or subnet[-1]
    for field, address in (("allowed_start", start), ("allowed_end", end)):
        if address not in subnet:
            raise errors.network.Invalid(field=field, reason=f"{address} is not in {subnet}.")
    if start > end:
        raise errors.network.Invalid(field="allowed_start", reason=f"{start} is greater than allowed_end, {end}.")
    return int(start), int(end)
