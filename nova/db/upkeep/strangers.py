"""What hosts and the ledger have that no record explains, as it was found; and the walks that look for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova import errors
from nova.db.models.cell import audit_walks, servers, strangers
from nova.db.sql.statements import delete_some, insert_ignoring
from nova.db.sql.types import AnyRow, Clause, later, utc_now
from nova.model.guest.strangers import StrangerKind

REMOVED, VANISHED, FORGOTTEN = "removed", "gone by itself", "its host was taken out"
ADOPTED = "adopted"
OPEN = strangers.c.ended == 0


class StrangerKey(NamedTuple):
    """What tells one stranger from others."""

    host: str
    kind: StrangerKind
    name: str


class StrangerFacts(NamedTuple):
    """``what``: in words, for operators. ``epoch``: see :class:`nova.model.guest.strangers.FoundStranger`."""

    server_uuid: str
    what: str
    epoch: int = -1


def of_host(host: str, kinds: Collection[StrangerKind]) -> Clause:
    """All of these kinds on a host."""
    return sa.and_(strangers.c.host == host, strangers.c.kind.in_([kind.value for kind in kinds]))


def of_servers(kind: StrangerKind, after: str, last: str | None) -> Clause:
    """All of a kind whose server's uuid is behind ``after``, up to ``last`` (None: to the end)."""
    end = sa.true() if last is None else strangers.c.server_uuid <= last
    return sa.and_(strangers.c.kind == kind.value, strangers.c.server_uuid > after, end)


def only(key: int) -> Clause:
    """One, by its id."""
    return strangers.c.id == key


def write(tx: Connection, among: Clause, found: Mapping[StrangerKey, StrangerFacts]) -> set[StrangerKey]:
    """``found`` is all there is ``among``: new ones come, others end. Those that are new."""
    rows = {StrangerKey(row.host, StrangerKind(row.kind), row.name): row
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


def order(tx: Connection, names: Collection[StrangerKey]) -> None:
    """Their removal is asked for, or begun."""
    for key in sorted(names):
        tx.execute(sa.update(strangers).where(
            strangers.c.host == key.host, strangers.c.kind == key.kind.value, strangers.c.name == key.name, OPEN)
            .values(ordered_at=utc_now()))


def adopt(tx: Connection, key: int) -> None:
    """It is a server's by now."""
    tx.execute(sa.update(strangers).where(only(key), OPEN).values(ended=strangers.c.id, ended_at=utc_now(),
                                                                  ending=ADOPTED))


def forget_host(tx: Connection, host: str) -> None:
    """Nobody reports what is there any more."""
    tx.execute(sa.update(strangers).where(of_host(host, (StrangerKind.GUEST, StrangerKind.SOURCE_COPY)), OPEN)
               .values(ended=strangers.c.id, ended_at=utc_now(), ending=FORGOTTEN))


def get(tx: Connection, key: int) -> AnyRow:
    """An open one. stranger.NotFound."""
    row = tx.execute(sa.select(strangers).where(strangers.c.id == key, OPEN)).one_or_none()
    if row is None:
        raise errors.stranger.NotFound(id=key)
    return row


def open_among(tx: Connection, among: Clause) -> Sequence[AnyRow]:
    """Those that are not over."""
    return tx.execute(sa.select(strangers).where(among, OPEN).order_by(strangers.c.id)).all()


def listed(tx: Connection, limit: int, with_ended: bool = False) -> Sequence[AnyRow]:
    """The oldest of those that are open; ``with_ended``: the newest of all. By id."""
    if not with_ended:
        return tx.execute(sa.select(strangers).where(OPEN).order_by(strangers.c.id).limit(limit)).all()
    return tx.execute(sa.select(strangers).order_by(strangers.c.id.desc()).limit(limit)).all()[::-1]


def ordered(tx: Connection, host: str, kinds: Collection[StrangerKind], within_s: int) -> Sequence[AnyRow]:
    """Those of a host whose removal was asked for in the last seconds."""
    return tx.execute(sa.select(strangers).where(of_host(host, kinds), OPEN, strangers.c.ordered_at > later(-within_s))
                      .order_by(strangers.c.id)).all()


def purge(tx: Connection, older_than_s: int, limit: int) -> int:
    """Forget those that ended long ago, up to ``limit``; how many."""
    return delete_some(tx, strangers, strangers.c.ended_at < later(-older_than_s), limit)


# -- walks

def deleted_servers(tx: Connection, after: str, limit: int, older_than_s: int) -> list[str]:
    """A page of servers, by uuid behind ``after``, that were deleted so long ago, and are not purged yet."""
    return list(tx.execute(sa.select(servers.c.uuid).where(
        servers.c.uuid > after, servers.c.deleted != 0, servers.c.deleted_at < later(-older_than_s))
        .order_by(servers.c.uuid).limit(limit)).scalars())


def take_turn(tx: Connection, name: str, seconds: int) -> str | None:
    """Behind which row to go on; nobody else has the walk for the seconds. None: another conductor has it."""
    insert_ignoring(tx, audit_walks, [{"name": name, "after": "", "taken_until": later(-1)}])
    taken = tx.execute(sa.update(audit_walks).where(audit_walks.c.name == name, audit_walks.c.taken_until < utc_now())
                       .values(taken_until=later(seconds))).rowcount
    if not taken:
        return None
    return str(tx.execute(sa.select(audit_walks.c.after).where(audit_walks.c.name == name)).scalar_one())


def go_on(tx: Connection, name: str, last: str | None) -> None:
    """The rows up to ``last`` are done; None: it was the end, and the walk begins anew."""
    done = {"after": "", "passed_at": utc_now()} if last is None else {"after": last}
    tx.execute(sa.update(audit_walks).where(audit_walks.c.name == name).values(**done))
