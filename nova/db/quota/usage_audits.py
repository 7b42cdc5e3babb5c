"""Usage audits: one row for each host and period. The runner whose lease holds the row reports the host's servers."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.host.services import COMPUTE
from nova.db.models.cell import runners, servers, services, usage_audits
from nova.db.quota.usage import ran_within
from nova.db.server.server_row import ServerRow
from nova.db.server.servers import SERVER_ROWS
from nova.db.sql.statements import delete_some, insert_ignoring
from nova.db.sql.types import later, utc_now
from nova.model.base import Time
from nova.model.quota.usage import DONE, RUNNING, HostAudit

Period = tuple[Time, Time]


def _of(period: Period) -> sa.ColumnElement[bool]:
    return sa.and_(usage_audits.c.period_beginning == period[0], usage_audits.c.period_ending == period[1])


def _free(runner_id: int) -> sa.ColumnElement[bool]:
    """Return the condition for unfinished audits that no live runner owns, or that this runner left after a failure."""
    alive = sa.select(runners.c.id).where(runners.c.lease_until > utc_now())
    return sa.and_(usage_audits.c.state == RUNNING, sa.or_(usage_audits.c.runner_id == runner_id,
                                                           usage_audits.c.runner_id.not_in(alive)))


def compute_hosts(tx: Connection) -> tuple[str, ...]:
    """Return the hosts with a nova-compute service that is not deleted, by name."""
    return tuple(tx.execute(sa.select(services.c.host).where(
        services.c.binary == COMPUTE, services.c.deleted == 0).order_by(services.c.host)).scalars())


def of_period(tx: Connection, period: Period) -> dict[str, HostAudit]:
    """Return the audits of a period by host; hosts without an audit yet are absent."""
    names = HostAudit.__struct_fields__
    rows = tx.execute(sa.select(*[usage_audits.c[name] for name in names]).where(_of(period))
                      .order_by(usage_audits.c.host))
    return {row.host: HostAudit(**{**row._mapping, "message": row.message or ""}) for row in rows}


def open_hosts(tx: Connection, period: Period, runner_id: int) -> list[str]:
    """Return compute hosts whose audit is neither done nor in progress."""
    joined = sa.and_(usage_audits.c.host == services.c.host, _of(period))
    return list(tx.execute(
        sa.select(services.c.host).join_from(services, usage_audits, joined, isouter=True)
        .where(services.c.binary == COMPUTE, services.c.deleted == 0,
               sa.or_(usage_audits.c.id.is_(None), _free(runner_id))).order_by(services.c.host)).scalars())


def take(tx: Connection, host: str, period: Period, runner_id: int) -> bool:
    """Claim the host's audit and restart it. False if another runner has it, or it is done."""
    fresh = {"state": RUNNING, "runner_id": runner_id, "servers": 0, "errors": 0, "message": None}
    insert_ignoring(tx, usage_audits, [{"host": host, "period_beginning": period[0], "period_ending": period[1],
                                        **fresh}])
    return tx.execute(sa.update(usage_audits).where(usage_audits.c.host == host, _of(period), _free(runner_id))
                      .values(**fresh)).rowcount == 1


def write(tx: Connection, audit: HostAudit, period: Period, runner_id: int) -> bool:
    """Record an audit's progress or completion. False, and no change, if another runner has claimed the row."""
    return tx.execute(sa.update(usage_audits).where(
        usage_audits.c.host == audit.host, _of(period), usage_audits.c.state == RUNNING,
        usage_audits.c.runner_id == runner_id)
        .values(state=audit.state, servers=audit.servers, errors=audit.errors,
                message=audit.message[:255] or None)).rowcount == 1


def servers_of(tx: Connection, host: str, period: Period, after: int, limit: int) -> list[ServerRow]:
    """Return a page of rows of the servers that ran on the host in the period, including deleted ones, by key."""
    chosen = sa.select(SERVER_ROWS.text).where(servers.c.host == host, servers.c.id > after, ran_within(*period))
    return SERVER_ROWS.of(tx.execute(chosen.order_by(servers.c.id).limit(limit)))


def purge(tx: Connection, before: Time, older_than_s: int, limit: int) -> int:
    """Delete up to ``limit`` audits of periods that ended before ``before`` and long ago; return their number."""
    return delete_some(tx, usage_audits, sa.and_(usage_audits.c.period_ending < before,
                                                 usage_audits.c.period_ending < later(-older_than_s)), limit)


__all__ = ["DONE", "RUNNING", "Period", "compute_hosts", "of_period", "open_hosts", "purge", "servers_of", "take",
           "write"]
