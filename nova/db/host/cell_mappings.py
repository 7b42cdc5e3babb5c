"""What was recorded of cells, for the tools that ask for it: no daemon reads it."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.api import cell_mappings, providers
from nova.db.sql.statements import insert_ignoring, update_where
from nova.db.sql.types import utc_now
from nova.model.host.cells import CellMapping

_COLUMNS = [cell_mappings.c[name] for name in CellMapping._fields]


def by_uuid(tx: Connection) -> dict[str, CellMapping]:
    """All of them: there are two at most."""
    found = [CellMapping(**row._mapping) for row in tx.execute(sa.select(*_COLUMNS))]
    return {one.uuid: one for one in found}


def hosts_report(tx: Connection) -> bool:
    """Whether a host has reported what it has, as each does that serves servers."""
    return tx.execute(sa.select(providers.c.id).limit(1)).first() is not None


def add(tx: Connection, mapping: CellMapping) -> bool:
    """False: one of that uuid is there, and stays as it is."""
    return insert_ignoring(tx, cell_mappings, [{**mapping._asdict(), "created_at": utc_now()}]) > 0


def put(tx: Connection, mapping: CellMapping) -> None:
    """Make its row, or write it anew. May be called twice."""
    if not add(tx, mapping):
        values = mapping._asdict()
        update_where(tx, cell_mappings, {"uuid": values.pop("uuid")}, values)


def delete(tx: Connection, uuid: str) -> None:
    """One that is not there is no error."""
    tx.execute(sa.delete(cell_mappings).where(cell_mappings.c.uuid == uuid))
