"""Grace after a service report gap: if no service of a kind reported, the cause is more likely a broken connection than
the death of all of them.

The first report ends the gap. The other services that were alive when it began get half of ``service_down_time`` to
report before they count as down, for all readers: the grace is written to their heartbeat time. A service that died
meanwhile counts as down after that; a service that was down before stays down. While the broker is unavailable and no
service can report, conductors extend the grace periodically (:func:`bridge`). So operations that resume with the
broker, before the first report, do not find services down by mistake.
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
    """The hosts whose service of one kind counts as seen at ``seen_at``, after ``silent_s`` seconds without any report
    of that kind."""

    hosts: tuple[str, ...]
    seen_at: Time
    silent_s: float


def end(tx: Connection, reporting: Collection[str], down_after_s: int) -> dict[str, Excused]:
    """Return, by binary, the services excused because the reports of ``reporting`` end a gap. Call before these reports
    are written."""
    gaps = _report_gaps(tx, down_after_s)
    return {binary: _excused(tx, binary, gaps) for binary in sorted(reporting) if binary in gaps.begun}


def bridge(tx: Connection, down_after_s: int) -> dict[str, Excused]:
    """Return, by binary, the services that were alive when all reports stopped (except conductors'). Empty if any of
    these services reports."""
    gaps = _report_gaps(tx, down_after_s)
    newest = max((heard for binary, heard in gaps.heard.items() if binary != CONDUCTOR), default=gaps.now)
    if gaps.now - newest <= gaps.half:
        return {}
    return {binary: _excused(tx, binary, gaps) for binary, heard in sorted(gaps.begun.items())
            if newest - heard <= gaps.half and binary != CONDUCTOR}


class _ReportGaps(NamedTuple):
    """The report times. ``heard``: the last report of each binary; ``begun``: the same for binaries without a report
    for ``half`` of ``service_down_time``."""

    now: Time
    half: datetime.timedelta
    heard: dict[str, Time]

    @property
    def begun(self) -> dict[str, Time]:
        return {binary: heard for binary, heard in self.heard.items() if self.now - heard > self.half}


def _report_gaps(tx: Connection, down_after_s: int) -> _ReportGaps:
    last = sa.select(services.c.binary, sa.func.max(services.c.last_seen_at)).where(
        services.c.deleted == 0, services.c.last_seen_at.is_not(None)).group_by(services.c.binary)
    now = as_time(tx.execute(sa.select(utc_now())).scalar_one())
    heard = {binary: as_time(seen) for binary, seen in tx.execute(last)}
    return _ReportGaps(now, datetime.timedelta(seconds=down_after_s / 2), heard)


def _excused(tx: Connection, binary: str, gaps: _ReportGaps) -> Excused:
    heard, soon = gaps.heard[binary], gaps.now - gaps.half
    alive = sa.and_(services.c.binary == binary, services.c.deleted == 0,
                    services.c.last_seen_at > heard - gaps.half, services.c.last_seen_at < soon)
    hosts = tuple(sorted(tx.execute(sa.select(services.c.host).where(alive)).scalars()))
    tx.execute(sa.update(services).where(alive).values(last_seen_at=soon))
    return Excused(hosts, soon, (gaps.now - heard).total_seconds())
