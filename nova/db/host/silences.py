"""Silence that is ours: after a time in which no daemon of a kind was heard of, rather we were cut off than that all of
them died at once.

The first one that is heard again ends it. The others that were alive when it began get half of ``service_down_time`` to
report before they count as down, for everybody who asks: it is written where their reports are. One that really died
meanwhile is found down after that; one that was down before stays down. While the broker is away, and nobody could
report, conductors write so again and again (:func:`bridge`): what goes on as soon as it is back, before the first
report, finds nobody down who was not.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.host.services import CONDUCTOR, as_time
from nova.db.models.cell import services
from nova.db.sql.types import utc_now
from nova.model.base import Time


class Excused(NamedTuple):
    """Hosts whose daemons of one kind count as seen at ``seen_at``; nobody of it was heard of for ``silent_s``."""

    hosts: tuple[str, ...]
    seen_at: Time
    silent_s: float


def end(tx: Connection, reporting: Collection[str], down_after_s: int) -> dict[str, Excused]:
    """By kind (binary), before the reports of ``reporting`` are written: those whose silence this ends."""
    silences = _silences(tx, down_after_s)
    return {binary: _excused(tx, binary, silences) for binary in sorted(reporting) if binary in silences.begun}


def bridge(tx: Connection, down_after_s: int) -> dict[str, Excused]:
    """By kind: who was alive when the daemons fell silent, conductors apart. Nobody where one of them is heard of."""
    silences = _silences(tx, down_after_s)
    newest = max((heard for binary, heard in silences.heard.items() if binary != CONDUCTOR), default=silences.now)
    if silences.now - newest <= silences.half:
        return {}
    return {binary: _excused(tx, binary, silences) for binary, heard in sorted(silences.begun.items())
            if newest - heard <= silences.half and binary != CONDUCTOR}


class _Silences(NamedTuple):
    """``heard``: by kind, when one was heard of last; ``begun``: of those of which nobody was for ``half`` of the
    time."""

    now: Time
    half: datetime.timedelta
    heard: dict[str, Time]

    @property
    def begun(self) -> dict[str, Time]:
        return {binary: heard for binary, heard in self.heard.items() if self.now - heard > self.half}


def _silences(tx: Connection, down_after_s: int) -> _Silences:
    last = sa.select(services.c.binary, sa.func.max(services.c.last_seen_at)).where(
        services.c.deleted == 0, services.c.last_seen_at.is_not(None)).group_by(services.c.binary)
    now = as_time(tx.execute(sa.select(utc_now())).scalar_one())
    heard = {binary: as_time(seen) for binary, seen in tx.execute(last)}
    return _Silences(now, datetime.timedelta(seconds=down_after_s / 2), heard)


def _excused(tx: Connection, binary: str, silences: _Silences) -> Excused:
    heard, soon = silences.heard[binary], silences.now - silences.half
    alive = sa.and_(services.c.binary == binary, services.c.deleted == 0,
                    services.c.last_seen_at > heard - silences.half, services.c.last_seen_at < soon)
    hosts = tuple(sorted(tx.execute(sa.select(services.c.host).where(alive)).scalars()))
    tx.execute(sa.update(services).where(alive).values(last_seen_at=soon))
    return Excused(hosts, soon, (silences.now - heard).total_seconds())
