"""Recorded cell mappings, for tools that ask for them: no daemon reads them."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.api import cell_mappings, providers
from nova.db.sql.statements import insert_ignoring, update_where
from nova.db.sql.types import utc_now
from nova.model.host.cells import CellMapping

_COLUMNS = [cell_mappings.c[name] for name in CellMapping._fields]


def by_uuid(tx: Connection) -> dict[str, CellMapping]:
    """Return all mappings by UUID: two at most."""
    found = [CellMapping(**row._mapping) for row in tx.execute(sa.select(*_COLUMNS))]
    return {one.uuid: one for one in found}


def hosts_report(tx: Connection) -> bool:
    """Return whether any compute host has reported its inventory."""
    return tx.execute(sa.select(providers.c.id).limit(1)).first() is not None


def add(tx: Connection, mapping: CellMapping) -> bool:
    """Insert a mapping. False if one with that UUID exists, which stays unchanged."""
    return insert_ignoring(tx, cell_mappings, [{**mapping._asdict(), "created_at": utc_now()}]) > 0


def put(tx: Connection, mapping: CellMapping) -> None:
    """Insert a mapping, or update the existing one. Idempotent."""
    if not add(tx, mapping):
        values = mapping._asdict()
        update_where(tx, cell_mappings, {"uuid": values.pop("uuid")}, values)


def delete(tx: Connection, uuid: str) -> None:
    """Delete a mapping; a missing one is ignored."""
    tx.execute(sa.delete(cell_mappings).where(cell_mappings.c.uuid == uuid))
