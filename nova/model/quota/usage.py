"""Usage of projects over time, and the audits that report it."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import Page, Time, Value

SECONDS_AN_HOUR = 3600.0


class UsageQuery(Value):
    """Query for servers that ran at some time between ``start`` and ``end`` (UTC), of one project or of all.

    ``paged``: count only one page of servers (``page.marker`` is a server's uuid; sorted by project, then uuid).
    Otherwise the sums are over all servers. ``servers``: list the servers too, either of the page or the first ones up
    to a page's size.
    """

    start: Time
    end: Time
    project_id: str | None = None
    servers: bool = False
    paged: bool = False
    page: Page = Page()

    @property
    def sums_alone(self) -> bool:
        """Return whether only sums over all servers are requested."""
        return not (self.paged or self.servers)


class ServerUsage(Value):
    """Usage of one server. ``hours`` are within the query's time; ``uptime_s`` is since its launch."""

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
    """Sums over a project's servers: hours, and hours multiplied by each server's resources."""

    project_id: str
    hours: float = 0.0
    local_gb_hours: float = 0.0
    memory_mb_hours: float = 0.0
    vcpu_hours: float = 0.0
    servers: tuple[ServerUsage, ...] = ()


class UsagePage(Value):
    """Usage by project id. ``count`` is the number of servers included; ``last`` is the uuid of the last one (of a
    page)."""

    projects: tuple[ProjectUsage, ...] = ()
    count: int = 0
    last: str | None = None


RUNNING, DONE = "RUNNING", "DONE"


class HostAudit(Value):
    """Audit of one host for a period: the number of servers reported, and of failures."""

    host: str
    state: str = RUNNING
    servers: int = 0
    errors: int = 0
    message: str = ""


class UsageAudits(Value):
    """Audits of a period. ``hosts``: all existing compute hosts."""

    period_beginning: Time
    period_ending: Time
    hosts: tuple[str, ...] = ()
    audits: Mapping[str, HostAudit] = {}
