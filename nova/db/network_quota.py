"""The lock under which what nova-network gives out is counted: its rows are the cell's, and so is their lock."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.cell import network_quota_locks
from nova.db.statements import insert_ignoring

_ONE_TURN = (sa.update(network_quota_locks).where(network_quota_locks.c.owner == sa.bindparam("whose"))
             .values(turns=network_quota_locks.c.turns + 1))


def lock_owner(tx: Connection, owner: str) -> None:
    """Wait for the project's row: the first statement of whatever its quota counts (as ``nova.db.ledger`` does)."""
    if not tx.execute(_ONE_TURN, {"whose": owner}).rowcount:
        insert_ignoring(tx, network_quota_locks, [{"owner": owner, "turns": 0}])
        tx.execute(_ONE_TURN, {"whose": owner})


__all__ = ["lock_owner"]
