"""The lock for quotas of nova-network's resources, in the cell's database like the rows that it counts."""

from __future__ import annotations

from sqlalchemy.engine import Connection

from nova.db.models.cell import network_quota_locks
from nova.db.quota import lock_rows


def lock_owner(tx: Connection, owner: str) -> None:
    """Lock the project's row; the first statement of any change that its quota counts, as in
    ``nova.db.quota.ledger``."""
    lock_rows.lock(tx, network_quota_locks, owner)


__all__ = ["lock_owner"]
