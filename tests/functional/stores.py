"""The databases of a cloud, read behind the conductor's back: what is left of servers that are gone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from nova.db.models import api, cell
from nova.db.sql.engine import Connection, Database

#: What -> (schema, columns to show, condition): rows that must not be there once all servers are gone.
LEFTOVERS: dict[str, tuple[str, Any, Any]] = {
    "servers": ("cell", (cell.servers.c.uuid, cell.servers.c.vm_state, cell.servers.c.task_state, cell.servers.c.fault),
                cell.servers.c.deleted == 0),
    "open operations": ("cell", (cell.operations.c.server_uuid, cell.operations.c.action, cell.operations.c.step,
                                 cell.operations.c.direction, cell.operations.c.runner_id),
                        cell.operations.c.finished_at.is_(None)),
    "debts": ("cell", (cell.cleanups.c.host, cell.cleanups.c.server_uuid, cell.cleanups.c.step), sa.true()),
    "addresses": ("cell", (cell.fixed_addresses.c.address, cell.fixed_addresses.c.server_uuid),
                  cell.fixed_addresses.c.server_uuid.is_not(None)),
    "interfaces": ("cell", (cell.vifs.c.mac, cell.vifs.c.server_uuid), sa.true()),
    "ledger rows": ("api", (api.ledger.c.server_uuid, api.ledger.c.epoch), api.ledger.c.closed.is_(False)),
    "allocations": ("api", (api.allocations.c.provider_id, api.allocations.c.consumer, api.allocations.c.used),
                    sa.true())}


def rows_read(tx: Connection) -> int:
    """Rows and entries of indexes that this connection of MariaDB has read so far; the question itself costs some."""
    return sum(int(row[1]) for row in tx.exec_driver_sql("SHOW SESSION STATUS LIKE 'Handler_read%%'"))


class Stores:
    """The api database, the first cell's, and those of ``others``."""

    def __init__(self, urls: Mapping[str, str]) -> None:
        self.api, self.cell = Database(urls["api_database"], 1), Database(urls["database"], 1)
        self.others: list[Database] = []

    def rows(self, schema: str, query: Any) -> list[Any]:
        """Rows of the api database, or of all cells, one after the other."""
        return [row for database in ([self.api] if schema == "api" else [self.cell, *self.others])
                for row in self._rows(database, query)]

    @staticmethod
    def _rows(database: Database, query: Any) -> list[Any]:
        with database.reading() as connection:
            return list(connection.execute(query))

    def leftovers(self) -> dict[str, list[Any]]:
        return {what: self.rows(schema, sa.select(*columns).where(condition))
                for what, (schema, columns, condition) in LEFTOVERS.items()}

    def journal(self, uuid: str) -> list[Any]:
        """A server's operations, oldest first."""
        return self.rows("cell", sa.select(cell.operations).where(cell.operations.c.server_uuid == uuid)
                         .order_by(cell.operations.c.id))

    def used(self, project: str) -> dict[str, int]:
        """What the ledger counts for a project."""
        row = self.rows("api", sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(api.ledger.c.vcpus), 0))
                        .where(api.ledger.c.project_id == project, api.ledger.c.closed.is_(False)))[0]
        return {"instances": int(row[0]), "cores": int(row[1])}

    def close(self) -> None:
        self.api.dispose()
        self.cell.dispose()
