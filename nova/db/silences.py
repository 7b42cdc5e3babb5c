"""Silence that is ours: after a time in which no daemon of a kind was heard of, rather we were cut off than that all of
them died at once.

The first one that is heard again ends it. The others that were alive when it began get half of ``service_down_time`` to
report before they count as down, for everybody who asks: it is written where their reports are. One that really died
meanwhile is found down after that; one that was down before stays down.
"""

from __future__ import annotations

import datetime
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.cell import services
from nova.db.services import as_time
from nova.db.types import utc_now
from nova.model.base import Time


class Excused(NamedTuple):
    """Hosts whose daemons of one kind count as seen at ``seen_at``; nobody of it was heard of for ``silent_s``."""

    hosts: tuple[str, ...]
    seen_at: Time
    silent_s: float


def end(tx: Connection, binary: str, down_after_s: int) -> Excused | None:
    """Before the first report of a daemon of this kind is written. None: there was no silence, or nobody to excuse."""
    mine = sa.and_(services.c.binary == binary, services.c.deleted == 0)
    heard, clock = tx.execute(sa.select(sa.func.max(services.c.last_seen_at), utc_now()).where(mine)).one()
    if heard is None:
        return None
    half, now, heard = datetime.timedelta(seconds=down_after_s / 2), as_time(clock), as_time(heard)
    if now - heard <= half:
        return None
    alive = sa.and_(mine, services.c.last_seen_at > heard - half, services.c.last_seen_at < now - half)
    hosts = tuple(sorted(tx.execute(sa.select(services.c.host).where(alive)).scalars()))
    tx.execute(sa.update(services).where(alive).values(last_seen_at=now - half))
    return Excused(hosts, now - half, (now - heard).total_seconds())
