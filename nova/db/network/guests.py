"""Guests by address, for the metadata service: networks may use the same addresses."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.cell import fixed_addresses, networks, servers

MOST = 20  # limit of networks checked for one address; clouds do not reach it


class Holder(NamedTuple):
    """A live server with the address, and the host that serves its network."""

    server_uuid: str
    served_by: str | None


def holders(tx: Connection, address: str) -> tuple[Holder, ...]:
    """Return the servers that have the address. A released address has none, even if its lease has not ended."""
    served_by = sa.case((networks.c.multi_host == sa.true(), servers.c.host), else_=networks.c.host)
    rows = tx.execute(
        sa.select(servers.c.uuid, served_by.label("served_by"))
        .join_from(fixed_addresses, servers, servers.c.uuid == fixed_addresses.c.server_uuid)
        .join(networks, networks.c.id == fixed_addresses.c.network_id)
        .where(fixed_addresses.c.address == address, fixed_addresses.c.left_at.is_(None), servers.c.deleted == 0)
        .order_by(fixed_addresses.c.id).limit(MOST))
    return tuple(Holder(row.uuid, row.served_by) for row in rows)
