"""Facts of guests that only the api database has, in a cell's database: wanted by its conductors, and carried by super
conductors. They hold for one epoch of the server on one host, as operations may change them."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.cell import guest_facts
from nova.db.server.server_row import ServerRow
from nova.db.sql.statements import insert_ignoring
from nova.db.sql.types import utc_now
from nova.model.guest.guests import ApiFacts


class KeptFacts(NamedTuple):
    """The facts of a guest; None: never carried. ``epoch`` and ``host``: the server's, for which they hold, or are
    wanted."""

    epoch: int
    host: str
    wanted: bool
    facts: ApiFacts | None

    def are_of(self, row: ServerRow) -> bool:
        """Return whether they hold, or are wanted, for the server as it is."""
        return (self.epoch, self.host) == (row.epoch, row.host or "")


def find(tx: Connection, uuid: str) -> KeptFacts | None:
    """Return the facts of a guest; None if it has never asked."""
    row = tx.execute(sa.select(*[guest_facts.c[name] for name in KeptFacts._fields])
                     .where(guest_facts.c.server_uuid == uuid)).one_or_none()
    return None if row is None else KeptFacts._make(row)


def want(tx: Connection, row: ServerRow) -> None:
    """Request the facts of a guest. Older ones stay until then."""
    asked = {"epoch": row.epoch, "host": row.host or "", "wanted": True, "asked_at": utc_now()}
    if not insert_ignoring(tx, guest_facts, [{**asked, "server_uuid": row.uuid}]):
        tx.execute(sa.update(guest_facts).where(guest_facts.c.server_uuid == row.uuid).values(asked))


def wanted(tx: Connection, limit: int) -> list[str]:
    """Return the servers whose facts are wanted, the first to ask first."""
    return list(tx.execute(sa.select(guest_facts.c.server_uuid).where(guest_facts.c.wanted)
                           .order_by(guest_facts.c.asked_at).limit(limit)).scalars())


def keep(tx: Connection, row: ServerRow, facts: ApiFacts) -> None:
    """Keep the facts of a guest that were read after its row. Facts read during an operation hold only for now: the
    operation may change them."""
    epoch = row.epoch if row.task_state is None else 0
    tx.execute(sa.update(guest_facts).where(guest_facts.c.server_uuid == row.uuid).values(
        epoch=epoch, host=row.host or "", wanted=False, facts=facts))


def forget(tx: Connection, uuids: list[str]) -> None:
    """Delete the requests of guests that are gone."""
    tx.execute(sa.delete(guest_facts).where(guest_facts.c.server_uuid.in_(uuids)))
