"""Whose a volume is, and what is still to be said to the volume service.

A server's devices stand in its own row (``servers.volumes``). ``volume_holders`` has a row of each beside it, so that a
volume for one server alone is never two servers', whatever races: its row's ``holder`` is empty, and unique.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova import errors
from nova.db.models.cell import servers, volume_cleanups, volume_holders
from nova.db.sql.statements import insert_ignoring
from nova.db.sql.types import later, utc_now
from nova.model.volumes import BlockDevice

#: Kinds of cleanups. COMPLETE: attachment ``what``, whose guest has its volume, is complete. ATTACHMENT, VOLUME: it is
#: deleted. RESERVATION: the server's attachments to volume ``what`` that no record has are deleted. DETACHING: volume
#: ``what`` is in use again, as its record says. REPLACED, NOT_REPLACED: volume ``what`` has taken the place of the one
#: that the volume service moves there, or will not. TO_ATTACH, TO_DETACH: another operation overtook the attach or the
#: detach of volume ``what``, which is to be brought to its end. IMAGE_SNAPSHOTS: snapshots of volumes that image
#: ``what`` names are deleted, with it, unless it is whole.
COMPLETE, ATTACHMENT, VOLUME, RESERVATION, DETACHING = "complete", "attachment", "volume", "reservation", "detaching"
REPLACED, NOT_REPLACED = "replaced", "not_replaced"
TO_ATTACH, TO_DETACH = "to_attach", "to_detach"
IMAGE_SNAPSHOTS = "image_snapshots"


class Cleanup(NamedTuple):
    """A row of ``volume_cleanups``. ``tries``: how often it was tried in vain."""

    kind: str
    what: str
    server_uuid: str
    id: int = 0
    tries: int = 0


def hold(tx: Connection, server_uuid: str, device: BlockDevice) -> None:
    """The volume is the server's. volume.AlreadyAttached: it is, or it is another server's alone."""
    row = {"volume_id": device.volume_id, "server_uuid": server_uuid, "created_at": utc_now(),
           "holder": server_uuid if device.multiattach else ""}
    if not insert_ignoring(tx, volume_holders, [row]):
        raise errors.volume.AlreadyAttached(volume=device.volume_id)


def let_go(tx: Connection, server_uuid: str, volume_ids: Sequence[str]) -> None:
    """The volumes are the server's no more."""
    tx.execute(sa.delete(volume_holders).where(volume_holders.c.server_uuid == server_uuid,
                                               volume_holders.c.volume_id.in_(volume_ids)))


def holders(tx: Connection, volume_id: str) -> list[str]:
    """Servers that have the volume, by uuid."""
    return list(tx.execute(sa.select(volume_holders.c.server_uuid)
                           .where(volume_holders.c.volume_id == volume_id)
                           .order_by(volume_holders.c.id)).scalars())


def devices_of(tx: Connection, server_uuids: Sequence[str]) -> Mapping[str, tuple[BlockDevice, ...]]:
    """Devices of servers that are there, by their uuid."""
    rows = tx.execute(sa.select(servers.c.uuid, servers.c.volumes)
                      .where(servers.c.uuid.in_(server_uuids), servers.c.deleted == 0))
    return {row.uuid: row.volumes or () for row in rows}


def servers_with_volumes(tx: Connection, limit: int, start: float) -> tuple[list[str], bool]:
    """Servers of ``limit`` uses of volumes, by uuid, each once; and whether these are all uses. ``start``: where in the
    table to begin, from 0 to 1; behind its end comes its beginning."""
    holders = volume_holders.c
    first = int((tx.execute(sa.select(sa.func.max(holders.id))).scalar() or 0) * start)
    found: list[str] = []
    for part in (holders.id > first, holders.id <= first):
        if len(found) < limit:
            found += tx.execute(sa.select(holders.server_uuid).where(part).order_by(holders.id)
                                .limit(limit - len(found))).scalars()
    return list(dict.fromkeys(found)), len(found) < limit


# -- what is still to be said

def add_cleanups(tx: Connection, added: Sequence[Cleanup], after_s: int = 0) -> None:
    """Not before so many seconds have passed. One that is there already stays as it is."""
    if added:
        insert_ignoring(tx, volume_cleanups, [{
            "kind": one.kind, "what": one.what, "server_uuid": one.server_uuid, "tries": 0, "due_at": later(after_s),
            "created_at": utc_now()} for one in added])


def drop_cleanups(tx: Connection, done: Sequence[Cleanup]) -> None:
    """They are done, or there is no need of them any more."""
    for one in done:
        tx.execute(sa.delete(volume_cleanups).where(
            volume_cleanups.c.kind == one.kind, volume_cleanups.c.what == one.what,
            volume_cleanups.c.server_uuid == one.server_uuid))


def due(tx: Connection, limit: int) -> list[Cleanup]:
    """Those whose time has come, the oldest first."""
    rows = tx.execute(sa.select(*[volume_cleanups.c[name] for name in Cleanup._fields])
                      .where(volume_cleanups.c.due_at <= utc_now()).order_by(volume_cleanups.c.due_at).limit(limit))
    return [Cleanup(*row) for row in rows]


def of_server(tx: Connection, server_uuid: str) -> list[Cleanup]:
    """All of a server's, due or not."""
    rows = tx.execute(sa.select(*[volume_cleanups.c[name] for name in Cleanup._fields])
                      .where(volume_cleanups.c.server_uuid == server_uuid).order_by(volume_cleanups.c.id))
    return [Cleanup(*row) for row in rows]


def put_off(tx: Connection, one: Cleanup, seconds: int) -> bool:
    """It is tried by us now, and not again before so many seconds have passed. False: somebody else has taken it."""
    return tx.execute(sa.update(volume_cleanups)
                      .where(volume_cleanups.c.id == one.id, volume_cleanups.c.tries == one.tries)
                      .values(tries=one.tries + 1, due_at=later(seconds))).rowcount == 1


def pending(tx: Connection, limit: int) -> list[Cleanup]:
    """All of them, the oldest first."""
    rows = tx.execute(sa.select(*[volume_cleanups.c[name] for name in Cleanup._fields])
                      .order_by(volume_cleanups.c.id).limit(limit))
    return [Cleanup(*row) for row in rows]
