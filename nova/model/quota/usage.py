"""What projects used of the cloud in a time, and the audits that tell it to others."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import Page, Time, Value

SECONDS_AN_HOUR = 3600.0


class UsageQuery(Value):
    """Servers that ran at some moment between ``start`` and ``end`` (UTC), of one project or of all.

    ``paged``: only a page of servers counts (``page.marker`` is a server's uuid; by project, then uuid). Otherwise the
    sums are over all. ``servers``: the servers are told, too: those of the page, or the first that fit on one.
    """

    start: Time
    end: Time
    project_id: str | None = None
    servers: bool = False
    paged: bool = False
    page: Page = Page()


class ServerUsage(Value):
    """One server's part. ``hours`` are those within the query's time; ``uptime_s`` is since its launch."""

    uuid: str
    name: str
    project_id: str
    flavor: str
    memory_mb: int
    local_gb: int
    vcpus: int
    started_at: Time
    ended_at: Time | None = None
    state: str
    hours: float
    uptime_s: int


class ProjectUsage(Value):
    """Sums over a project's servers: hours, and hours times what each server has."""

    project_id: str
    hours: float = 0.0
    local_gb_hours: float = 0.0
    memory_mb_hours: float = 0.0
    vcpu_hours: float = 0.0
    servers: tuple[ServerUsage, ...] = ()


class UsagePage(Value):
    """By project id. ``count`` servers were looked at; ``last`` is the uuid of the last one (of a page)."""

    projects: tuple[ProjectUsage, ...] = ()
    count: int = 0
    last: str | None = None


RUNNING, DONE = "RUNNING", "DONE"


class HostAudit(Value):
    """One host's audit of a period: how many servers were told of, and how many could not be."""

    host: str
    state: str = RUNNING
    servers: int = 0
    errors: int = 0
    message: str = ""


class UsageAudits(Value):
    """The audits of a period. ``hosts``: all compute hosts there are."""

    period_beginning: Time
    period_ending: Time
    hosts: tuple[str, ...] = ()
    audits: Mapping[str, HostAudit] = {}
