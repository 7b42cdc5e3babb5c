"""nova-network's networks as changed by its API and nova-manage: owners, serving hosts, single addresses."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova import errors, failures
from nova.db.models.cell import fixed_addresses, networks, servers
from nova.db.network import network_quota
from nova.db.network.addresses import FIELDS
from nova.db.sql.types import utc_now
from nova.model.network.networks import FixedAddressRow, Network


def first_of_project(tx: Connection, project_id: str) -> Network:
    """Return a network of the project. If it has none, allocate the oldest unowned VLAN network; concurrent first
    servers share one. Raises network.NoneFree."""
    network_quota.lock_owner(tx, project_id)
    row = tx.execute(sa.select(*FIELDS).where(networks.c.project_id == project_id)
                     .order_by(networks.c.priority, networks.c.id).limit(1)).one_or_none()
    return Network(**row._mapping) if row is not None else _take(tx, project_id)


def add_to_project(tx: Connection, uuid: str | None, project_id: str) -> Network:
    """Allocate that network, or any unowned one, to the project. Raises network.NotFound, network.OfAnother,
    network.NoneFree."""
    network_quota.lock_owner(tx, project_id)
    if uuid is None:
        return _take(tx, project_id)
    row = tx.execute(sa.select(networks.c.id, networks.c.project_id).where(networks.c.uuid == uuid).with_for_update()
                     ).one_or_none()
    if row is None:
        raise errors.network.NotFound(network_id=uuid)
    if row.project_id not in (None, project_id):
        raise errors.network.OfAnother(network_id=uuid, project_id=row.project_id)
    return _write(tx, row.id, project_id=project_id)


def _take(tx: Connection, project_id: str) -> Network:
    free = (sa.select(networks.c.id).where(networks.c.project_id.is_(None), networks.c.vlan.is_not(None))
            .order_by(networks.c.id).limit(1))
    key = tx.execute(free.with_for_update(skip_locked=True)).scalar_one_or_none()
    if key is None:  # a row skipped as locked may be free again by now
        key = tx.execute(free.with_for_update()).scalar_one_or_none()
    if key is None:
        raise errors.network.NoneFree(project_id=project_id)
    return _write(tx, key, project_id=project_id)


def change(tx: Connection, uuid: str, fields: Mapping[str, object]) -> tuple[Network, Network]:
    """Update a network; return it before and after. Raises network.NotFound."""
    row = tx.execute(sa.select(*FIELDS).where(networks.c.uuid == uuid).with_for_update()).one_or_none()
    if row is None:
        raise errors.network.NotFound(network_id=uuid)
    return Network(**row._mapping), _write(tx, row.id, **fields)


def _write(tx: Connection, key: int, **fields: object) -> Network:
    if fields:
        tx.execute(sa.update(networks).where(networks.c.id == key).values(**fields, updated_at=utc_now()))
    return Network(**tx.execute(sa.select(*FIELDS).where(networks.c.id == key)).one()._mapping)


def owned(tx: Connection, project_id: str) -> int:
    """Return the number of the project's networks."""
    return int(tx.execute(sa.select(sa.func.count()).select_from(networks)
                          .where(networks.c.project_id == project_id)).scalar_one())


# -- single addresses

_ROWS = (sa.select(fixed_addresses.c.address, networks.c.uuid.label("network_uuid"), networks.c.cidr,
                   fixed_addresses.c.reserved, fixed_addresses.c.leased, fixed_addresses.c.server_uuid,
                   servers.c.hostname, sa.func.coalesce(servers.c.host, fixed_addresses.c.host).label("host"))
         .join_from(fixed_addresses, networks, networks.c.id == fixed_addresses.c.network_id)
         .join(servers, servers.c.uuid == fixed_addresses.c.server_uuid, isouter=True)
         .order_by(networks.c.id, fixed_addresses.c.id))


def fixed_rows(tx: Connection, host: str | None) -> tuple[FixedAddressRow, ...]:
    """Return the addresses of all pools; for a host, those of networks that it serves and those on it."""
    query = _ROWS
    if host is not None:
        query = query.where(sa.or_(networks.c.host == host, fixed_addresses.c.host == host))
    return tuple(FixedAddressRow(**row._mapping) for row in tx.execute(query))


def fixed_row(tx: Connection, address: str) -> FixedAddressRow:
    """Return one address. Raises network.NoSuchAddress, network.BadAddress."""
    row = tx.execute(_ROWS.where(fixed_addresses.c.address == checked(address)).limit(1)).one_or_none()
    if row is None:
        raise errors.network.NoSuchAddress(address=address)
    return FixedAddressRow(**row._mapping)


def reserve(tx: Connection, address: str, reserved: bool) -> None:
    """Set or clear an address's reservation. Raises network.NoSuchAddress, network.BadAddress."""
    if not tx.execute(sa.update(fixed_addresses).where(fixed_addresses.c.address == checked(address))
                      .values(reserved=reserved, updated_at=utc_now())).rowcount:
        raise errors.network.NoSuchAddress(address=address)


def checked(address: str) -> str:
    """Return the address in canonical form. Raises network.BadAddress."""
    with failures.replaced(ValueError, lambda _: errors.network.BadAddress(address=address[:60])):
        return str(ipaddress.ip_address(address))
