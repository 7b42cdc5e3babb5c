"""Volume holders (the servers that use a volume) and pending cleanups in the volume service.

A server's block devices are stored in its own row (``servers.volumes``). ``volume_holders`` has one row for each device
as well. A single-attach volume has the ``holder`` "" there, which is unique, so that concurrent attaches cannot give it
to two servers.
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

#: Kinds of cleanups. COMPLETE: complete attachment ``what``, whose guest has the volume. ATTACHMENT, VOLUME: delete it.
#: RESERVATION: delete the server's attachments to volume ``what`` that no record mentions. DETACHING: set volume
#: ``what`` back to in-use, as its record says. REPLACED, NOT_REPLACED: volume ``what`` has replaced the volume that the
#: volume service is migrating to it, or will not. TO_ATTACH, TO_DETACH: finish the attach or detach of volume ``what``
#: that another operation overtook. IMAGE_SNAPSHOTS: delete image ``what`` and the volume snapshots that it names,
#: unless the image is complete.
COMPLETE, ATTACHMENT, VOLUME, RESERVATION, DETACHING = "complete", "attachment", "volume", "reservation", "detaching"
REPLACED, NOT_REPLACED = "replaced", "not_replaced"
TO_ATTACH, TO_DETACH = "to_attach", "to_detach"
IMAGE_SNAPSHOTS = "image_snapshots"


class Cleanup(NamedTuple):
    """A row of ``volume_cleanups``. ``tries``: the number of failed attempts."""

    kind: str
    what: str
    server_uuid: str
    id: int = 0
    tries: int = 0


def hold(tx: Connection, server_uuid: str, device: BlockDevice) -> None:
    """Record the server as a holder of the volume. Raises volume.AlreadyAttached if it already is, or if another server
    holds the volume exclusively."""
    row = {"volume_id": device.volume_id, "server_uuid": server_uuid, "created_at": utc_now(),
           "holder": server_uuid if device.multiattach else ""}
    if not insert_ignoring(tx, volume_holders, [row]):
        raise errors.volume.AlreadyAttached(volume=device.volume_id)


def release(tx: Connection, server_uuid: str, volume_ids: Sequence[str]) -> None:
    """Remove the server as a holder of the volumes."""
    tx.execute(sa.delete(volume_holders).where(volume_holders.c.server_uuid == server_uuid,
                                               volume_holders.c.volume_id.in_(volume_ids)))


def holders(tx: Connection, volume_id: str) -> list[str]:
    """Return the UUIDs of the servers that hold the volume."""
    return list(tx.execute(sa.select(volume_holders.c.server_uuid)
                           .where(volume_holders.c.volume_id == volume_id)
                           .order_by(volume_holders.c.id)).scalars())


def devices_of(tx: Connection, server_uuids: Sequence[str]) -> Mapping[str, tuple[BlockDevice, ...]]:
    """Return the block devices of the servers that exist, by server UUID."""
    rows = tx.execute(sa.select(servers.c.uuid, servers.c.volumes)
                      .where(servers.c.uuid.in_(server_uuids), servers.c.deleted == 0))
    return {row.uuid: row.volumes or () for row in rows}


def servers_with_volumes(tx: Connection, limit: int, start: float) -> tuple[list[str], bool]:
    """Return the servers of ``limit`` volume holder rows, each UUID once, and whether these are all rows. ``start`` is
    the position in the table to begin at, from 0 to 1; the scan wraps around at the end."""
    holders = volume_holders.c
    first = int((tx.execute(sa.select(sa.func.max(holders.id))).scalar() or 0) * start)
    found: list[str] = []
    for part in (holders.id > first, holders.id <= first):
        if len(found) < limit:
            found += tx.execute(sa.select(holders.server_uuid).where(part).order_by(holders.id)
                                .limit(limit - len(found))).scalars()
    return list(dict.fromkeys(found)), len(found) < limit


# -- pending cleanups

def add_cleanups(tx: Connection, added: Sequence[Cleanup], after_s: int = 0) -> None:
    """Schedule cleanups to run in ``after_s`` seconds or later. Existing ones stay unchanged."""
    if added:
        insert_ignoring(tx, volume_cleanups, [{
            "kind": one.kind, "what": one.what, "server_uuid": one.server_uuid, "tries": 0, "due_at": later(after_s),
            "created_at": utc_now()} for one in added])


def drop_cleanups(tx: Connection, done: Sequence[Cleanup]) -> None:
    """Delete cleanups that are done or no longer needed."""
    for one in done:
        tx.execute(sa.delete(volume_cleanups).where(
            volume_cleanups.c.kind == one.kind, volume_cleanups.c.what == one.what,
            volume_cleanups.c.server_uuid == one.server_uuid))


def due(tx: Connection, limit: int) -> list[Cleanup]:
    """Return the cleanups that are due, the oldest first."""
    rows = tx.execute(sa.select(*[volume_cleanups.c[name] for name in Cleanup._fields])
                      .where(volume_cleanups.c.due_at <= utc_now()).order_by(volume_cleanups.c.due_at).limit(limit))
    return [Cleanup(*row) for row in rows]


def of_server(tx: Connection, server_uuid: str) -> list[Cleanup]:
    """Return all cleanups of a server, due or not."""
    rows = tx.execute(sa.select(*[volume_cleanups.c[name] for name in Cleanup._fields])
                      .where(volume_cleanups.c.server_uuid == server_uuid).order_by(volume_cleanups.c.id))
    return [Cleanup(*row) for row in rows]


def put_off(tx: Connection, one: Cleanup, seconds: int) -> bool:
    """Claim a cleanup for one attempt now; the next one follows after ``seconds``. False if another process has claimed
    it."""
    return tx.execute(sa.update(volume_cleanups)
                      .where(volume_cleanups.c.id == one.id, volume_cleanups.c.tries == one.tries)
                      .values(tries=one.tries + 1, due_at=later(seconds))).rowcount == 1


def pending(tx: Connection, limit: int) -> list[Cleanup]:
    """Return all cleanups, the oldest first."""
    rows = tx.execute(sa.select(*[volume_cleanups.c[name] for name in Cleanup._fields])
                      .order_by(volume_cleanups.c.id).limit(limit))
    return [Cleanup(*row) for row in rows]
