"""Quota sets of projects and users, quota classes, and the limits a user sees. ``tenant_id`` is a project's id."""

from __future__ import annotations

from nova.api.handlers.users import sane_user
from nova.api.request import Request
from nova.api.view import answers
from nova.api.views import quotas as views
from nova.model.quota.quotas import QuotaClass, QuotaUpdate

OTHER_PROJECT_RULE = "os_compute_api:limits:other_project"


@answers({"limits": {"rate": ["object"], "absolute": views.ABSOLUTE}})
def limits(req: Request) -> dict[str, object]:
    """Show the limits and usage of the caller's project. ``rate`` is always empty, because the rate of requests is not
    limited. Raises api.NeedsProject (403) without a project."""
    project_id = req.query.one("tenant_id")
    if project_id is not None:
        req.authorize(project_id=project_id, rule=OTHER_PROJECT_RULE)
    quotas = req.conductor.get_quotas(project_id or req.project_id, None, True)
    return {"limits": {"rate": [], "absolute": views.ABSOLUTE(quotas, req)}}


@answers({"quota_set": views.NAMED})
def show(req: Request, tenant_id: str) -> dict[str, object]:
    """Show the limits of a project, or with ``user_id`` the limits of a user in it; -1 means unlimited. Raises
    api.BadUser, service.NotAProject (400)."""
    req.authorize(project_id=tenant_id)
    return views.named(views.LIMITS, tenant_id, req.conductor.get_quotas(tenant_id, _user(req), False), req)


@answers({"quota_set": views.NAMED_DETAIL})
def detail(req: Request, tenant_id: str) -> dict[str, object]:
    """Show limits as in the short form, each with its used and reserved amounts. Raises api.BadUser,
    service.NotAProject (400)."""
    req.authorize(project_id=tenant_id)
    return views.named(views.DETAIL, tenant_id, req.conductor.get_quotas(tenant_id, _user(req), True), req)


@answers({"quota_set": views.NAMED})
def defaults(req: Request, tenant_id: str) -> dict[str, object]:
    """Show the limits of a project without its own limits; they are the same for all projects. Raises
    service.NotAProject (400)."""
    req.authorize(project_id=tenant_id)
    if tenant_id != req.context.project_id:
        req.conductor.get_quotas(tenant_id, None, False)  # checks that the project exists
    return views.named(views.LIMITS, tenant_id, req.conductor.get_default_quotas(), req)


@answers({"quota_set": views.LIMITS})
def update(req: Request, tenant_id: str) -> dict[str, object]:
    """Write limits of a project, or of a user in it; omitted limits stay. Raises quota.AboveProject, quota.BelowUse
    (not with ``force``), api.BadUser, service.NotAProject (400); quota.KeptElsewhere (403)."""
    req.authorize(project_id=tenant_id)
    asked = dict(req.body["quota_set"])
    force = asked.pop("force", False)
    quotas = req.conductor.update_quotas(QuotaUpdate(
        project_id=tenant_id, user_id=_user(req), limits=asked, force=force))
    return {"quota_set": views.LIMITS(quotas, req)}


def delete(req: Request, tenant_id: str) -> None:
    """Reset a project, or a user in it, to the default limits. Idempotent. Raises api.BadUser (400);
    quota.KeptElsewhere (403)."""
    req.authorize(project_id=tenant_id)
    req.conductor.delete_quotas(tenant_id, _user(req))


# classes

@answers({"quota_class_set": views.NAMED_CLASS})
def show_class(req: Request, quota_class: str) -> dict[str, object]:
    """Show the limits of a class; others are the configured ones. An unknown class is not an error."""
    found = req.conductor.get_quota_class(quota_class)
    return {"quota_class_set": {"id": quota_class, **views.CLASS_LIMITS(found, req)}}


@answers({"quota_class_set": views.CLASS_LIMITS})
def update_class(req: Request, quota_class: str) -> dict[str, object]:
    """Write limits of a class. The class ``default`` has the default limits of all projects; other classes are stored
    without effect."""
    asked = QuotaClass(class_name=quota_class, limits=req.body["quota_class_set"])
    return {"quota_class_set": views.CLASS_LIMITS(req.conductor.update_quota_class(asked), req)}


def _user(req: Request) -> str | None:
    """Return the user whose limits within the project are requested; None (also for empty text) for the project's
    own."""
    return sane_user(req.query.one("user_id")) or None
