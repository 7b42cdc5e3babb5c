"""Orphans: objects of hosts and of the ledger that no record explains, and the audit walks that look for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova import errors
from nova.db.models.cell import audit_walks, servers, strangers
from nova.db.sql.statements import delete_some, insert_ignoring
from nova.db.sql.types import later, utc_now
from nova.model.base import Time
from nova.model.guest.orphans import OrphanKind

REMOVED, VANISHED, FORGOTTEN = "removed", "gone by itself", "its host was taken out"
ADOPTED = "adopted"
OPEN = strangers.c.ended == 0


class OrphanKey(NamedTuple):
    """The identity of an orphan."""

    host: str
    kind: OrphanKind
    name: str


class OrphanFacts(NamedTuple):
    """The description of an orphan. ``what``: text for operators; ``epoch``: see
    :class:`nova.model.guest.orphans.FoundOrphan`."""

    server_uuid: str
    what: str
    epoch: int = -1


def of_host(host: str, kinds: Collection[OrphanKind]) -> sa.ColumnElement[bool]:
    """Return the condition for all orphans of these kinds on a host."""
    return sa.and_(strangers.c.host == host, strangers.c.kind.in_([kind.value for kind in kinds]))


def of_servers(kind: OrphanKind, after: str, last: str | None) -> sa.ColumnElement[bool]:
    """Return the condition for all orphans of a kind whose server UUID is after ``after``, up to ``last`` (None: to the
    end)."""
    end = sa.true() if last is None else strangers.c.server_uuid <= last
    return sa.and_(strangers.c.kind == kind.value, strangers.c.server_uuid > after, end)


def only(key: int) -> sa.ColumnElement[bool]:
    """Return the condition for one orphan, by its id."""
    return strangers.c.id == key


def write(tx: Connection, among: sa.ColumnElement[bool], found: Mapping[OrphanKey, OrphanFacts]) -> set[OrphanKey]:
    """Record that exactly ``found`` exists ``among`` the open orphans: insert new ones, close others. Returns the new
    ones."""
    rows = {OrphanKey(row.host, OrphanKind(row.kind), row.name): row
            for row in tx.execute(sa.select(strangers).where(among, OPEN).with_for_update())}
    over = [rows[key].id for key in rows.keys() - found.keys()]
    if over:
        tx.execute(sa.update(strangers).where(strangers.c.id.in_(over)).values(
            ended=strangers.c.id, ended_at=utc_now(),
            ending=sa.case((strangers.c.ordered_at.is_not(None), REMOVED), else_=VANISHED)))
    for key in rows.keys() & found.keys():
        one = found[key]
        if (rows[key].what, rows[key].epoch) != (one.what, one.epoch):
            tx.execute(sa.update(strangers).where(only(rows[key].id)).values(what=one.what, epoch=one.epoch))
    new = found.keys() - rows.keys()
    if new:
        insert_ignoring(tx, strangers, [{
            "kind": key.kind.value, "host": key.host, "name": key.name, **found[key]._asdict(), "ending": "",
            "ended": 0, "first_seen_at": utc_now()} for key in sorted(new)])
    return set(new)


def order(tx: Connection, names: Collection[OrphanKey]) -> None:
    """Record that the removal of these orphans was requested or has begun."""
    for key in sorted(names):
        tx.execute(sa.update(strangers).where(
            strangers.c.host == key.host, strangers.c.kind == key.kind.value, strangers.c.name == key.name, OPEN)
            .values(ordered_at=utc_now()))


def take_over(tx: Connection, key: int) -> None:
    """Close an orphan that now belongs to a server."""
    tx.execute(sa.update(strangers).where(only(key), OPEN).values(ended=strangers.c.id, ended_at=utc_now(),
                                                                  ending=ADOPTED))


def forget_host(tx: Connection, host: str) -> None:
    """Close the orphans on a removed host, which no longer reports them."""
    tx.execute(sa.update(strangers).where(of_host(host, (OrphanKind.GUEST, OrphanKind.SOURCE_COPY)), OPEN)
               .values(ended=strangers.c.id, ended_at=utc_now(), ending=FORGOTTEN))


class OrphanRow(NamedTuple):
    """A recorded orphan; its fields are the columns of that name."""

    id: int
    kind: str
    host: str
    name: str
    server_uuid: str
    what: str
    epoch: int
    first_seen_at: Time
    ordered_at: Time | None
    ended_at: Time | None
    ending: str
    ended: int


_ALL = sa.select(*[strangers.c[name] for name in OrphanRow._fields])


def get(tx: Connection, key: int) -> OrphanRow:
    """Return an open orphan. Raises orphan.NotFound."""
    row = tx.execute(_ALL.where(strangers.c.id == key, OPEN)).one_or_none()
    if row is None:
        raise errors.orphan.NotFound(id=key)
    return OrphanRow._make(row)


def exists(tx: Connection, key: int) -> bool:
    """Return whether there is an open orphan of this number."""
    return tx.execute(sa.select(strangers.c.id).where(strangers.c.id == key, OPEN)).first() is not None


def open_among(tx: Connection, among: sa.ColumnElement[bool]) -> list[OrphanRow]:
    """Return the open orphans that match ``among``."""
    return list(map(OrphanRow._make, tx.execute(_ALL.where(among, OPEN).order_by(strangers.c.id))))


def listed(tx: Connection, limit: int, with_ended: bool = False) -> list[OrphanRow]:
    """Return the oldest open orphans, by id; ``with_ended``: the newest of all, closed ones included."""
    if not with_ended:
        return list(map(OrphanRow._make, tx.execute(_ALL.where(OPEN).order_by(strangers.c.id).limit(limit))))
    rows = tx.execute(_ALL.order_by(strangers.c.id.desc()).limit(limit)).all()
    return list(map(OrphanRow._make, reversed(rows)))


def ordered(tx: Connection, host: str, kinds: Collection[OrphanKind], within_s: int) -> list[OrphanRow]:
    """Return a host's open orphans whose removal was requested within the last ``within_s`` seconds."""
    recent = strangers.c.ordered_at > later(-within_s)
    rows = tx.execute(_ALL.where(of_host(host, kinds), OPEN, recent).order_by(strangers.c.id))
    return list(map(OrphanRow._make, rows))


def purge(tx: Connection, older_than_s: int, limit: int) -> int:
    """Delete up to ``limit`` orphan rows closed long ago; return their number."""
    return delete_some(tx, strangers, strangers.c.ended_at < later(-older_than_s), limit)


# -- walks

def deleted_servers(tx: Connection, after: str, limit: int, older_than_s: int) -> list[str]:
    """Return a page of UUIDs after ``after`` of servers deleted long ago and not purged yet."""
    return list(tx.execute(sa.select(servers.c.uuid).where(
        servers.c.uuid > after, servers.c.deleted != 0, servers.c.deleted_at < later(-older_than_s))
        .order_by(servers.c.uuid).limit(limit)).scalars())


def take_turn(tx: Connection, name: str, seconds: int) -> str | None:
    """Claim a walk for ``seconds`` and return the row to continue after. None if another conductor has it."""
    insert_ignoring(tx, audit_walks, [{"name": name, "after": "", "taken_until": later(-1)}])
    taken = tx.execute(sa.update(audit_walks).where(audit_walks.c.name == name, audit_walks.c.taken_until < utc_now())
                       .values(taken_until=later(seconds))).rowcount
    if not taken:
        return None
    return str(tx.execute(sa.select(audit_walks.c.after).where(audit_walks.c.name == name)).scalar_one())


def go_on(tx: Connection, name: str, last: str | None) -> None:
    """Record that the rows up to ``last`` are done; None: the walk is complete, and starts again."""
    done = {"after": "", "passed_at": utc_now()} if last is None else {"after": last}
    tx.execute(sa.update(audit_walks).where(audit_walks.c.name == name).values(**done))
