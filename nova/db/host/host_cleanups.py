"""Pending cleanups: what a host has of a server that is no longer there, until the host has removed it.

A cleanup keeps the server's claim on its host. A *held* cleanup is not due yet: the server moved to another cell, and
may still come back for the guest that the move set aside.
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

#: The only kind of cleanup that no claim waits for: a file next to the guest.
SNAPSHOTS = "drop_snapshots"
HOLDS = cleanups.c.step != SNAPSHOTS
DONE = cleanups.c.done_at.is_not(None)  # by its host; the claim is not released yet: nova.db.host.carried
PENDING = sa.and_(sa.not_(DONE), cleanups.c.held == sa.false())


def add(tx: Connection, added: Sequence[Mapping[str, object]]) -> None:
    """Insert cleanups; a newer epoch replaces an existing one, and any epoch a done or a held cleanup.

    The newest arguments count: disks that were to be kept may belong to no server by now. The new row has its own key:
    a host that did the older cleanup but could not report it must not count as having done the newer.
    """
    for one in added:
        same = [cleanups.c[name] == one[name] for name in ("host", "server_uuid", "step")]
        tx.execute(sa.delete(cleanups).where(*same, sa.or_(cleanups.c.epoch < one["epoch"], sa.not_(PENDING))))
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
                       .where(cleanups.c.id == key, cleanups.c.host == host)).first()
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
    """Insert a cleanup that is not due: :func:`add` replaces it by a due one, or :func:`drop_held` deletes it.
    An existing cleanup of the host and the server stays."""
    insert_ignoring(tx, cleanups, [{**cleanup, "held": True, "created_at": utc_now()}])


def held(tx: Connection, host: str, server_uuid: str) -> Mapping[str, str] | None:
    """Return the arguments of the host's held cleanup of a server; None if it has none."""
    return tx.execute(sa.select(cleanups.c.arguments).where(
        cleanups.c.host == host, cleanups.c.server_uuid == server_uuid, cleanups.c.held == sa.true())
        ).scalar_one_or_none()


def drop_held(tx: Connection, server_uuid: str) -> None:
    """Delete the held cleanups of a server that is in this cell again. Idempotent."""
    tx.execute(sa.delete(cleanups).where(cleanups.c.server_uuid == server_uuid, cleanups.c.held == sa.true()))


def make_due(tx: Connection, server_uuid: str) -> None:
    """Let the hosts of this cell do their held cleanups of a server. Idempotent."""
    tx.execute(sa.update(cleanups).where(cleanups.c.server_uuid == server_uuid, cleanups.c.held == sa.true())
               .values(held=False))


class HeldCleanup(NamedTuple):
    """A host, and the server that it has a held cleanup of."""

    host: str
    server_uuid: str


def held_for_long(tx: Connection, older_than_s: int, limit: int) -> list[HeldCleanup]:
    """Return held cleanups that were written so long ago, oldest first."""
    rows = tx.execute(sa.select(cleanups.c.host, cleanups.c.server_uuid).where(
        cleanups.c.held == sa.true(), cleanups.c.created_at < later(-older_than_s)).order_by(cleanups.c.id)
        .limit(limit))
    return list(map(HeldCleanup._make, rows))
