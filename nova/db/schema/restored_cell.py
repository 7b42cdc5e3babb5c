"""A restored cell and the ledger, which is newer: afterwards the two agree on each server.

A server that was deleted since the backup counts again, so that its owner can delete it again: a restore destroys
nothing by inference. If a server has moved to another cell since then, its rows here are removed. A server that was
created since then has no row to restore: its guest is an orphan on its host.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator
from typing import NamedTuple

from nova.db.quota import ledger, server_cells
from nova.db.quota.server_cells import Home
from nova.db.schema import api_rebuild
from nova.db.schema.api_rebuild import Proof
from nova.db.server import transfers
from nova.db.sql.engine import Connection, Database

PAGE = 500


class RestoredServers(NamedTuple):
    """UUIDs of servers that changed since the backup. ``again``: deleted, and there again; ``elsewhere``: in another
    cell by now; ``lost``: created since, without a record."""

    again: tuple[str, ...]
    elsewhere: tuple[str, ...]
    lost: tuple[str, ...]


def agree(api: Database, cell: Database, cell_uuid: str, others: Collection[str]) -> RestoredServers:
    """Let the ledger and a restored cell, which no conductor serves yet, agree. May be repeated. ``others``: UUIDs of
    the other recorded cells; a server of which the ledger names any other cell is in this one."""
    again: list[str] = []
    elsewhere: list[str] = []
    for page in _live(cell):
        with api.reading() as tx:
            homes = server_cells.homes(tx, [row.uuid for row in page])
        moved = [uuid for uuid, home in homes.items() if not home.closed and home.cell in others]
        if moved:
            cell.transact(functools.partial(transfers.forget, uuids=moved))
            elsewhere += moved
        here = [row for row in page if row.uuid not in moved and homes.get(row.uuid) != Home(cell_uuid, closed=False)]
        if here:
            api.transact(functools.partial(_open, rows=here, cell_uuid=cell_uuid))
            again += [row.uuid for row in here if row.uuid not in homes or homes[row.uuid].closed]
    return RestoredServers(tuple(again), tuple(elsewhere), tuple(_without_record(api, cell, cell_uuid)))


def _live(cell: Database) -> Iterator[list[Proof]]:
    """Yield pages of the cell's live servers."""
    after = 0
    while True:
        with cell.reading() as tx:
            page = api_rebuild.living(tx, after, PAGE)
        if not page:
            return
        yield page
        after = page[-1].id


def _open(tx: Connection, rows: list[Proof], cell_uuid: str) -> None:
    server_cells.reopen(tx, [row.uuid for row in rows], cell_uuid)
    api_rebuild.open_rows(tx, rows, cell_uuid)  # those whose closed row was purged


def _without_record(api: Database, cell: Database, cell_uuid: str) -> Iterator[str]:
    """Yield the servers that the ledger has in this cell, and the cell does not have."""
    after = 0
    while True:
        with api.reading() as tx:
            page = ledger.counts(tx, after, PAGE, cell_uuid)
        if not page:
            return
        with cell.reading() as tx:
            known = {row.uuid for row in api_rebuild.proofs(tx, [one.server_uuid for one in page])}
        yield from (one.server_uuid for one in page if one.server_uuid not in known)
        after = page[-1].id
