"""Which addresses of nova-network's pools are free, and how they become so.

One is free when it is neither reserved, nor a server's, nor a host's own, nor left under a lease that has not ended.
Who picks one does so past those that others are picking: no row is hot.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.cell import fixed_addresses, networks, vifs
from nova.db.sql.types import AnyColumn, AnyRow, later, utc_now

NOBODYS = sa.and_(fixed_addresses.c.server_uuid.is_(None), fixed_addresses.c.host.is_(None),
                  fixed_addresses.c.left_at.is_(None))
ALL_FREE = sa.and_(fixed_addresses.c.reserved == sa.false(), NOBODYS)
#: A host's own address in a multi-host network.
OWN = sa.and_(fixed_addresses.c.server_uuid.is_(None), fixed_addresses.c.host.is_not(None),
              fixed_addresses.c.left_at.is_(None))
FREED: dict[str, Any] = {"server_uuid": None, "vif_uuid": None, "leased": False, "host": None, "left_at": None}


def pick(tx: Connection, network_id: int, count: int, named: Sequence[str] = ()) -> list[AnyRow]:
    """The named free addresses and as many others, locked."""
    query = (sa.select(fixed_addresses.c.id, fixed_addresses.c.address)
             .where(fixed_addresses.c.network_id == network_id, ALL_FREE).order_by(fixed_addresses.c.id))
    found: list[AnyRow] = []
    if named:
        found = list(tx.execute(query.where(fixed_addresses.c.address.in_(named)).with_for_update()))
    others = query.where(fixed_addresses.c.address.not_in(named)) if named else query
    for dialect in ("mysql", "mariadb"):  # left to itself it walks, and locks, every address that is taken
        others = others.with_hint(fixed_addresses, "USE INDEX (ix_fixed_addresses_free)", dialect)
    picked = list(tx.execute(others.limit(count).with_for_update(skip_locked=True)))
    if len(picked) < count:  # what others were picking may be free again by now
        picked = list(tx.execute(others.limit(count).with_for_update()))
    return [*found, *picked]


def reserved(tx: Connection, network_id: int, address: str) -> dict[str, int]:
    """A reserved address that one server may have all the same, locked: itself with its row's key; empty: it has."""
    rows = tx.execute(sa.select(fixed_addresses.c.id, fixed_addresses.c.address).where(
        fixed_addresses.c.network_id == network_id, fixed_addresses.c.address == address, NOBODYS).with_for_update())
    return {row.address: row.id for row in rows}


def release(tx: Connection, which: AnyColumn, keep_leased: bool) -> set[tuple[str, str | None]]:
    """Free these rows; with ``keep_leased`` those with a lease (of networks with DHCP) wait for its end first."""
    held = list(tx.execute(sa.select(fixed_addresses.c.id, fixed_addresses.c.host, fixed_addresses.c.leased,
                                     networks.c.uuid, networks.c.enable_dhcp)
                           .join_from(fixed_addresses, networks, networks.c.id == fixed_addresses.c.network_id)
                           .where(which).with_for_update(of=fixed_addresses)))
    left = [row.id for row in held if keep_leased and row.leased and row.enable_dhcp]
    free = [row.id for row in held if row.id not in left]
    if free:
        tx.execute(sa.update(fixed_addresses).where(fixed_addresses.c.id.in_(free))
                   .values(**FREED, updated_at=utc_now()))
    if left:
        tx.execute(sa.update(fixed_addresses).where(fixed_addresses.c.id.in_(left))
                   .values(server_uuid=None, vif_uuid=None, left_at=utc_now(), updated_at=utc_now()))
    return {(row.uuid, row.host) for row in held}


def free_stale(tx: Connection, seconds: int) -> int:
    """Addresses that were left so long ago are free, whatever became of their leases; how many."""
    return tx.execute(sa.update(fixed_addresses).where(fixed_addresses.c.left_at < later(-seconds))
                      .values(leased=False, host=None, left_at=None, updated_at=utc_now())).rowcount


def note_lease(tx: Connection, host: str, address: str, mac: str, leased: bool) -> None:
    """dnsmasq's word on an address of a network of this host; what does not match changes nothing. The end of a lease
    frees an address that was left under it."""
    mine = sa.or_(fixed_addresses.c.network_id.in_(sa.select(networks.c.id).where(networks.c.host == host)),
                  sa.and_(fixed_addresses.c.host == host, fixed_addresses.c.network_id.in_(
                      sa.select(networks.c.id).where(networks.c.multi_host == sa.true()))))
    owner = sa.select(vifs.c.uuid).where(vifs.c.mac == mac)
    changed = tx.execute(sa.update(fixed_addresses).where(
        fixed_addresses.c.address == address, mine, fixed_addresses.c.vif_uuid.in_(owner))
        .values(leased=leased, updated_at=utc_now())).rowcount
    if not changed and not leased:
        tx.execute(sa.update(fixed_addresses).where(
            fixed_addresses.c.address == address, mine, fixed_addresses.c.left_at.is_not(None))
            .values(leased=False, host=None, left_at=None, updated_at=utc_now()))
