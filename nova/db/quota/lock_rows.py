"""Rows that serve as locks: the first transaction to write a named row holds it until it ends.

A missing row is inserted on demand, so any row may be deleted at any time; otherwise each owner would leave one for
ever.
"""

from __future__ import annotations

import functools

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.api import quota_locks
from nova.db.models.cell import network_quota_locks
from nova.db.sql.engine import DatabaseBusy
from nova.db.sql.statements import insert_ignoring
from nova.db.sql.types import AnyColumn

#: Schema -> its table of lock rows.
TABLES = {"api": quota_locks, "cell": network_quota_locks}
LONGEST = 255  # letters of a name; the database must not truncate a name that is looked up later
TRIES = 8


@functools.cache
def _one_turn(table: sa.Table) -> sa.Update:
    return sa.update(table).where(table.c.owner == sa.bindparam("whose")).values(turns=table.c.turns + 1)


def lock(tx: Connection, table: sa.Table, owner: str) -> None:
    """Lock the owner's row of ``table``. Raises DatabaseBusy if the row is deleted after each insert."""
    whose = owner[:LONGEST]
    for _try in range(TRIES):
        if tx.execute(_one_turn(table), {"whose": whose}).rowcount:
            return
        insert_ignoring(tx, table, [{"owner": whose, "turns": 0}])
    raise DatabaseBusy()


def forget(tx: Connection, table: sa.Table, after: str, limit: int) -> str | None:
    """Delete the next unlocked rows after ``after``; return the last one's name, or None if there are no more."""
    page: list[AnyColumn] = list(tx.execute(sa.select(table.c.owner).where(table.c.owner > after).order_by(
        table.c.owner).limit(limit).with_for_update(skip_locked=True)).scalars())
    if not page:
        return None
    tx.execute(sa.delete(table).where(table.c.owner.in_(page)))
    return str(page[-1])
