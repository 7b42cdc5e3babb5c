"""Adjustments of restored databases to hosts that kept running: hosts have seen newer epochs, and ids were assigned
that no row has."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable, Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.api import ledger
from nova.db.models.cell import cleanups, console_tokens, operations, runners, servers
from nova.db.quota.ledger import in_cells
from nova.db.schema.backup import TABLES, Databases
from nova.db.sql.engine import Database
from nova.model.base import utcnow

SKIPPED = 1_000_000  # ids that may have been assigned since the backup
_SINCE = datetime.datetime(2020, 1, 1)
_LARGEST = 2**61  # larger epochs mean "closed for ever"


def adapt(databases: Databases, cell: str) -> int:
    """Raise epochs and ids, once, after all rows are restored; return the number added to the epochs. ``cell``: the
    UUID of the restored cell; the ledger's epochs of other cells, which were not restored, stay. Empty: of all cells.

    Each host keeps the newest epoch that it has seen of a server and rejects older ones. The seconds since 2020 are
    added, which makes epochs newer than any used since the backup, and than those of an earlier restore. Server ids
    name guests on hypervisors, and operation ids distinguish orders: new ones begin after all that may have been
    assigned. Leases and console tokens are deleted.
    """
    jump = int((utcnow() - _SINCE).total_seconds())
    for schema, database in databases.items():
        database.transact(functools.partial(_adapt, schema, jump, cell))
        for table in TABLES[schema].sorted_tables:
            if table.autoincrement_column is not None:
                _skip_numbers(database, table)
    return jump


_EPOCHS = {"api": (ledger.c.epoch,), "cell": (servers.c.epoch, operations.c.epoch, cleanups.c.epoch)}
#: The rows of them that are about servers of one cell; without an entry, all rows are.
_OF_CELL: Mapping[str, Callable[[str], sa.ColumnElement[bool]]] = {"api": in_cells}
_SHORT_LIVED: Mapping[str, tuple[sa.Table, ...]] = {"api": (), "cell": (runners, console_tokens)}


def _adapt(schema: str, jump: int, cell: str, tx: Connection) -> None:
    mine = _OF_CELL[schema](cell) if cell and schema in _OF_CELL else sa.true()
    for column in _EPOCHS[schema]:
        _raise(tx, column, jump, mine)
    for table in _SHORT_LIVED[schema]:
        tx.execute(sa.delete(table))


def _raise(tx: Connection, column: sa.Column[int], jump: int, which: sa.ColumnElement[bool]) -> None:
    assert isinstance(column.table, sa.Table)
    tx.execute(sa.update(column.table).where(column < _LARGEST, which).values({column.name: column + jump}))


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
