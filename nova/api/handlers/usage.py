"""Usage of projects in a period. Pages count servers, so a project's sums may continue on the next page."""

from __future__ import annotations

import datetime

from nova import errors, failures
from nova.api import versions
from nova.api.request import Request
from nova.api.view import LINKS, answers
from nova.api.views import usage as views
from nova.model.base import Time, utcnow
from nova.model.quota.usage import UsagePage, UsageQuery
from nova.web.formats import to_time


@answers({"tenant_usages": [views.PROJECT], "tenant_usages_links?": LINKS})
def index(req: Request) -> dict[str, object]:
    """List the usage of all projects; with ``detailed=1`` also of their servers."""
    query = _query(req, None, req.query.one("detailed", "0") == "1")
    found = req.conductor.get_usage(query)
    return {"tenant_usages": views.projects(found, query), **_next(req, "tenant_usages_links", found)}


@answers({"tenant_usage": (views.PROJECT, "object"), "tenant_usage_links?": LINKS})
def show(req: Request, tenant_id: str) -> dict[str, object]:
    """Show the usage of one project between ``start`` and ``end``, server by server; paged from 2.40. Raises
    quota.UsageBadTime, quota.UsageStartAfterEnd, api.PageMarkerNotFound (400)."""
    req.authorize(project_id=tenant_id)
    query = _query(req, tenant_id, True)
    found = req.conductor.get_usage(query)
    shown = views.projects(found, query)
    return {"tenant_usage": shown[0] if shown else {}, **_next(req, "tenant_usage_links", found)}


def _query(req: Request, project_id: str | None, servers: bool) -> UsageQuery:
    now = utcnow()
    start, end = _time(req, "start", now), _time(req, "end", now)
    if start > end:
        raise errors.quota.UsageStartAfterEnd(start=start.isoformat(), end=end.isoformat())
    return UsageQuery(start=start, end=end, project_id=project_id, servers=servers,
                      paged=versions.usage_is_paged(req.version), page=req.page())


def _time(req: Request, name: str, missing: Time) -> datetime.datetime:
    text = req.query.one(name)
    if text is None:
        return missing
    with failures.replaced(ValueError, lambda _: errors.quota.UsageBadTime(name=name, value=text)):
        return to_time(text)


def _next(req: Request, key: str, found: UsagePage) -> dict[str, list[dict[str, str]]]:
    """Return the link to the next page, which counts servers, not projects."""
    if not versions.usage_is_paged(req.version):
        return {}
    return req.next_links(key, range(found.count), found.last)
