"""The lock under which what nova-network gives out is counted: its rows are the cell's, and so is their lock."""

from __future__ import annotations

from sqlalchemy.engine import Connection

from nova.db.models.cell import network_quota_locks
from nova.db.quota import lock_rows


def lock_owner(tx: Connection, owner: str) -> None:
    """Wait for the project's row: the first statement of whatever its quota counts, as in ``nova.db.quota.ledger``."""
    lock_rows.lock(tx, network_quota_locks, owner)


__all__ = ["lock_owner"]
