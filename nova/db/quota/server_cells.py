"""The cell of each server, by the ledger: the only record that decides it, independent of the rows in cells."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.api import ledger
from nova.db.quota import ledger as ledger_rows
from nova.db.sql.types import utc_now
from nova.model.base import Time
from nova.model.host.cells import CELL


def cells_of(tx: Connection, uuids: Collection[str]) -> dict[str, str]:
    """Return the cell of each of these servers, closed rows included; servers without a row are left out."""
    rows = tx.execute(sa.select(ledger.c.server_uuid, ledger.c.cell).where(ledger.c.server_uuid.in_(uuids)))
    return {row.server_uuid: row.cell or CELL for row in rows}


def with_servers_of(tx: Connection, project_id: str) -> set[str]:
    """Return the cells in which a project has live servers."""
    return {cell or CELL for cell in tx.scalars(sa.select(ledger.c.cell).distinct().where(
        ledger.c.project_id == project_id, ledger.c.closed == sa.false()))}


class Home(NamedTuple):
    """A server's cell by its ledger row. ``closed``: the server was deleted."""

    cell: str
    closed: bool


def homes(tx: Connection, uuids: Collection[str]) -> dict[str, Home]:
    """Return the homes of these servers; servers without a row are left out."""
    rows = tx.execute(sa.select(ledger.c.server_uuid, ledger.c.cell, ledger.c.closed)
                      .where(ledger.c.server_uuid.in_(uuids)))
    return {row.server_uuid: Home(row.cell or CELL, row.closed) for row in rows}


def reopen(tx: Connection, uuids: Collection[str], cell: str) -> None:
    """Record that these servers are in this cell and, if their rows were closed, that quota counts them again."""
    tx.execute(sa.update(ledger).where(ledger.c.server_uuid.in_(uuids))
               .values(closed=False, closed_at=None, cell=cell))


def move_to_cell(tx: Connection, epochs: Mapping[str, int], old: str, new: str) -> set[str]:
    """Record that these servers (UUID -> epoch) moved from one cell to another; return the servers that now are in the
    new one. The others are closed, or a newer operation owns them."""
    mine = ledger_rows.raise_epochs(tx, epochs)
    tx.execute(sa.update(ledger).where(ledger.c.server_uuid.in_(mine), ledger_rows.in_cells(old)).values(
        cell=new, moved_at=utc_now()))
    return {uuid for uuid, cell in cells_of(tx, mine).items() if cell == new}


def fenced_cells_of(tx: Connection, epochs: Mapping[str, int]) -> dict[str, str]:
    """Return the cells of these servers (UUID -> epoch), which no operation with an older epoch can change any more."""
    ledger_rows.raise_epochs(tx, epochs)
    return cells_of(tx, epochs)


def clock(tx: Connection) -> Time:
    """Return the time by the database's clock."""
    return tx.execute(sa.select(utc_now())).scalar_one()


def moved_since(tx: Connection, since: Time, project_id: str | None) -> set[str]:
    """Return the servers, of one project or of all, that moved to another cell then or later."""
    query = sa.select(ledger.c.server_uuid).where(ledger.c.moved_at >= since)
    return set(tx.scalars(query if project_id is None else query.where(ledger.c.project_id == project_id)))


def back_to_cell(tx: Connection, uuids: Collection[str], new: str, old: str) -> None:
    """Record that these servers are in their old cell after all: a newer operation began there before the move."""
    tx.execute(sa.update(ledger).where(ledger.c.server_uuid.in_(uuids), ledger.c.cell == new).values(cell=old))
