"""nova-network's networks and pools: addresses are taken and given back in the transaction that journals it."""

from __future__ import annotations

import uuid as uuids
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from nova import errors
from nova.db.models.cell import fixed_addresses, networks, servers, vifs
from nova.db.statements import by_key, insert_all
from nova.db.types import utc_now
from nova.model import addressing
from nova.model.base import Scope
from nova.model.networks import DhcpHost, FixedAddress, Interface, Network, NetworkOnHost, RequestedNetwork

_FIELDS = [networks.c[name] for name in Network.__struct_fields__]


class NoSuchNetwork(errors.NotFound):
    code, message = "network.not_found", "Network {network_id} could not be found."


class NoAddressLeft(errors.Conflict):
    code, message = "network.no_address", "Zero fixed ips available in network {network}."


class AddressTaken(errors.Invalid):
    code = "network.address_taken"
    message = "Fixed IP address {address} is already in use or is not in network {network}."


class NetworkInUse(errors.Conflict):
    code, message = "network.in_use", "Network {network_id} is still in use: {count} addresses are a server's."


class Wish(NamedTuple):
    """One server's interfaces to be: in the order they were asked for."""

    server_uuid: str
    hostname: str
    networks: tuple[RequestedNetwork, ...]


def select(tx: Connection, scope: Scope, ids: Sequence[int] | None = None) -> tuple[Network, ...]:
    """Networks the scope may use (its own, and those of nobody), by priority and age."""
    query = sa.select(*_FIELDS).order_by(networks.c.priority, networks.c.id)
    if scope.project_id is not None:
        query = query.where(sa.or_(networks.c.project_id.is_(None), networks.c.project_id == scope.project_id))
    if ids is not None:
        query = query.where(networks.c.id.in_(ids))
    return tuple(Network(**row._mapping) for row in tx.execute(query))


def get(tx: Connection, uuid: str, scope: Scope) -> Network:
    found = [network for network in select(tx, scope) if network.uuid == uuid]
    if not found:
        raise NoSuchNetwork(network_id=uuid)
    return found[0]


def not_free(tx: Connection, addresses: Sequence[str]) -> set[tuple[str, str]]:
    """(network's uuid, address) of those that are reserved, or a server's."""
    rows = tx.execute(sa.select(networks.c.uuid, fixed_addresses.c.address)
                      .join_from(fixed_addresses, networks, networks.c.id == fixed_addresses.c.network_id)
                      .where(fixed_addresses.c.address.in_(addresses), sa.or_(
                          fixed_addresses.c.reserved == sa.true(), fixed_addresses.c.server_uuid.is_not(None))))
    return {(row.uuid, row.address) for row in rows}


def insert(tx: Connection, planned: Sequence[addressing.PlannedNetwork]) -> None:
    """Networks with their pools, each pool in one statement a thousand addresses."""
    for plan in planned:
        values = {name: getattr(plan.network, name) for name in Network.__struct_fields__
                  if name not in ("id", "created_at", "updated_at")}
        made = tx.execute(sa.insert(networks).values(**values, created_at=utc_now()))
        key = made.inserted_primary_key[0]
        rows = [{"network_id": key, "address": one.address, "reserved": one.reserved} for one in plan.pool]
        for start in range(0, len(rows), 1000):
            insert_all(tx, fixed_addresses, rows[start:start + 1000])


def delete(tx: Connection, uuid: str) -> None:
    """Conflict while an address of it is a server's."""
    key = tx.execute(sa.select(networks.c.id).where(networks.c.uuid == uuid).with_for_update()).scalar_one_or_none()
    if key is None:
        raise NoSuchNetwork(network_id=uuid)
    # First what is free, which waits for whoever is picking an address; then what is left is somebody's.
    tx.execute(sa.delete(fixed_addresses).where(fixed_addresses.c.network_id == key,
                                                fixed_addresses.c.server_uuid.is_(None)))
    count = tx.execute(sa.select(sa.func.count()).where(fixed_addresses.c.network_id == key)).scalar_one()
    if count:
        raise NetworkInUse(network_id=uuid, count=count)
    tx.execute(sa.delete(networks).where(networks.c.id == key))


def any_served(tx: Connection, host: str, uuids_: Sequence[str]) -> bool:
    """Whether the host serves one of these networks."""
    return tx.execute(sa.select(networks.c.id).where(networks.c.uuid.in_(uuids_), networks.c.host == host)
                      .limit(1)).first() is not None


def claim_unhosted(tx: Connection, host: str) -> int:
    """A network host takes the networks that have none; how many."""
    return tx.execute(sa.update(networks).where(networks.c.host.is_(None), networks.c.multi_host == sa.false())
                      .values(host=host, updated_at=utc_now())).rowcount


def bind(tx: Connection, wishes: Sequence[Wish]) -> dict[str, tuple[Interface, ...]]:
    """Give each server its addresses (those it has already, if it was bound before); its interfaces, by uuid.

    Free addresses are picked under their own locks, past those that others are picking: no row is hot. NoAddressLeft
    and AddressTaken leave nothing behind: the transaction is the caller's.
    """
    wanted = {request.network_id for wish in wishes for request in wish.networks if request.network_id}
    if not wanted:
        return {wish.server_uuid: () for wish in wishes}
    rows = {row.uuid: row for row in tx.execute(sa.select(*_FIELDS).where(networks.c.uuid.in_(wanted)))}
    missing = wanted - set(rows)
    if missing:
        raise NoSuchNetwork(network_id=sorted(missing)[0])
    pools = {row.id: _Pool(tx, row, wishes) for row in rows.values()}
    bound = {wish.server_uuid: tuple(pools[rows[request.network_id].id].interface(wish, request)
                                     for request in wish.networks if request.network_id in rows)
             for wish in wishes}
    for pool in pools.values():
        pool.write()
    return bound


class _Pool:
    """One network's free addresses and the servers' own, read once and written once."""

    def __init__(self, tx: Connection, row: Row[Any], wishes: Sequence[Wish]) -> None:
        self.tx, self.row = tx, row
        asked = [request for wish in wishes for request in wish.networks if request.network_id == row.uuid]
        self.named = {request.fixed_ip for request in asked if request.fixed_ip}
        self.held = self._held([wish.server_uuid for wish in wishes])
        missing = len(asked) - sum(len(rows) for rows in self.held.values())
        self.free = {one.address: one for one in self._free(missing)} if missing > 0 else {}
        self.taken: dict[int, tuple[str, str]] = {}
        self.new_vifs: list[dict[str, Any]] = []

    def _held(self, uuids: Sequence[str]) -> dict[str, list[Any]]:
        """What the servers have already: this is not the first time, then."""
        held: dict[str, list[Any]] = {}
        query = (sa.select(fixed_addresses.c.id, fixed_addresses.c.address, fixed_addresses.c.server_uuid,
                           fixed_addresses.c.vif_uuid, vifs.c.mac)
                 .join_from(fixed_addresses, vifs, vifs.c.uuid == fixed_addresses.c.vif_uuid)
                 .where(fixed_addresses.c.network_id == self.row.id, fixed_addresses.c.server_uuid.in_(uuids))
                 .order_by(fixed_addresses.c.id))
        for one in self.tx.execute(query):
            held.setdefault(one.server_uuid, []).append(one)
        return held

    def _free(self, count: int) -> list[Row[Any]]:
        """The named free addresses and as many others, locked."""
        free = sa.and_(fixed_addresses.c.network_id == self.row.id, fixed_addresses.c.reserved == sa.false(),
                       fixed_addresses.c.server_uuid.is_(None))
        query = sa.select(fixed_addresses.c.id, fixed_addresses.c.address).where(free).order_by(fixed_addresses.c.id)
        found = []
        if self.named:
            found = list(self.tx.execute(query.where(fixed_addresses.c.address.in_(self.named)).with_for_update()))
        others = query.where(fixed_addresses.c.address.not_in(self.named)) if self.named else query
        for dialect in ("mysql", "mariadb"):  # left to itself it walks, and locks, every address that is taken
            others = others.with_hint(fixed_addresses, "USE INDEX (ix_fixed_addresses_free)", dialect)
        picked = list(self.tx.execute(others.limit(count).with_for_update(skip_locked=True)))
        if len(picked) < count:  # what others were picking may be free again by now
            picked = list(self.tx.execute(others.limit(count).with_for_update()))
        return [*found, *picked]

    def interface(self, wish: Wish, request: RequestedNetwork) -> Interface:
        if self.held.get(wish.server_uuid):
            kept = self.held[wish.server_uuid].pop(0)
            return self._value(kept.address, kept.vif_uuid, kept.mac, request)
        address = self._pick(request)
        vif, mac = str(uuids.uuid4()), addressing.generate_mac()
        self.taken[self.free.pop(address).id] = (wish.server_uuid, vif)
        self.new_vifs.append({"uuid": vif, "mac": mac, "network_id": self.row.id, "server_uuid": wish.server_uuid})
        return self._value(address, vif, mac, request)

    def _pick(self, request: RequestedNetwork) -> str:
        if request.fixed_ip:
            if request.fixed_ip not in self.free:
                raise AddressTaken(address=request.fixed_ip, network=self.row.uuid)
            return request.fixed_ip
        for address in self.free:
            if address not in self.named:
                return str(address)
        raise NoAddressLeft(network=self.row.uuid)

    def _value(self, address: str, vif: str, mac: str, request: RequestedNetwork) -> Interface:
        row = self.row
        return Interface(
            id=vif, mac=mac, network_id=row.uuid, label=row.label, bridge=row.bridge, cidr=row.cidr,
            addresses=(FixedAddress(address=address),), gateway=row.gateway, dhcp_server=row.dhcp_server,
            dns=tuple(one for one in (row.dns1, row.dns2) if one), mtu=row.mtu, tag=request.tag,
            device=f"tap{vif[:11]}", multi_host=row.multi_host, should_create_bridge=True,
            bridge_interface=row.bridge_interface)

    def write(self) -> None:
        if not self.taken:
            return
        owner = {key: server for key, (server, _vif) in self.taken.items()}
        vif = {key: uuid for key, (_server, uuid) in self.taken.items()}
        changed = self.tx.execute(
            sa.update(fixed_addresses).where(fixed_addresses.c.id.in_(list(owner)),
                                             fixed_addresses.c.server_uuid.is_(None))
            .values(server_uuid=by_key(fixed_addresses.c.id, owner, fixed_addresses.c.server_uuid),
                    vif_uuid=by_key(fixed_addresses.c.id, vif, fixed_addresses.c.vif_uuid),
                    leased=False, updated_at=utc_now())).rowcount
        if changed != len(owner):
            raise errors.Bug("an address was taken under its lock")
        insert_all(self.tx, vifs, self.new_vifs)


def follow(tx: Connection, server_uuid: str, host: str) -> None:
    """A server is on another host: so are its addresses in networks that each host serves for its own guests."""
    many = sa.select(networks.c.id).where(networks.c.multi_host == sa.true())
    tx.execute(sa.update(fixed_addresses).where(fixed_addresses.c.server_uuid == server_uuid,
                                                fixed_addresses.c.network_id.in_(many))
               .values(host=host, updated_at=utc_now()))


def unbind(tx: Connection, uuids: Sequence[str]) -> set[int]:
    """Give back all addresses of these servers, once; the networks (keys) that changed."""
    held = list(tx.execute(sa.select(fixed_addresses.c.id, fixed_addresses.c.network_id)
                           .where(fixed_addresses.c.server_uuid.in_(uuids))))
    changed = {row.network_id for row in held}
    if changed:
        tx.execute(sa.update(fixed_addresses).where(fixed_addresses.c.server_uuid.in_(uuids))
                   .values(server_uuid=None, vif_uuid=None, leased=False, updated_at=utc_now()))
    tx.execute(sa.delete(vifs).where(vifs.c.server_uuid.in_(uuids)))
    return changed


def on_host(tx: Connection, host: str | None = None, uuids_: Sequence[str] | None = None,
            ids: Sequence[int] | None = None) -> tuple[NetworkOnHost, ...]:
    """Networks (of a host, or by uuid or key) with every address allocated in them, in one statement."""
    columns = [*_FIELDS, networks.c.version]
    query = (sa.select(*columns, fixed_addresses.c.address, fixed_addresses.c.leased, fixed_addresses.c.server_uuid,
                       vifs.c.mac, servers.c.hostname)
             .join_from(networks, fixed_addresses, sa.and_(fixed_addresses.c.network_id == networks.c.id,
                                                           fixed_addresses.c.server_uuid.is_not(None)), isouter=True)
             .join(vifs, vifs.c.uuid == fixed_addresses.c.vif_uuid, isouter=True)
             .join(servers, servers.c.uuid == fixed_addresses.c.server_uuid, isouter=True)
             .order_by(networks.c.id, fixed_addresses.c.id))
    if host is not None:
        query = query.where(networks.c.host == host)
    if uuids_ is not None:
        query = query.where(networks.c.uuid.in_(uuids_))
    if ids is not None:
        query = query.where(networks.c.id.in_(ids))
    found: dict[str, tuple[Network, list[DhcpHost], int]] = {}
    for row in tx.execute(query):
        fields = row._mapping
        if row.uuid not in found:
            network = Network(**{name: fields[name] for name in Network.__struct_fields__})
            found[row.uuid] = (network, [], row.version)
        if row.address is not None and row.mac is not None:
            found[row.uuid][1].append(DhcpHost(network_uuid=row.uuid, mac=row.mac, address=row.address,
                                               hostname=row.hostname or "", server_uuid=row.server_uuid,
                                               leased=row.leased))
    return tuple(NetworkOnHost(network=network, addresses=tuple(addresses), version=version)
                 for network, addresses, version in found.values())


def stamped(tx: Connection, uuids_: Sequence[str]) -> tuple[NetworkOnHost, ...]:
    """Networks with their addresses under a new version. What is read after the row's lock is newer than what an
    earlier version was read with: so the order of versions is the order of contents."""
    for uuid in sorted(uuids_):
        tx.execute(sa.update(networks).where(networks.c.uuid == uuid).values(version=networks.c.version + 1))
    return on_host(tx, uuids_=uuids_)


def note_lease(tx: Connection, host: str, address: str, mac: str, leased: bool) -> None:
    """dnsmasq's word on an address of a network of this host; what does not match changes nothing."""
    mine = sa.select(networks.c.id).where(networks.c.host == host)
    owner = sa.select(vifs.c.uuid).where(vifs.c.mac == mac)
    tx.execute(sa.update(fixed_addresses).where(
        fixed_addresses.c.address == address, fixed_addresses.c.network_id.in_(mine),
        fixed_addresses.c.vif_uuid.in_(owner)).values(leased=leased, updated_at=utc_now()))


def server_at(tx: Connection, address: str) -> str | None:
    """The uuid of the live server with this address."""
    return tx.execute(sa.select(servers.c.uuid).join_from(
        fixed_addresses, servers, servers.c.uuid == fixed_addresses.c.server_uuid)
        .where(fixed_addresses.c.address == address, servers.c.deleted == 0).limit(1)).scalar_one_or_none()


def write_interfaces(interfaces: Mapping[str, tuple[Interface, ...]]) -> dict[str, Any]:
    """Interfaces as a change of server rows (see nova.db.states.PerServer)."""
    from nova.db.states import PerServer

    return {"interfaces": PerServer(interfaces)}
