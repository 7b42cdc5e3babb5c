"""Queries of online data migrations: rows written by older releases, read and updated a page at a time."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.api import ledger
from nova.db.models.cell import audit_walks, servers
from nova.db.sql.types import later, utc_now
from nova.db.upkeep import orphans
from nova.model.flavor.flavors import Flavor
from nova.model.image.images import Image
from nova.model.server.servers import ServerFacts


class Walk(NamedTuple):
    """The progress of a migration. ``after``: the key after which it continues, as text; empty at the beginning.
    ``found``: this pass over the table found rows to change. ``done``: the migration is complete."""

    after: str = ""
    found: bool = False
    done: bool = False


_MARKS = {"+": Walk(found=True), "=": Walk(done=True)}  # a prefix of the key in its column


def _read(text: str) -> Walk:
    mark = _MARKS.get(text[:1])
    return Walk(text) if mark is None else mark._replace(after=text[1:])


def walk(tx: Connection, name: str) -> Walk:
    """Return a migration's progress: the beginning if it has not started."""
    text = tx.execute(sa.select(audit_walks.c.after).where(audit_walks.c.name == name)).scalar_one_or_none()
    return _read(text or "")


def take_turn(tx: Connection, name: str, seconds: int) -> Walk | None:
    """Claim the next turn of a migration, as :func:`nova.db.upkeep.orphans.take_turn` does."""
    text = orphans.take_turn(tx, name, seconds)
    return None if text is None else _read(text)


def go_on(tx: Connection, name: str, walk: Walk) -> None:
    """Record the progress and release the turn to the next process."""
    mark = "=" if walk.done else "+" if walk.found else ""
    over = {} if walk.after else {"passed_at": utc_now()}
    tx.execute(sa.update(audit_walks).where(audit_walks.c.name == name).values(
        after=f"{mark}{walk.after}", taken_until=later(-1), **over))


_LACKING = sa.or_(ledger.c.classes.is_(None), ledger.c.facts.is_(None)).label("lacking")


class LedgerRow(NamedTuple):
    """An open ledger row. ``lacking``: columns that newer releases write are missing."""

    id: int
    server_uuid: str
    lacking: bool


class DescribedServer(NamedTuple):
    """The columns of a live server that the ledger needs."""

    uuid: str
    flavor: Flavor
    image: Image | None
    image_id: str
    pinned_availability_zone: str | None


def ledger_page(tx: Connection, after: int, limit: int) -> list[LedgerRow]:
    """Return a page of open ledger rows after a key."""
    behind = sa.and_(ledger.c.id > after, ledger.c.closed == sa.false())
    rows = tx.execute(sa.select(ledger.c.id, ledger.c.server_uuid, _LACKING).where(behind)
                      .order_by(ledger.c.id).limit(limit))
    return list(map(LedgerRow._make, rows))


def any_lacking(tx: Connection) -> bool:
    """Return whether any open ledger row lacks these columns. For manual checks only: it may read the whole table."""
    return tx.execute(sa.select(ledger.c.id).where(ledger.c.closed == sa.false(), _LACKING.element)
                      .limit(1)).first() is not None


def described(tx: Connection, uuids: Collection[str]) -> dict[str, DescribedServer]:
    """Return the columns of these live servers that the ledger needs, by UUID."""
    rows = tx.execute(sa.select(*[servers.c[name] for name in DescribedServer._fields])
                      .where(servers.c.uuid.in_(list(uuids)), servers.c.deleted == 0))
    return {row.uuid: row for row in map(DescribedServer._make, rows)}


def describe(tx: Connection, key: int, facts: ServerFacts, classes: Mapping[str, int]) -> bool:
    """Fill in a row's missing columns. False if another process has already done so."""
    return tx.execute(sa.update(ledger).where(ledger.c.id == key, _LACKING.element).values(
        facts=facts, classes=classes)).rowcount > 0
