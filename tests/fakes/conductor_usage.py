"""The fake conductor's part for usage, its audits, and debts."""

from __future__ import annotations

import datetime

from nova import errors
from nova.model.base import Time
from nova.model.services import Debt
from nova.model.usage import ProjectUsage, ServerUsage, UsageAudits, UsagePage, UsageQuery

LAUNCHED = datetime.datetime(2026, 1, 1, 0, 0, 0, 541277)


def server_usage(uuid: str, project_id: str = "demo", **fields: object) -> ServerUsage:
    """One hour of a small server."""
    return ServerUsage(**{"uuid": uuid, "name": "vm", "project_id": project_id, "flavor": "m1", "memory_mb": 512,
                          "local_gb": 1, "vcpus": 1, "started_at": LAUNCHED, "state": "active", "hours": 1.0,
                          "uptime_s": 3600, **fields})


class Usage:
    """``used``: servers' usage, whatever the time asked for; pages of them by project and uuid."""

    def __init__(self) -> None:
        super().__init__()
        self.usages: list[ServerUsage] = []
        self.usage_queries: list[UsageQuery] = []
        self.audits: UsageAudits | None = None
        self.audit_times: list[Time | None] = []
        self.debts: list[Debt] = []

    def get_usage(self, query: UsageQuery) -> UsagePage:
        self.usage_queries.append(query)
        held = sorted((one for one in self.usages if query.project_id in (None, one.project_id)),
                      key=lambda one: (one.project_id, one.uuid))
        uuids = [one.uuid for one in held]
        if query.page.marker is not None:
            if query.page.marker not in uuids:
                raise errors.Invalid(f"marker [{query.page.marker}] not found")
            held = held[uuids.index(query.page.marker) + 1:]
        if query.paged:
            held = held[:query.page.limit]
        projects = sorted({one.project_id for one in held})
        return UsagePage(projects=tuple(self._sum(query, project, held) for project in projects), count=len(held),
                         last=held[-1].uuid if held else None)

    @staticmethod
    def _sum(query: UsageQuery, project: str, held: list[ServerUsage]) -> ProjectUsage:
        mine = tuple(one for one in held if one.project_id == project)
        return ProjectUsage(project_id=project, hours=sum(one.hours for one in mine),
                            local_gb_hours=sum(one.hours * one.local_gb for one in mine),
                            memory_mb_hours=sum(one.hours * one.memory_mb for one in mine),
                            vcpu_hours=sum(one.hours * one.vcpus for one in mine),
                            servers=mine if query.servers else ())

    def get_usage_audits(self, before: Time | None) -> UsageAudits:
        self.audit_times.append(before)
        if self.audits is None:
            raise errors.NotSupported("the fake conductor was given no audits")
        return self.audits

    def list_debts(self, host: str | None) -> tuple[Debt, ...]:
        return tuple(debt for debt in self.debts if host in (None, debt.host))

    def forgive_debts(self, host: str) -> tuple[Debt, ...]:
        struck = self.list_debts(host)
        self.debts = [debt for debt in self.debts if debt.host != host]
        return struck
