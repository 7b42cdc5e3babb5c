"""Locks of servers' rows for several requests that share a transaction."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.cell import servers
from nova.db.sql.engine import DatabaseBusy

_UNLOCKED = (sa.select(servers.c.uuid).where(servers.c.uuid.in_(sa.bindparam("uuids", expanding=True)))
             .order_by(servers.c.uuid).with_for_update(skip_locked=True))


def lock_together(tx: Connection, uuids: Collection[str]) -> None:
    """Lock the rows of several requests' servers, in one order, without waiting: a row that another transaction holds
    must not delay the other requests. Raises DatabaseBusy if a row is locked or missing; each request then waits
    alone."""
    wanted = set(uuids)
    if len(tx.execute(_UNLOCKED, {"uuids": sorted(wanted)}).all()) < len(wanted):
        raise DatabaseBusy()
