"""Rows that are locks: whoever has written a row of a name first, has it until the transaction ends.

A row is made where it is missing, so any row may go at any time: who ever had one would leave it for ever.
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

#: Schema -> its table of such rows.
TABLES = {"api": quota_locks, "cell": network_quota_locks}
LONGEST = 255  # letters of a name; the database must not cut off what is asked for again
TRIES = 8


@functools.cache
def _one_turn(table: sa.Table) -> sa.Update:
    return sa.update(table).where(table.c.owner == sa.bindparam("whose")).values(turns=table.c.turns + 1)


def lock(tx: Connection, table: sa.Table, owner: str) -> None:
    """Wait for the owner's row of ``table``. DatabaseBusy: it goes as often as it is made."""
    whose = owner[:LONGEST]
    for _try in range(TRIES):
        if tx.execute(_one_turn(table), {"whose": whose}).rowcount:
            return
        insert_ignoring(tx, table, [{"owner": whose, "turns": 0}])
    raise DatabaseBusy()


def forget(tx: Connection, table: sa.Table, after: str, limit: int) -> str | None:
    """Remove the next rows behind ``after`` that nobody has now; the last of them. None: there are no more."""
    page: list[AnyColumn] = list(tx.execute(sa.select(table.c.owner).where(table.c.owner > after).order_by(
        table.c.owner).limit(limit).with_for_update(skip_locked=True)).scalars())
    if not page:
        return None
    tx.execute(sa.delete(table).where(table.c.owner.in_(page)))
    return str(page[-1])
