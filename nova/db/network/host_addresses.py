"""Hosts' own addresses in multi-host networks, where each host is its guests' gateway and DHCP server."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova import errors
from nova.db.models.cell import fixed_addresses, networks
from nova.db.network import network_quota
from nova.db.network.free_addresses import OWN, pick
from nova.db.sql.types import later, utc_now
from nova.model.network.networks import Network


def own_addresses(tx: Connection, rows: Sequence[Network], hosts: set[str]) -> dict[tuple[int, str | None], str]:
    """Return (network, host) -> the host's address for its gateway and DHCP server there; allocated on first use.

    Existing ones are locked: a concurrent release waits, and then sees that they are in use.
    """
    own: dict[tuple[int, str | None], str] = {}
    many = [row for row in rows if row.multi_host and row.cidr]
    for row in many:
        if row.share_address:
            own.update({(row.id, host): row.dhcp_server or row.gateway or "" for host in hosts})
    apart = [row for row in many if not row.share_address]
    if not apart or not hosts:
        return own
    own.update(_own_now(tx, apart, hosts))
    for host in sorted(hosts):
        missing = [row for row in apart if (row.id, host) not in own]
        if not missing:
            continue
        network_quota.lock_owner(tx, f"host:{host}")  # two concurrent first guests share one address
        own.update(_own_now(tx, missing, {host}))
        for row in missing:
            if (row.id, host) in own:
                continue
            picked = pick(tx, row.id, 1)
            if not picked:
                raise errors.network.NoAddress(network=row.uuid)
            tx.execute(sa.update(fixed_addresses).where(fixed_addresses.c.id == picked[0].id)
                       .values(host=host, updated_at=utc_now()))
            own[(row.id, host)] = picked[0].address
    return own


def _own_now(tx: Connection, rows: Sequence[Network], hosts: set[str]) -> dict[tuple[int, str | None], str]:
    found = tx.execute(sa.select(fixed_addresses.c.network_id, fixed_addresses.c.host, fixed_addresses.c.address)
                       .where(OWN, fixed_addresses.c.network_id.in_([row.id for row in rows]),
                              fixed_addresses.c.host.in_(sorted(hosts))).with_for_update())
    return {(row.network_id, row.host): row.address for row in found}


def release_own(tx: Connection, network_uuids: Sequence[str], host: str) -> None:
    """Release a host's own addresses in networks where it has no guests any more."""
    own = list(tx.execute(sa.select(fixed_addresses.c.id, fixed_addresses.c.network_id).where(
        OWN, fixed_addresses.c.host == host, fixed_addresses.c.network_id.in_(
            sa.select(networks.c.id).where(networks.c.uuid.in_(network_uuids)))).with_for_update()))
    if not own:
        return
    busy = set(tx.execute(sa.select(fixed_addresses.c.network_id).where(
        fixed_addresses.c.host == host, fixed_addresses.c.server_uuid.is_not(None),
        fixed_addresses.c.network_id.in_([row.network_id for row in own]))).scalars())
    free = [row.id for row in own if row.network_id not in busy]
    if free:
        tx.execute(sa.update(fixed_addresses).where(fixed_addresses.c.id.in_(free))
                   .values(host=None, updated_at=utc_now()))


def unused(tx: Connection, older_than_s: int) -> list[tuple[str, str]]:
    """Return (network UUID, host) of own addresses allocated more than ``older_than_s`` seconds ago that serve no
    guest."""
    guests = fixed_addresses.alias("guests")
    served = sa.exists().where(guests.c.network_id == fixed_addresses.c.network_id,
                               guests.c.host == fixed_addresses.c.host, guests.c.server_uuid.is_not(None))
    rows = tx.execute(sa.select(networks.c.uuid, fixed_addresses.c.host)
                      .join_from(fixed_addresses, networks, networks.c.id == fixed_addresses.c.network_id)
                      .where(OWN, fixed_addresses.c.updated_at < later(-older_than_s), ~served))
    return [(row.uuid, row.host) for row in rows]
