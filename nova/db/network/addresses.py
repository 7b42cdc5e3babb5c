"""Servers' interfaces and fixed addresses on nova-network's networks, allocated and released in the caller's
transaction."""

from __future__ import annotations

import dataclasses
import ipaddress
import uuid as uuids
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova import errors
from nova.db.models.cell import fixed_addresses, networks, servers, vifs
from nova.db.network import network_quota
from nova.db.network.free_addresses import NOBODYS, pick, release, reserved
from nova.db.network.host_addresses import own_addresses
from nova.db.sql.statements import by_key, insert_ignoring
from nova.db.sql.types import utc_now
from nova.model.network import addressing, ipv6
from nova.model.network.network_managers import FLAT_DHCP, NetworkKind
from nova.model.network.networks import FixedAddress, Interface, Network, RequestedNetwork, Subnet

FIELDS = [networks.c[name] for name in Network.__struct_fields__ if name in networks.c]
_OF_VIF = sa.and_(fixed_addresses.c.server_uuid == vifs.c.server_uuid,  # the condition on server_uuid has an index
                  fixed_addresses.c.vif_uuid == vifs.c.uuid)
_KEYS = uuids.UUID("7a4f1a5e-6f0f-4d43-9a0b-5b0a6f2d1c77")  # namespace of the UUIDs of interfaces added later


class AddressRequest(NamedTuple):
    """The requested interfaces of a server, in request order. ``host``: its current or future host."""

    server_uuid: str
    hostname: str
    networks: tuple[RequestedNetwork, ...]
    project_id: str = ""
    host: str | None = None


@dataclasses.dataclass(frozen=True)
class Terms:
    """The configured address options, and the projects' limits of ``fixed_ips`` (absent: unlimited)."""

    manager: NetworkKind = FLAT_DHCP
    ipv6_backend: str = "rfc2462"
    mac_attempts: int = 5
    limits: Mapping[str, int] = dataclasses.field(default_factory=dict)
    new_mac: Callable[[], str] = addressing.generate_mac


class NewInterface:
    """An interface that is being created."""

    def __init__(self, request: AddressRequest, requested: RequestedNetwork, vif: str, mac: str = "") -> None:
        self.request, self.requested, self.vif, self.mac = request, requested, vif, mac
        self.addresses: list[str] = []
        self.key: int | None = None  # of an address row that is allocated now


def bind(tx: Connection, requests: Sequence[AddressRequest], terms: Terms | None = None,
         ) -> dict[str, tuple[Interface, ...]]:
    """Allocate addresses for each server, or keep existing ones; return the interfaces by server UUID.

    Raises network.NotFound, network.NoAddress, network.AddressTaken, quota.FixedIps or network.NoMac. The transaction
    is the caller's, so that an error leaves no rows behind.
    """
    terms = terms or Terms()
    wanted = {requested.network_id for request in requests for requested in request.networks if requested.network_id}
    if not wanted:
        return {request.server_uuid: () for request in requests}
    rows = rows_of(tx, wanted)
    _lock(tx, requests, terms)
    pools = {row.uuid: _Pool(tx, row, requests) for row in rows.values()}
    places = [(pools[str(requested.network_id)], pools[str(requested.network_id)].place(request, requested))
              for request in requests for requested in request.networks if requested.network_id in rows]
    _write(tx, places, terms)
    bound: dict[str, tuple[Interface, ...]] = {request.server_uuid: () for request in requests}
    own = own_addresses(tx, list(rows.values()), {request.host for request in requests if request.host})
    for pool, place in places:
        value = interface(pool.row, place, terms, own.get((pool.row.id, place.request.host)))
        bound[place.request.server_uuid] += (value,)
    return bound


def take_interface(tx: Connection, request: AddressRequest, key: str, terms: Terms | None = None) -> Interface:
    """Add one interface (the only one in ``request.networks``). The same key returns the same interface."""
    terms = terms or Terms()
    [requested] = request.networks
    row = rows_of(tx, {str(requested.network_id)})[str(requested.network_id)]
    _lock(tx, [request], terms)
    vif = interface_id(key)
    place = _made(tx, request, requested, vif)
    if place is None:
        pool = _Pool(tx, row, [request], held=False)
        place = pool.place(request, requested, vif)
        _write(tx, [(pool, place)], terms)
    own = own_addresses(tx, [row], {request.host} if request.host else set())
    return interface(row, place, terms, own.get((row.id, request.host)))


def interface_id(key: str) -> str:
    """Return the id of the interface that :func:`take_interface` creates for that key."""
    return str(uuids.uuid5(_KEYS, key))


def add_address(tx: Connection, request: AddressRequest, terms: Terms | None = None) -> tuple[str, str] | None:
    """Add an address to the server's first interface in the one requested network; return (vif's UUID, address). None
    if it has no interface there."""
    terms = terms or Terms()
    [requested] = request.networks
    row = rows_of(tx, {str(requested.network_id)})[str(requested.network_id)]
    _lock(tx, [request], terms)
    vif = tx.execute(sa.select(vifs.c.uuid, vifs.c.mac).where(
        vifs.c.server_uuid == request.server_uuid, vifs.c.network_id == row.id).order_by(vifs.c.id).limit(1),
                     ).one_or_none()
    if vif is None:
        return None
    pool = _Pool(tx, row, [request], held=False)
    place = pool.place(request, requested, vif.uuid)
    place.mac = vif.mac
    _write(tx, [(pool, place)], terms)
    return vif.uuid, place.addresses[0]


def drop_interface(tx: Connection, server_uuid: str, vif_uuid: str, keep_leased: bool = False) -> None:
    """Release an interface's addresses and delete it. Idempotent."""
    release(tx, sa.and_(fixed_addresses.c.vif_uuid == vif_uuid, fixed_addresses.c.server_uuid == server_uuid),
            keep_leased)
    tx.execute(sa.delete(vifs).where(vifs.c.uuid == vif_uuid, vifs.c.server_uuid == server_uuid))


def drop_address(tx: Connection, server_uuid: str, address: str, keep_leased: bool = False) -> bool:
    """Release one of a server's addresses; return whether the server had it."""
    return bool(release(tx, sa.and_(fixed_addresses.c.address == address,
                                    fixed_addresses.c.server_uuid == server_uuid), keep_leased))


def unbind(tx: Connection, servers_: Sequence[str], keep_leased: bool = False) -> set[tuple[str, str | None]]:
    """Release all addresses of these servers. Idempotent. Returns (network UUID, host if multi-host) of each change."""
    changed = release(tx, fixed_addresses.c.server_uuid.in_(servers_), keep_leased)
    tx.execute(sa.delete(vifs).where(vifs.c.server_uuid.in_(servers_)))
    return changed


def used(tx: Connection, project_id: str) -> int:
    """Return the number of fixed addresses in use by the project's servers."""
    return int(tx.execute(sa.select(sa.func.count()).select_from(
        sa.join(fixed_addresses, servers, servers.c.uuid == fixed_addresses.c.server_uuid))
        .where(servers.c.project_id == project_id)).scalar_one())


def follow(tx: Connection, server_uuid: str, host: str) -> list[Network]:
    """Move the server's addresses in multi-host networks to its new host; return these networks."""
    many = [Network(**row._mapping) for row in tx.execute(sa.select(*FIELDS).where(
        networks.c.multi_host == sa.true(),
        networks.c.id.in_(sa.select(vifs.c.network_id).where(vifs.c.server_uuid == server_uuid))))]
    if many:
        tx.execute(sa.update(fixed_addresses).where(
            fixed_addresses.c.server_uuid == server_uuid,
            fixed_addresses.c.network_id.in_([row.id for row in many])).values(host=host, updated_at=utc_now()))
    return many


def take_over(tx: Connection, server_uuid: str, host: str, interfaces: Sequence[Interface]) -> None:
    """Record existing interfaces of an imported guest. Raises network.NotFound, or network.AddressTaken if an address
    belongs to another server or not to the network."""
    rows = rows_of(tx, {one.network_id for one in interfaces}) if interfaces else {}
    for one in interfaces:
        row = rows[one.network_id]
        insert_ignoring(tx, vifs, [{"uuid": one.id, "mac": one.mac, "network_id": row.id, "server_uuid": server_uuid}])
        for address in (each.address for each in one.addresses if each.version == 4):
            mine = sa.and_(fixed_addresses.c.network_id == row.id, fixed_addresses.c.address == address, NOBODYS)
            at = {"host": host} if row.multi_host else {}
            if not tx.execute(sa.update(fixed_addresses).where(mine).values(
                    server_uuid=server_uuid, vif_uuid=one.id, leased=False, updated_at=utc_now(), **at)).rowcount:
                raise errors.network.AddressTaken(address=address, network=one.network_id)


# -- internals


def leave(tx: Connection, servers_: Sequence[str]) -> set[str]:
    """Detach the servers' addresses from their hosts; return these hosts."""
    mine = sa.and_(fixed_addresses.c.server_uuid.in_(servers_), fixed_addresses.c.host.is_not(None))
    hosts = set(tx.execute(sa.select(fixed_addresses.c.host).where(mine)).scalars())
    if hosts:
        tx.execute(sa.update(fixed_addresses).where(mine).values(host=None, updated_at=utc_now()))
    return hosts


def rows_of(tx: Connection, wanted: set[str]) -> dict[str, Network]:
    """Return networks by UUID, in one statement. Raises network.NotFound if any is missing."""
    chosen = sa.select(*FIELDS).where(networks.c.uuid.in_(sorted(wanted)))
    rows = {row.uuid: Network(**row._mapping) for row in tx.execute(chosen)}
    missing = wanted - set(rows)
    if missing:
        raise errors.network.NotFound(network_id=sorted(missing)[0])
    return rows


class _Pool:
    """A network's free addresses and the servers' existing interfaces, read once. ``held``: reuse existing
    interfaces."""

    def __init__(self, tx: Connection, row: Network, requests: Sequence[AddressRequest], held: bool = True) -> None:
        self.tx, self.row = tx, row
        asked = [one for request in requests for one in request.networks if one.network_id == row.uuid]
        self.named = {requested.fixed_ip for requested in asked if requested.fixed_ip}
        self.held = self._held([request.server_uuid for request in requests]) if held else {}
        missing = len(asked) - sum(len(places) for places in self.held.values())
        picked = pick(tx, row.id, missing, sorted(self.named)) if missing > 0 and row.cidr else []
        self.free = {one.address: one.id for one in picked}
        if any(requested.vpn for requested in asked) and row.vpn_private_address:
            self.named.add(row.vpn_private_address)
            self.free.update(reserved(tx, row.id, row.vpn_private_address))

    def _held(self, servers_: Sequence[str]) -> dict[str, list[tuple[str, str, list[str]]]]:
        """Return the interfaces that the servers already have, as (vif, MAC, addresses), from an earlier call."""
        held: dict[str, dict[str, tuple[str, str, list[str]]]] = {}
        query = (sa.select(vifs.c.uuid, vifs.c.mac, vifs.c.server_uuid, fixed_addresses.c.address)
                 .join_from(vifs, fixed_addresses, _OF_VIF, isouter=True)
                 .where(vifs.c.network_id == self.row.id, vifs.c.server_uuid.in_(servers_))
                 .order_by(vifs.c.id, fixed_addresses.c.id))
        for one in self.tx.execute(query):
            place = held.setdefault(one.server_uuid, {}).setdefault(one.uuid, (one.uuid, one.mac, []))
            if one.address:
                place[2].append(one.address)
        return {server: list(places.values()) for server, places in held.items()}

    def place(self, request: AddressRequest, requested: RequestedNetwork, vif: str | None = None) -> NewInterface:
        if self.held.get(request.server_uuid):
            uuid, mac, addresses = self.held[request.server_uuid].pop(0)
            kept = NewInterface(request, requested, uuid, mac)
            kept.addresses = addresses
            return kept
        new = NewInterface(request, requested, vif or str(uuids.uuid4()))
        if self.row.cidr:
            address = self._pick(requested)
            new.addresses, new.key = [address], self.free.pop(address)
        return new

    def _pick(self, requested: RequestedNetwork) -> str:
        named = self.row.vpn_private_address if requested.vpn else requested.fixed_ip
        if named:
            if named not in self.free:
                raise errors.network.AddressTaken(address=named, network=self.row.uuid)
            return str(named)
        for address in self.free:
            if address not in self.named:
                return str(address)
        raise errors.network.NoAddress(network=self.row.uuid)


def _made(tx: Connection, request: AddressRequest, requested: RequestedNetwork, vif: str) -> NewInterface | None:
    """Return the interface with that UUID if an earlier attempt created it."""
    rows = list(tx.execute(
        sa.select(vifs.c.mac, fixed_addresses.c.address)
        .join_from(vifs, fixed_addresses, _OF_VIF, isouter=True)
        .where(vifs.c.uuid == vif).order_by(fixed_addresses.c.id)))
    if not rows:
        return None
    place = NewInterface(request, requested, vif, rows[0].mac)
    place.addresses = [row.address for row in rows if row.address]
    return place


def _lock(tx: Connection, requests: Sequence[AddressRequest], terms: Terms) -> None:
    for project in sorted({request.project_id for request in requests} & set(terms.limits)):
        network_quota.lock_owner(tx, project)


def _write(tx: Connection, places: Sequence[tuple[_Pool, NewInterface]], terms: Terms) -> None:
    """Write the allocations: check quotas, then the addresses with one statement per network, then the interfaces with
    one."""
    new = [place for _, place in places if place.key is not None]
    for project, limit in terms.limits.items():
        wanted = sum(1 for place in new if place.request.project_id == project)
        have = used(tx, project) if wanted else 0
        if wanted and have + wanted > limit:
            raise errors.quota.FixedIps(requested=wanted, used=have, limit=limit)
    for pool in {id(pool): pool for pool, _ in places}.values():
        _take(tx, pool, [place for of, place in places if of is pool and place.key is not None])
    _insert_vifs(tx, [(pool.row.id, place) for pool, place in places if not place.mac], terms)


def _take(tx: Connection, pool: _Pool, places: Sequence[NewInterface]) -> None:
    if not places:
        return
    owner = {place.key: place.request.server_uuid for place in places}
    vif = {place.key: place.vif for place in places}
    hosts = {place.key: place.request.host for place in places}
    at = {"host": by_key(fixed_addresses.c.id, hosts, fixed_addresses.c.host)} if pool.row.multi_host else {}
    changed = tx.execute(
        sa.update(fixed_addresses).where(fixed_addresses.c.id.in_(list(owner)), NOBODYS)
        .values(server_uuid=by_key(fixed_addresses.c.id, owner, fixed_addresses.c.server_uuid),
                vif_uuid=by_key(fixed_addresses.c.id, vif, fixed_addresses.c.vif_uuid),
                leased=False, updated_at=utc_now(), **at)).rowcount
    if changed != len(owner):
        raise errors.Bug("a locked address was allocated by another transaction")


def _insert_vifs(tx: Connection, places: Sequence[tuple[int, NewInterface]], terms: Terms) -> None:
    """Insert interfaces with unique MAC addresses. Raises network.NoMac."""
    left = list(places)
    for _ in range(max(1, terms.mac_attempts)):
        if not left:
            return
        for _network, place in left:
            place.mac = terms.new_mac()
        done = insert_ignoring(tx, vifs, [
            {"uuid": place.vif, "mac": place.mac, "network_id": network, "server_uuid": place.request.server_uuid}
            for network, place in left])
        if done == len(left):
            return
        there = set(tx.execute(sa.select(vifs.c.uuid).where(
            vifs.c.uuid.in_([place.vif for _, place in left]))).scalars())
        left = [(network, place) for network, place in left if place.vif not in there]
    if left:
        raise errors.network.NoMac(attempts=terms.mac_attempts)


# -- values


def interface(row: Network, place: NewInterface, terms: Terms, own: str | None = None) -> Interface:
    """Return the interface as a value. ``own``: the host's address in a multi-host network, its gateway and DHCP server
    there."""
    dns = tuple(one for one in (row.dns1, row.dns2) if one)
    gateway, dhcp_server = own or row.gateway, own or row.dhcp_server
    return Interface(
        id=place.vif, mac=place.mac, network_id=row.uuid, label=row.label, bridge=row.bridge, cidr=row.cidr,
        addresses=addresses_of(row, place.mac, place.addresses, terms), gateway=gateway, dhcp_server=dhcp_server,
        dns=dns, mtu=row.mtu, tag=place.requested.tag, device=f"tap{place.vif[:11]}", multi_host=row.multi_host,
        should_create_bridge=terms.manager.dhcp, bridge_interface=row.bridge_interface,
        subnets=_subnets(row, gateway, dhcp_server, terms), vlan=row.vlan,
        should_create_vlan=row.vlan is not None and terms.manager.vlans, injected=row.injected,
        project_id=row.project_id)


def addresses_of(row: Network, mac: str, addresses: Sequence[str], terms: Terms) -> tuple[FixedAddress, ...]:
    """Return the allocated IPv4 addresses, then the IPv6 address that the guest derives."""
    found = tuple(FixedAddress(address=one) for one in addresses)
    if not row.cidr_v6:
        return found
    computed = ipv6.address(row.cidr_v6, mac, row.project_id or "", terms.ipv6_backend)
    return (*found, FixedAddress(address=computed, version=6))


def _subnets(row: Network, gateway: str | None, dhcp_server: str | None, terms: Terms) -> tuple[Subnet, ...]:
    found: list[Subnet] = []
    names = [one for one in (row.dns1, row.dns2) if one]

    def of_version(version: int) -> tuple[str, ...]:
        return tuple(one for one in names if ipaddress.ip_address(one).version == version)
    if row.cidr:
        found.append(Subnet(cidr=row.cidr, gateway=gateway, dns=of_version(4), dhcp_server=dhcp_server,
                            dhcp=bool(terms.manager.dhcp and row.enable_dhcp)))
    if row.cidr_v6:
        found.append(Subnet(cidr=row.cidr_v6, version=6, gateway=row.gateway_v6, dns=of_version(6), ipv6_mode="slaac"))
    return tuple(found)
