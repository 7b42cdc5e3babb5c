"""Recorded cells: names, URLs and states, and the entry, where servers live until they are placed."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.host.generated_keys import CELLS
from nova.db.models.api import cell_mappings, providers
from nova.db.sql.statements import insert_ignoring, update_where
from nova.db.sql.types import utc_now
from nova.model.host.cells import CELL, FIRST, CellMapping
from nova.model.host.sealed_cells import resealed
from nova.model.security.secret_wrap import SecretWrap

_COLUMNS = [cell_mappings.c[name] for name in CellMapping._fields]


def by_uuid(tx: Connection) -> dict[str, CellMapping]:
    """Return all mappings by UUID."""
    found = [CellMapping(**row._mapping) for row in tx.execute(sa.select(*_COLUMNS))]
    return {one.uuid: one for one in found}


def known(tx: Connection) -> dict[str, CellMapping]:
    """Return all cells by UUID. The first cell is included once it is recorded or has hosts: it has a name even in a
    cloud deployed without ``create_cell``."""
    found = by_uuid(tx)
    return {CELL: FIRST, **found} if CELL not in found and _hosts_report(tx) else found


def _hosts_report(tx: Connection) -> bool:
    """Return whether any compute host has reported its inventory."""
    return tx.execute(sa.select(providers.c.id).limit(1)).first() is not None


def lock(tx: Connection) -> None:
    """Lock all records until the transaction ends: a new record's URLs are compared with those of the others."""
    CELLS.lock(tx)


def add(tx: Connection, mapping: CellMapping) -> bool:
    """Insert a mapping. False if one with that UUID exists, which stays unchanged."""
    return insert_ignoring(tx, cell_mappings, [{**mapping._asdict(), "created_at": utc_now()}]) > 0


def put(tx: Connection, mapping: CellMapping) -> None:
    """Insert a mapping, or update the existing one. Idempotent."""
    if not add(tx, mapping):
        values = mapping._asdict()
        update_where(tx, cell_mappings, {"uuid": values.pop("uuid")}, values)


def make_entry(tx: Connection, uuid: str) -> None:
    """Make a recorded cell the one in which servers live until they are placed. Idempotent."""
    tx.execute(sa.update(cell_mappings).values(is_entry=cell_mappings.c.uuid == uuid))


def rewrap(tx: Connection, uuid: str, wrap: SecretWrap) -> None:
    """Encrypt a mapping's URLs with the first key. Raises config.CellUrlSealed if no key decrypts one of them."""
    lock(tx)
    if (found := by_uuid(tx).get(uuid)) is not None:
        put(tx, resealed(wrap, found))


def delete(tx: Connection, uuid: str) -> None:
    """Delete a mapping; a missing one is ignored."""
    tx.execute(sa.delete(cell_mappings).where(cell_mappings.c.uuid == uuid))
