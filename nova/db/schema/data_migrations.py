"""What online data migrations read and write: rows that older releases left, a page at a time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.api import ledger
from nova.db.models.cell import audit_walks, servers
from nova.db.sql.types import AnyRow, later, utc_now
from nova.db.upkeep import strangers
from nova.model.server.servers import ServerFacts


class Walk(NamedTuple):
    """How far a migration is: behind which key it goes on (as text; empty: at the beginning), and whether this pass
    over the table found rows to change. ``done``: it is over, and goes on no more."""

    after: str = ""
    found: bool = False
    done: bool = False


_MARKS = {"+": Walk(found=True), "=": Walk(done=True)}  # before the key, in its column


def _read(text: str) -> Walk:
    mark = _MARKS.get(text[:1])
    return Walk(text) if mark is None else mark._replace(after=text[1:])


def walk(tx: Connection, name: str) -> Walk:
    """Of a migration that nobody has begun: the beginning."""
    text = tx.execute(sa.select(audit_walks.c.after).where(audit_walks.c.name == name)).scalar_one_or_none()
    return _read(text or "")


def take_turn(tx: Connection, name: str, seconds: int) -> Walk | None:
    """As :func:`nova.db.upkeep.strangers.take_turn`."""
    text = strangers.take_turn(tx, name, seconds)
    return None if text is None else _read(text)


def go_on(tx: Connection, name: str, walk: Walk) -> None:
    """That far it is now, and the turn is over: whoever comes next may take it."""
    mark = "=" if walk.done else "+" if walk.found else ""
    over = {} if walk.after else {"passed_at": utc_now()}
    tx.execute(sa.update(audit_walks).where(audit_walks.c.name == name).values(
        after=f"{mark}{walk.after}", taken_until=later(-1), **over))


_LACKING = sa.or_(ledger.c.classes.is_(None), ledger.c.facts.is_(None)).label("lacking")


def ledger_page(tx: Connection, after: int, limit: int) -> Sequence[AnyRow]:
    """A page of open ledger rows behind a key: id, server_uuid, and whether it lacks what newer releases write."""
    behind = sa.and_(ledger.c.id > after, ledger.c.closed == sa.false())
    return tx.execute(sa.select(ledger.c.id, ledger.c.server_uuid, _LACKING).where(behind)
                      .order_by(ledger.c.id).limit(limit)).all()


def any_lacking(tx: Connection) -> bool:
    """Whether an open ledger row lacks it: for a look by hand, since it may read the whole table."""
    return tx.execute(sa.select(ledger.c.id).where(ledger.c.closed == sa.false(), _LACKING.element)
                      .limit(1)).first() is not None


def described(tx: Connection, uuids: Collection[str]) -> dict[str, AnyRow]:
    """By uuid what the ledger has to know of these living servers."""
    rows = tx.execute(sa.select(servers.c.uuid, servers.c.flavor, servers.c.image, servers.c.image_id,
                                servers.c.pinned_availability_zone)
                      .where(servers.c.uuid.in_(list(uuids)), servers.c.deleted == 0))
    return {row.uuid: row for row in rows}


def describe(tx: Connection, key: int, facts: ServerFacts, classes: Mapping[str, int]) -> bool:
    """Write what a row lacks; False: somebody has written it by now."""
    return tx.execute(sa.update(ledger).where(ledger.c.id == key, _LACKING.element).values(
        facts=facts, classes=classes)).rowcount > 0
