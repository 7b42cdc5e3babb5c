"""Usage of projects, the state of usage audits, and hosts' pending cleanups."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from nova import errors
from nova.conductor.engine.deps import Deps
from nova.conductor.queries.flavors import capped
from nova.db.host import host_cleanups, services
from nova.db.quota import ledger, usage, usage_audits
from nova.db.quota.usage import UsedServer
from nova.db.sql.engine import Connection
from nova.model.base import HostName, Time, utcnow
from nova.model.host.services import PendingCleanup
from nova.model.quota import periods
from nova.model.quota.usage import SECONDS_AN_HOUR, ProjectUsage, ServerUsage, UsageAudits, UsagePage, UsageQuery

TERMINATED = "terminated"


class UsageQueries:
    """The usage and cleanup calls of ConductorRPC."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def get_usage(self, query: UsageQuery) -> UsagePage:
        """Return only sums without servers and pages; else a page of servers by project, including deleted ones. Raises
        api.PageMarkerNotFound."""
        with self.deps.cell.reading() as tx:
            if query.sums_alone:
                return UsagePage(projects=usage.sums(tx, query))
            limit = capped(query.page.limit, self.deps.settings.max_limit)
            project = usage.project_of(tx, query) if query.page.marker else None
            if query.page.marker and project is None:
                raise errors.api.PageMarkerNotFound(marker=query.page.marker)
            rows = usage.page(tx, query, limit, project) if limit > 0 else []
            # without paging, the sums are those over all servers
            sums = usage.sums(tx, query) if not query.paged and len(rows) == limit else None
        return page_of(query, rows, sums)

    def get_usage_audits(self, before: Time | None) -> UsageAudits:
        """Return the period, all compute hosts, and the audits that were started for them. ``before`` None: now."""
        period = periods.last_complete(self.deps.settings.instance_usage_audit_period, before or utcnow())
        with self.deps.cell.reading() as tx:
            hosts, audits = usage_audits.compute_hosts(tx), usage_audits.of_period(tx, period)
        return UsageAudits(period_beginning=period[0], period_ending=period[1], hosts=hosts, audits=audits)

    # -- pending cleanups, which the contract names debts

    def list_debts(self, host: HostName | None) -> tuple[PendingCleanup, ...]:
        """Return the pending cleanups of a host, or of all hosts (None), the oldest first."""
        with self.deps.cell.reading() as tx:
            return host_cleanups.pending(tx, host)

    def forgive_debts(self, host: HostName) -> tuple[PendingCleanup, ...]:
        """Drop a host's pending cleanups and return them. Claims are released first: after a crash in between, a
        repeated call still finds the cleanups."""
        with self.deps.cell.reading() as tx:
            _refuse_registered(tx, host)
            pending = host_cleanups.pending(tx, host)
        for uuid in sorted({cleanup.server_uuid for cleanup in pending}):
            self._release(uuid, host)

        def drop(tx: Connection) -> None:
            _refuse_registered(tx, host)
            for cleanup in pending:
                host_cleanups.drop(tx, host, cleanup.id)
        self.deps.cell.transact(drop)
        return pending

    def _release(self, uuid: str, host: str) -> None:
        self.deps.feed.after_release(self.deps.api.transact(lambda tx: ledger.release_on(tx, uuid, host)))


def _refuse_registered(tx: Connection, host: str) -> None:
    if services.compute_id(tx, host) is not None:
        raise errors.quota.CleanupHostIsThere(host=host)


def page_of(query: UsageQuery, rows: Sequence[UsedServer], sums: Sequence[ProjectUsage] | None) -> UsagePage:
    """Return a page with these servers. ``sums``: over all servers; None: only the page's are counted."""
    projects = _by_project(query, rows)
    if sums is not None:
        listed = {one.project_id: one.servers for one in projects}
        projects = tuple(msgspec.structs.replace(one, servers=listed.get(one.project_id, ())) for one in sums)
    return UsagePage(projects=projects, count=len(rows), last=rows[-1].uuid if rows else None)


def _by_project(query: UsageQuery, rows: Sequence[UsedServer]) -> tuple[ProjectUsage, ...]:
    """Return the sums of the page's servers, which are sorted by project."""
    now = utcnow()
    found: dict[str, list[ServerUsage]] = {}
    for row in rows:
        found.setdefault(row.project_id, []).append(_server(query, row, now))
    return tuple(ProjectUsage(
        project_id=project, hours=sum(one.hours for one in used),
        local_gb_hours=sum(one.hours * one.local_gb for one in used),
        memory_mb_hours=sum(one.hours * one.memory_mb for one in used),
        vcpu_hours=sum(one.hours * one.vcpus for one in used),
        servers=tuple(used) if query.servers else ()) for project, used in found.items())


def _server(query: UsageQuery, row: UsedServer, now: Time) -> ServerUsage:
    """Return a server's usage. Its hours are the part of its life within the requested period, which may be in the
    future."""
    begun = max(row.launched_at, query.start)
    stopped = min(row.ended_at or query.end, query.end)
    return ServerUsage(
        uuid=row.uuid, name=row.name, project_id=row.project_id, flavor=row.flavor.name,
        memory_mb=row.flavor.memory_mb, local_gb=row.flavor.root_gb + row.flavor.ephemeral_gb,
        vcpus=row.flavor.vcpus, started_at=row.launched_at, ended_at=row.ended_at,
        state=TERMINATED if row.ended_at else row.vm_state,
        hours=(stopped - begun).total_seconds() / SECONDS_AN_HOUR,
        uptime_s=max(0, int(((row.ended_at or now) - row.launched_at).total_seconds())))
