"""nova-network's networks and pools: addresses are allocated and released in the transaction that journals it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova import errors
from nova.db.models.cell import fixed_addresses, floating_addresses, networks, servers, services, vifs
from nova.db.network.addresses import FIELDS as _FIELDS
from nova.db.network.addresses import AddressRequest, Terms, bind, drop_interface, follow, take_interface, unbind
from nova.db.network.free_addresses import OWN, note_lease
from nova.db.sql.statements import insert_all
from nova.db.sql.types import new_key, utc_now
from nova.model.base import Scope
from nova.model.network import addressing
from nova.model.network.floating import FloatingOnHost
from nova.model.network.networks import DhcpHost, Network, NetworkOnHost


def select(tx: Connection, scope: Scope, ids: Sequence[int] | None = None) -> tuple[Network, ...]:
    """Return the networks that the scope may use (its own, and unowned ones), by priority and age."""
    query = sa.select(*_FIELDS).order_by(networks.c.priority, networks.c.id)
    if scope.project_id is not None:
        query = query.where(sa.or_(networks.c.project_id.is_(None), networks.c.project_id == scope.project_id))
    if ids is not None:
        query = query.where(networks.c.id.in_(ids))
    return tuple(Network(**row._mapping) for row in tx.execute(query))


def ranges(tx: Connection) -> tuple[str, ...]:
    """Return all networks' IPv4 and IPv6 ranges."""
    rows = tx.execute(sa.select(networks.c.cidr, networks.c.cidr_v6)).all()
    return tuple(cidr for row in rows for cidr in row if cidr)


def get(tx: Connection, uuid: str, scope: Scope) -> Network:
    """Return a network; reads all networks of the scope. Raises network.NotFound if it does not exist or is outside the
    scope."""
    found = [network for network in select(tx, scope) if network.uuid == uuid]
    if not found:
        raise errors.network.NotFound(network_id=uuid)
    return found[0]


def not_free(tx: Connection, addresses: Sequence[str]) -> set[tuple[str, str]]:
    """Return (network UUID, address) of the addresses that are reserved or in use."""
    rows = tx.execute(sa.select(networks.c.uuid, fixed_addresses.c.address)
                      .join_from(fixed_addresses, networks, networks.c.id == fixed_addresses.c.network_id)
                      .where(fixed_addresses.c.address.in_(addresses), sa.or_(
                          fixed_addresses.c.reserved == sa.true(), fixed_addresses.c.server_uuid.is_not(None),
                          fixed_addresses.c.host.is_not(None), fixed_addresses.c.left_at.is_not(None))))
    return {(row.uuid, row.address) for row in rows}


def insert(tx: Connection, planned: Sequence[addressing.PlannedNetwork]) -> None:
    """Insert networks with their pools, with one statement for each thousand addresses."""
    for plan in planned:
        values = {name: getattr(plan.network, name) for name in Network.__struct_fields__
                  if name in networks.c and name not in ("id", "created_at", "updated_at")}
        made = tx.execute(sa.insert(networks).values(**values, created_at=utc_now()))
        key = new_key(made)
        rows = [{"network_id": key, "address": one.address, "reserved": one.reserved} for one in plan.pool]
        for start in range(0, len(rows), 1000):
            insert_all(tx, fixed_addresses, rows[start:start + 1000])


def delete(tx: Connection, uuid: str) -> set[str]:
    """Delete a network; return the hosts where it may still be configured. Raises network.HasProject, or network.InUse
    while servers have addresses in it."""
    row = tx.execute(sa.select(*_FIELDS).where(networks.c.uuid == uuid).with_for_update()).one_or_none()
    if row is None:
        raise errors.network.NotFound(network_id=uuid)
    if row.project_id is not None:
        raise errors.network.HasProject(project_id=row.project_id)
    key = row.id
    hosts = _standing_on(tx, Network(**row._mapping))
    # Delete the free addresses first, which waits for concurrent allocations; the remaining rows are in use.
    tx.execute(sa.delete(fixed_addresses).where(fixed_addresses.c.network_id == key,
                                                fixed_addresses.c.server_uuid.is_(None)))
    count = tx.execute(sa.select(sa.func.count()).where(fixed_addresses.c.network_id == key)).scalar_one()
    count = count or tx.execute(sa.select(sa.func.count()).where(vifs.c.network_id == key)).scalar_one()
    if count:
        raise errors.network.InUse(network_id=uuid, count=count)
    tx.execute(sa.delete(networks).where(networks.c.id == key))
    return hosts


def _standing_on(tx: Connection, network: Network) -> set[str]:
    """Return the network's host. For a multi-host network: the hosts with their own address, or all if it uses none."""
    if not network.multi_host:
        return {network.host} if network.host is not None else set()
    if network.share_address or not network.cidr:
        found = sa.select(services.c.host).where(services.c.binary == "nova-network", services.c.deleted == 0)
    else:
        found = sa.select(fixed_addresses.c.host).where(fixed_addresses.c.network_id == network.id,
                                                        fixed_addresses.c.host.is_not(None))
    return set(tx.execute(found).scalars())


def any_served(tx: Connection, host: str, uuids_: Sequence[str]) -> bool:
    """Return whether the host serves one of these networks."""
    return tx.execute(sa.select(networks.c.id).where(networks.c.uuid.in_(uuids_), networks.c.host == host)
                      .limit(1)).first() is not None


def claim_unhosted(tx: Connection, host: str) -> int:
    """Assign all networks without a host, and their floating IPs, to this network host; return their number."""
    taken = tx.execute(sa.update(networks).where(networks.c.host.is_(None), networks.c.multi_host == sa.false())
                       .values(host=host, updated_at=utc_now())).rowcount
    if taken:
        serve_floating(tx, host)
    return taken


def serve_floating(tx: Connection, host: str | None, uuid: str | None = None) -> None:
    """Move floating IPs to the host that serves their network: for this network, or for all networks that the host
    serves."""
    where = networks.c.host == host if uuid is None else networks.c.uuid == uuid
    mine = (sa.select(fixed_addresses.c.id)
            .join_from(fixed_addresses, networks, networks.c.id == fixed_addresses.c.network_id)
            .where(networks.c.multi_host == sa.false(), where))
    tx.execute(sa.update(floating_addresses).where(floating_addresses.c.fixed_address_id.in_(mine))
               .values(host=host, updated_at=utc_now()))


class _State:
    """The state of one network, assembled row by row."""

    def __init__(self, network: Network, version: int) -> None:
        self.network, self.version = network, version
        self.guests: list[tuple[str | None, DhcpHost]] = []  # with the guest's host in a multi-host network
        self.own: dict[str, str] = {}  # host -> its own address
        self.floating: list[tuple[str | None, FloatingOnHost]] = []  # with the fixed address's host, as above

    def per_host(self, named: Iterable[str]) -> Iterator[tuple[str | None, NetworkOnHost]]:
        """Yield (host, the state it needs); for a multi-host network, one for each host that serves guests. ``named``:
        hosts whose last guest may just have left. Hosts without an own address are included only through ``named``, to
        learn that no guest is left. (Hosts that lost their own address were updated before.)"""
        if not self.network.multi_host:
            addresses = tuple(guest for _at, guest in self.guests)
            yield self.network.host, NetworkOnHost(network=self.network, addresses=addresses, version=self.version,
                                                   floating=tuple(one for _at, one in self.floating))
            return
        shared = self.network.dhcp_server or self.network.gateway if self.network.share_address else None
        apart = not (self.network.share_address or self.network.cidr is None)
        for host in sorted({*self.own, *(at for at, _guest in self.guests if at), *(() if apart else named)}):
            addresses = tuple(guest if at == host else msgspec.structs.replace(guest, elsewhere=True)
                              for at, guest in self.guests)
            yield host, NetworkOnHost(network=self.network, addresses=addresses, version=self.version,
                                      host_address=shared or self.own.get(host),
                                      floating=tuple(one for at, one in self.floating if at == host))


_earlier = vifs.alias("earlier")
#: Condition that an interface is its server's first.
_FIRST = ~sa.exists().where(_earlier.c.server_uuid == vifs.c.server_uuid, _earlier.c.id < vifs.c.id).correlate(vifs)


def states(tx: Connection, host: str | None = None, uuids_: Sequence[str] | None = None,
           ids: Sequence[int] | None = None, named: Mapping[str, Iterable[str]] | None = None,
           ) -> list[tuple[str | None, NetworkOnHost]]:
    """Return (serving host, network with all its allocated addresses), in one statement; a multi-host network has one
    for each host. Restricted to a host, UUIDs or keys. ``named``: hosts of multi-host networks to include in any case.
    """
    columns = [*_FIELDS, networks.c.version]
    query = (sa.select(*columns, fixed_addresses.c.address, fixed_addresses.c.leased, fixed_addresses.c.server_uuid,
                       fixed_addresses.c.host.label("at"), vifs.c.uuid.label("vif"), vifs.c.mac, servers.c.hostname,
                       _FIRST.label("first"), floating_addresses.c.address.label("floating"),
                       floating_addresses.c.interface)
             .join_from(networks, fixed_addresses, sa.and_(
                 fixed_addresses.c.network_id == networks.c.id,
                 sa.or_(fixed_addresses.c.server_uuid.is_not(None), OWN)), isouter=True)
             .join(vifs, vifs.c.uuid == fixed_addresses.c.vif_uuid, isouter=True)
             .join(servers, servers.c.uuid == fixed_addresses.c.server_uuid, isouter=True)
             .join(floating_addresses, floating_addresses.c.fixed_address_id == fixed_addresses.c.id, isouter=True)
             .order_by(networks.c.id, fixed_addresses.c.id, floating_addresses.c.id))
    if host is not None:
        query = query.where(sa.or_(networks.c.host == host, sa.and_(
            networks.c.multi_host == sa.true(), networks.c.id.in_(_with_rows_of(host)))))
    if uuids_ is not None:
        query = query.where(networks.c.uuid.in_(uuids_))
    if ids is not None:
        query = query.where(networks.c.id.in_(ids))
    found: dict[str, _State] = {}
    for row in tx.execute(query):
        fields = row._mapping
        if row.uuid not in found:
            found[row.uuid] = _State(Network(**{name: fields[name] for name in Network.__struct_fields__
                                                 if name in fields}), row.version)
        state = found[row.uuid]
        if row.server_uuid is None and row.at is not None:
            state.own[row.at] = row.address
        elif row.address is not None and row.mac is not None:
            if row.floating is not None:
                state.floating.append((row.at, FloatingOnHost(address=row.floating, fixed_address=row.address,
                                                              interface=row.interface)))
                if state.guests and state.guests[-1][1].address == row.address:  # the guest has several floating IPs
                    continue
            state.guests.append((row.at, DhcpHost(
                network_uuid=row.uuid, mac=row.mac, address=row.address, hostname=row.hostname or "",
                server_uuid=row.server_uuid, leased=row.leased, vif_id=row.vif, default_route=bool(row.first))))
    return [(at, state) for uuid, one in found.items() for at, state in one.per_host((named or {}).get(uuid, ()))
            if host is None or at == host]


def _with_rows_of(host: str) -> sa.Select[int]:
    """Select the keys of networks where the host has its own address, or guests with addresses."""
    return sa.select(fixed_addresses.c.network_id).where(fixed_addresses.c.host == host,
                                                         fixed_addresses.c.left_at.is_(None))


def on_host(tx: Connection, host: str | None = None, uuids_: Sequence[str] | None = None,
            ids: Sequence[int] | None = None) -> tuple[NetworkOnHost, ...]:
    """Return the network states of :func:`states`, without the hosts."""
    return tuple(state for _host, state in states(tx, host, uuids_, ids))


def stamped(tx: Connection, hosts: Mapping[str, Iterable[str]]) -> list[tuple[str | None, NetworkOnHost]]:
    """Return networks with their addresses under a new version, for these hosts in any case. Data read after the row
    lock is newer than any read under an earlier version, so that the order of versions is the order of contents."""
    for uuid in sorted(hosts):
        tx.execute(sa.update(networks).where(networks.c.uuid == uuid).values(version=networks.c.version + 1))
    return states(tx, uuids_=sorted(hosts), named=hosts)


def set_vpn(tx: Connection, ids: Sequence[int], address: str, port: int) -> None:
    """Set the public address and port of the VPN server of these networks."""
    tx.execute(sa.update(networks).where(networks.c.id.in_(ids)).values(
        vpn_public_address=address, vpn_public_port=port, updated_at=utc_now()))


__all__ = ["Terms", "AddressRequest", "any_served", "bind", "claim_unhosted", "delete", "drop_interface", "follow",
           "get",
           "insert", "not_free", "note_lease", "on_host", "select", "serve_floating", "set_vpn", "stamped", "states",
           "take_interface", "unbind"]
