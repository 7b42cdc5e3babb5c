"""Free addresses of nova-network's pools: selection and release.

An address is free if it is not reserved, is not a server's or a host's own, and has no lease left by a former server.
Selection skips rows locked by concurrent requests, so that no row becomes a hot spot.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.cell import fixed_addresses, networks, vifs
from nova.db.sql.types import later, utc_now

NOBODYS = sa.and_(fixed_addresses.c.server_uuid.is_(None), fixed_addresses.c.host.is_(None),
                  fixed_addresses.c.left_at.is_(None))
ALL_FREE = sa.and_(fixed_addresses.c.reserved == sa.false(), NOBODYS)
#: A host's own address in a multi-host network.
OWN = sa.and_(fixed_addresses.c.server_uuid.is_(None), fixed_addresses.c.host.is_not(None),
              fixed_addresses.c.left_at.is_(None))
FREED: dict[str, Any] = {"server_uuid": None, "vif_uuid": None, "leased": False, "host": None, "left_at": None}


class FreeAddress(NamedTuple):
    """A free fixed address: its key and the address."""

    id: int
    address: str


def pick(tx: Connection, network_id: int, count: int, named: Sequence[str] = ()) -> list[FreeAddress]:
    """Lock and return the named free addresses, and ``count`` others."""
    query = (sa.select(fixed_addresses.c.id, fixed_addresses.c.address)
             .where(fixed_addresses.c.network_id == network_id, ALL_FREE).order_by(fixed_addresses.c.id))
    found: list[sa.Row[int, str]] = []
    if named:
        found = list(tx.execute(query.where(fixed_addresses.c.address.in_(named)).with_for_update()))
    others = query.where(fixed_addresses.c.address.not_in(named)) if named else query
    for dialect in ("mysql", "mariadb"):  # without the hint it scans, and locks, all allocated addresses
        others = others.with_hint(fixed_addresses, "USE INDEX (ix_fixed_addresses_free)", dialect)
    picked = list(tx.execute(others.limit(count).with_for_update(skip_locked=True)))
    if len(picked) < count:  # rows skipped as locked may be free again by now
        picked = list(tx.execute(others.limit(count).with_for_update()))
    return list(map(FreeAddress._make, (*found, *picked)))


def reserved(tx: Connection, network_id: int, address: str) -> dict[str, int]:
    """Lock a reserved address that one server may use; return it with its row's key. Empty if it is in use."""
    rows = tx.execute(sa.select(fixed_addresses.c.id, fixed_addresses.c.address).where(
        fixed_addresses.c.network_id == network_id, fixed_addresses.c.address == address, NOBODYS).with_for_update())
    return {row.address: row.id for row in rows}


def release(tx: Connection, which: sa.ColumnElement[bool], keep_leased: bool) -> set[tuple[str, str | None]]:
    """Release these rows; with ``keep_leased``, leased ones (in networks with DHCP) become free when the lease ends."""
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
    """Free addresses released more than ``seconds`` ago, with any lease; return their number."""
    return tx.execute(sa.update(fixed_addresses).where(fixed_addresses.c.left_at < later(-seconds))
                      .values(leased=False, host=None, left_at=None, updated_at=utc_now())).rowcount


def note_lease(tx: Connection, host: str, address: str, mac: str, leased: bool) -> None:
    """Record dnsmasq's report on a lease in a network of this host; reports that match no row are ignored. The end of a
    lease frees an address that its server had released."""
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
