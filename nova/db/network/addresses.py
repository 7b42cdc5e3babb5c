"""Servers' interfaces on nova-network's networks, and their addresses: taken and given back in the caller's
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
from nova.db.sql.types import AnyRow, utc_now
from nova.model.network import addressing, ipv6
from nova.model.network.network_managers import FLAT_DHCP, NetworkKind
from nova.model.network.networks import FixedAddress, Interface, Network, RequestedNetwork, Subnet

FIELDS = [networks.c[name] for name in Network.__struct_fields__ if name in networks.c]
_OF_VIF = sa.and_(fixed_addresses.c.server_uuid == vifs.c.server_uuid,  # which has an index
                  fixed_addresses.c.vif_uuid == vifs.c.uuid)
_KEYS = uuids.UUID("7a4f1a5e-6f0f-4d43-9a0b-5b0a6f2d1c77")  # names of interfaces that come later are made in it


class AddressRequest(NamedTuple):
    """One server's interfaces to be: in the order they were asked for. ``host``: where it is, or will be."""

    server_uuid: str
    hostname: str
    networks: tuple[RequestedNetwork, ...]
    project_id: str = ""
    host: str | None = None


@dataclasses.dataclass(frozen=True)
class Terms:
    """What the configuration says of addresses, and the projects' limits (``fixed_ips``; none: not limited)."""

    manager: NetworkKind = FLAT_DHCP
    ipv6_backend: str = "rfc2462"
    mac_attempts: int = 5
    limits: Mapping[str, int] = dataclasses.field(default_factory=dict)
    new_mac: Callable[[], str] = addressing.generate_mac


class NewInterface:
    """One interface in the making."""

    def __init__(self, request: AddressRequest, requested: RequestedNetwork, vif: str, mac: str = "") -> None:
        self.request, self.requested, self.vif, self.mac = request, requested, vif, mac
        self.addresses: list[str] = []
        self.key: int | None = None  # of a row that is taken now


def bind(tx: Connection, requests: Sequence[AddressRequest], terms: Terms | None = None,
         ) -> dict[str, tuple[Interface, ...]]:
    """Give each server its addresses (those it has already, if it was bound before); its interfaces, by uuid.

    network.NotFound, network.NoAddress, network.AddressTaken, quota.FixedIps and network.NoMac leave nothing behind:
    the transaction is the caller's.
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
    """One more interface (``request.networks`` is the one); with the same key, the same again."""
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
    """The id of the interface that :func:`take_interface` makes for that key."""
    return str(uuids.uuid5(_KEYS, key))


def add_address(tx: Connection, request: AddressRequest, terms: Terms | None = None) -> tuple[str, str] | None:
    """One more address for the server's first interface in the one network it asks for: (vif's uuid, address). None
    when it has no interface there."""
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
    """Its addresses are nobody's, and it is no more. Repeated: nothing."""
    release(tx, sa.and_(fixed_addresses.c.vif_uuid == vif_uuid, fixed_addresses.c.server_uuid == server_uuid),
            keep_leased)
    tx.execute(sa.delete(vifs).where(vifs.c.uuid == vif_uuid, vifs.c.server_uuid == server_uuid))


def drop_address(tx: Connection, server_uuid: str, address: str, keep_leased: bool = False) -> bool:
    """One of its addresses is nobody's; whether it had it."""
    return bool(release(tx, sa.and_(fixed_addresses.c.address == address,
                                    fixed_addresses.c.server_uuid == server_uuid), keep_leased))


def unbind(tx: Connection, servers_: Sequence[str], keep_leased: bool = False) -> set[tuple[str, str | None]]:
    """Give back all addresses of these servers, once; (network's uuid, host of a multi-host one) of what changed."""
    changed = release(tx, fixed_addresses.c.server_uuid.in_(servers_), keep_leased)
    tx.execute(sa.delete(vifs).where(vifs.c.server_uuid.in_(servers_)))
    return changed


def used(tx: Connection, project_id: str) -> int:
    """Addresses that servers of the project have."""
    return int(tx.execute(sa.select(sa.func.count()).select_from(
        sa.join(fixed_addresses, servers, servers.c.uuid == fixed_addresses.c.server_uuid))
        .where(servers.c.project_id == project_id)).scalar_one())


def follow(tx: Connection, server_uuid: str, host: str) -> list[AnyRow]:
    """A server is on another host: so are its addresses in networks that each host serves for its own guests. The
    rows of those networks."""
    many = list(tx.execute(sa.select(*FIELDS).where(
        networks.c.multi_host == sa.true(),
        networks.c.id.in_(sa.select(vifs.c.network_id).where(vifs.c.server_uuid == server_uuid)))))
    if many:
        tx.execute(sa.update(fixed_addresses).where(
            fixed_addresses.c.server_uuid == server_uuid,
            fixed_addresses.c.network_id.in_([row.id for row in many])).values(host=host, updated_at=utc_now()))
    return many


def adopt(tx: Connection, server_uuid: str, host: str, interfaces: Sequence[Interface]) -> None:
    """These interfaces, which a guest has already, are the server's. network.NotFound; network.AddressTaken: another
    server has an address, or it is not the network's."""
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


# -- inside


def leave(tx: Connection, servers_: Sequence[str]) -> set[str]:
    """The servers are on no host; the hosts that had their addresses."""
    mine = sa.and_(fixed_addresses.c.server_uuid.in_(servers_), fixed_addresses.c.host.is_not(None))
    hosts = set(tx.execute(sa.select(fixed_addresses.c.host).where(mine)).scalars())
    if hosts:
        tx.execute(sa.update(fixed_addresses).where(mine).values(host=None, updated_at=utc_now()))
    return hosts


def rows_of(tx: Connection, wanted: set[str]) -> dict[str, AnyRow]:
    """Networks by uuid, in one statement. network.NotFound: a network of them is not there."""
    rows = {row.uuid: row for row in tx.execute(sa.select(*FIELDS).where(networks.c.uuid.in_(sorted(wanted))))}
    missing = wanted - set(rows)
    if missing:
        raise errors.network.NotFound(network_id=sorted(missing)[0])
    return rows


class _Pool:
    """One network's free addresses and the servers' own, read once. ``held``: what they have counts as theirs."""

    def __init__(self, tx: Connection, row: AnyRow, requests: Sequence[AddressRequest], held: bool = True) -> None:
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
        """What the servers have already, as (vif, MAC, addresses): this is not the first time, then."""
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
    """The interface of that uuid, where an earlier try has made it."""
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
    """What the places take: counted, then the addresses in one statement a network, then the interfaces in one."""
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
        raise errors.Bug("an address was taken under its lock")


def _insert_vifs(tx: Connection, places: Sequence[tuple[int, NewInterface]], terms: Terms) -> None:
    """Each gets a MAC that nobody has. network.NoMac."""
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


def interface(row: AnyRow, place: NewInterface, terms: Terms, own: str | None = None) -> Interface:
    """``own``: of a multi-host network, the address of the guest's host there, its gateway and DHCP server."""
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


def addresses_of(row: AnyRow, mac: str, addresses: Sequence[str], terms: Terms) -> tuple[FixedAddress, ...]:
    """IPv4 as allocated, then IPv6 as the guest makes it."""
    found = tuple(FixedAddress(address=one) for one in addresses)
    if not row.cidr_v6:
        return found
    computed = ipv6.address(row.cidr_v6, mac, row.project_id or "", terms.ipv6_backend)
    return (*found, FixedAddress(address=computed, version=6))


def _subnets(row: AnyRow, gateway: str | None, dhcp_server: str | None, terms: Terms) -> tuple[Subnet, ...]:
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
