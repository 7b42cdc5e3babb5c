"""Adjustments of restored databases to hosts that kept running: hosts have seen newer epochs, and ids were assigned
that no row has."""

from __future__ import annotations

import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.api import ledger
from nova.db.models.cell import cleanups, console_tokens, operations, runners, servers
from nova.db.schema.backup import TABLES, Databases
from nova.db.sql.engine import Database
from nova.model.base import utcnow

SKIPPED = 1_000_000  # ids that may have been assigned since the backup
_SINCE = datetime.datetime(2020, 1, 1)
_LARGEST = 2**61  # larger epochs mean "closed for ever"


def adapt(databases: Databases) -> int:
    """Raise epochs and ids, once, after all rows are restored; return the number added to the epochs.

    Each host keeps the newest epoch that it has seen of a server and rejects older ones. The seconds since 2020 are
    added, which makes epochs newer than any used since the backup, and than those of an earlier restore. Server ids
    name guests on hypervisors, and operation ids distinguish orders: new ones begin after all that may have been
    assigned. Leases and console tokens are deleted.
    """
    jump = int((utcnow() - _SINCE).total_seconds())
    databases.api.transact(lambda tx: _raise(tx, ledger.c.epoch, jump))
    databases.cell.transact(lambda tx: _adapt_cell(tx, jump))
    for schema, metadata in TABLES.items():
        database = databases.of(schema)
        for table in metadata.sorted_tables:
            if table.autoincrement_column is not None:
                _skip_numbers(database, table)
    return jump


def _adapt_cell(tx: Connection, jump: int) -> None:
    for column in (servers.c.epoch, operations.c.epoch, cleanups.c.epoch):
        _raise(tx, column, jump)
    for table in (runners, console_tokens):
        tx.execute(sa.delete(table))


def _raise(tx: Connection, column: sa.Column[int], jump: int) -> None:
    assert isinstance(column.table, sa.Table)
    tx.execute(sa.update(column.table).where(column < _LARGEST).values({column.name: column + jump}))


def _skip_numbers(database: Database, table: sa.Table) -> None:
    column = table.autoincrement_column
    assert column is not None

    def skip(tx: Connection) -> None:
        following = (tx.execute(sa.select(sa.func.max(column))).scalar() or 0) + SKIPPED
        if database.dialect == "postgresql":
            tx.execute(sa.text("SELECT setval(pg_get_serial_sequence(:name, :column), :number)"),
                       {"name": table.name, "column": column.name, "number": following})
        elif database.dialect == "sqlite":
            changed = tx.execute(sa.text("UPDATE sqlite_sequence SET seq = :number WHERE name = :name"),
                                 {"name": table.name, "number": following}).rowcount
            if not changed:
                tx.execute(sa.text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :number)"),
                           {"name": table.name, "number": following})
        else:
            tx.exec_driver_sql(f"ALTER TABLE `{table.name}` AUTO_INCREMENT = {following}")
    database.transact(skip)
