"""Pending cleanups: what a host has of a server that is no longer there, until the host has removed it.

A cleanup keeps the server's claim on its host. A *held* cleanup is not due yet: the server moved to another cell, and
may still come back for the guest that the move set aside. Held ones are a step of their own, which hosts do not know:
a conductor of an older release may send it to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.cell import cleanups, servers, services
from nova.db.sql.statements import delete_some, insert_ignoring
from nova.db.sql.types import later, utc_now
from nova.model.host.services import PendingCleanup

DESTROY = "destroy_guests"
#: The only kind of cleanup that no claim waits for: a file next to the guest.
SNAPSHOTS = "drop_snapshots"
HOLDS = cleanups.c.step != SNAPSHOTS
HELD_STEP = "hold_guests"
HELD = cleanups.c.step == HELD_STEP
DONE = cleanups.c.done_at.is_not(None)  # by its host; the claim is not released yet: nova.db.host.carried
PENDING = sa.and_(sa.not_(DONE), sa.not_(HELD))


def add(tx: Connection, added: Sequence[Mapping[str, object]]) -> None:
    """Insert cleanups; a newer epoch replaces an existing one, and any epoch a done or a held cleanup.

    The newest arguments count: disks that were to be kept may belong to no server by now. The new row has its own key:
    a host that did the older cleanup but could not report it must not count as having done the newer.
    """
    for one in added:
        outdated = sa.and_(cleanups.c.step == one["step"], sa.or_(cleanups.c.epoch < one["epoch"], DONE))
        tx.execute(sa.delete(cleanups).where(cleanups.c.host == one["host"], sa.or_(HELD, outdated),
                                             cleanups.c.server_uuid == one["server_uuid"]))
    if added:
        insert_ignoring(tx, cleanups, [{**one, "created_at": utc_now()} for one in added])


def pending(tx: Connection, host: str | None = None, with_held: bool = False) -> tuple[PendingCleanup, ...]:
    """Return the pending cleanups of all hosts (or one), oldest first. ``with_held``: including held ones."""
    query = sa.select(cleanups).where(sa.not_(DONE) if with_held else PENDING).order_by(cleanups.c.id)
    rows = tx.execute(query if host is None else query.where(cleanups.c.host == host))
    return tuple(PendingCleanup(id=row.id, host=row.host, server_uuid=row.server_uuid, epoch=row.epoch, step=row.step,
                                arguments=row.arguments, created_at=row.created_at) for row in rows)


def hosts_of(tx: Connection, uuids: Sequence[str]) -> dict[str, list[str]]:
    """Return server -> hosts that hold its resources until a cleanup is done."""
    found: dict[str, list[str]] = {}
    for row in tx.execute(sa.select(cleanups.c.server_uuid, cleanups.c.host)
                          .where(cleanups.c.server_uuid.in_(uuids), HOLDS)):
        found.setdefault(row.server_uuid, []).append(row.host)
    return found


def hosts_with_pending(tx: Connection) -> set[str]:
    """Return the hosts with pending cleanups."""
    return set(tx.execute(sa.select(cleanups.c.host).where(PENDING).distinct()).scalars())


def find(tx: Connection, host: str, key: int) -> tuple[str, bool] | None:
    """Return the server of a host's cleanup, and whether it is the last one to block a claim. None if it is
    already done."""
    found = tx.execute(sa.select(cleanups.c.server_uuid, cleanups.c.step)
                       .where(cleanups.c.id == key, cleanups.c.host == host, sa.not_(HELD))).first()
    if found is None:
        return None
    more = tx.execute(sa.select(cleanups.c.id).where(
        cleanups.c.server_uuid == found.server_uuid, cleanups.c.host == host, cleanups.c.id != key,
                                                     HOLDS).limit(1)).first()
    return str(found.server_uuid), more is None and found.step != SNAPSHOTS


def arguments(tx: Connection, host: str, key: int) -> Mapping[str, str]:
    """Return the arguments of a cleanup of this host."""
    return tx.execute(sa.select(cleanups.c.arguments).where(cleanups.c.id == key, cleanups.c.host == host)
                      ).scalar_one_or_none() or {}


def drop(tx: Connection, host: str, key: int) -> None:
    """Delete a cleanup that is done or abandoned. Idempotent."""
    tx.execute(sa.delete(cleanups).where(cleanups.c.id == key, cleanups.c.host == host))


def purge(tx: Connection, limit: int) -> int:
    """Delete up to ``limit`` cleanups that no service will do and no claim waits for; return their number. Their host
    has no service any more, and their server was purged."""
    runs = sa.exists().where(services.c.host == cleanups.c.host, services.c.deleted == 0)
    known_server = sa.exists().where(servers.c.uuid == cleanups.c.server_uuid)
    return delete_some(tx, cleanups, sa.and_(sa.not_(runs), sa.not_(known_server)), limit)


# -- guests set aside, of servers that moved to another cell

def hold(tx: Connection, cleanup: Mapping[str, object]) -> None:
    """Insert a cleanup that is not due: :func:`add` replaces it by a due one, or :func:`drop_held` deletes it. May be
    repeated."""
    insert_ignoring(tx, cleanups, [{**cleanup, "step": HELD_STEP, "created_at": utc_now()}])


def held(tx: Connection, host: str, server_uuid: str) -> Mapping[str, str] | None:
    """Return the arguments of the host's held cleanup of a server; None if it has none."""
    return tx.execute(sa.select(cleanups.c.arguments).where(
        cleanups.c.host == host, cleanups.c.server_uuid == server_uuid, HELD)).scalar_one_or_none()


def drop_held(tx: Connection, server_uuid: str) -> None:
    """Delete the held cleanups of a server that is in this cell again. Idempotent."""
    tx.execute(sa.delete(cleanups).where(cleanups.c.server_uuid == server_uuid, HELD))


def make_due(tx: Connection, server_uuid: str, host: str) -> None:
    """Let a host do its held cleanup of a server. Idempotent."""
    rows = tx.execute(sa.select(cleanups).where(cleanups.c.server_uuid == server_uuid, cleanups.c.host == host,
                                                HELD)).all()
    add(tx, [{"host": row.host, "server_uuid": row.server_uuid, "epoch": row.epoch, "step": DESTROY,
              "arguments": row.arguments} for row in rows])


class HeldCleanup(NamedTuple):
    """A host, and the server that it has a held cleanup of."""

    id: int
    host: str
    server_uuid: str


def held_for_long(tx: Connection, older_than_s: int, after: int, limit: int) -> list[HeldCleanup]:
    """Return a page of the held cleanups that were written so long ago, after the key ``after``."""
    rows = tx.execute(sa.select(cleanups.c.id, cleanups.c.host, cleanups.c.server_uuid).where(
        HELD, cleanups.c.id > after, cleanups.c.created_at < later(-older_than_s)).order_by(cleanups.c.id).limit(limit))
    return list(map(HeldCleanup._make, rows))
