"""Workflow runners: each has a lease, and its open operations are orphans once the lease ends."""

from __future__ import annotations

from collections.abc import Container

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.cell import operations, runners
from nova.db.server.states import ENTRY_COLUMNS, PARKED_S, Entry
from nova.db.sql.types import later, new_key, utc_now


def new_runner(tx: Connection, name: str, lease_s: int) -> int:
    """Insert a runner, whose lease ends ``lease_s`` seconds from now by the database's clock; return its id."""
    key = tx.execute(sa.insert(runners).values(name=name, lease_until=later(lease_s)))
    return new_key(key)


def renew(tx: Connection, runner_id: int, lease_s: int) -> bool:
    """Renew the lease. False if it has expired or was taken; this runner must then issue no more orders."""
    return tx.execute(sa.update(runners).where(runners.c.id == runner_id, runners.c.lease_until > utc_now())
                      .values(lease_until=later(lease_s))).rowcount == 1


def end_runner(tx: Connection, runner_id: int) -> None:
    """Release the lease immediately (clean shutdown): other runners may take the remaining operations."""
    tx.execute(sa.delete(runners).where(runners.c.id == runner_id))


def drop_dead_runners(tx: Connection) -> None:
    """Delete runners whose lease ended over an hour ago; their orphans are found without these rows."""
    tx.execute(sa.delete(runners).where(runners.c.lease_until < later(-3600)))



def orphans(tx: Connection, mine: int, running: Container[int], limit: int = 500) -> tuple[Entry, ...]:
    """Return the open operations whose runner has no valid lease, and those of ``mine`` that are not ``running`` (by
    id)."""
    alive = sa.select(runners.c.id).where(runners.c.lease_until > utc_now())
    # Long operations that are running are not read: otherwise many of them could hide an orphan behind the limit.
    old = tx.execute(sa.select(operations.c.id).where(
        operations.c.finished_at.is_(None), operations.c.runner_id == mine, operations.c.updated_at < later(-PARKED_S)))
    parked = [key for key in old.scalars() if key not in running][:limit]
    rows = tx.execute(sa.select(*ENTRY_COLUMNS).where(
        operations.c.finished_at.is_(None),
        sa.or_(operations.c.id.in_(parked), sa.and_(operations.c.runner_id != mine,
                                                    operations.c.runner_id.not_in(alive))))
        .order_by(operations.c.id).limit(limit))
    return tuple(Entry(**row._mapping) for row in rows)
