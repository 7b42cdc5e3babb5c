"""Handlers for usage: of a provider, and of a project."""

from __future__ import annotations

from nova import errors
from nova.model.placement.providers import PlacementUsageQuery
from nova.placement import versions
from nova.placement.request import PlacementAPIRequest
from nova.placement.views import providers as views

ALL = "all"


def of_provider(req: PlacementAPIRequest, uuid: str) -> dict[str, object]:
    """Show the usage of each class that a provider has. Raises placement.ResourceProviderNotFound (404)."""
    return views.usages(req.conductor.get_usages(uuid))


def of_project(req: PlacementAPIRequest) -> dict[str, object]:
    """Sum up the usage of a project (and of a user in it); from 1.38 by consumer type. Raises
    placement.QueryMissingValue without ``project_id`` (400)."""
    project = req.query.one("project_id")
    req.authorize(project)
    if project is None:
        raise errors.placement.QueryMissingValue(reason="The project_id parameter is required.")
    by_type = versions.usages_are_by_type(req.version)
    query = PlacementUsageQuery(project_id=project, user_id=req.query.one("user_id"),
                                consumer_type=req.query.one("consumer_type") if by_type else ALL)
    groups = req.conductor.get_project_usages(query)
    if by_type:
        return {"usages": {one.consumer_type: {"consumer_count": one.consumers, **one.used} for one in groups}}
    return {"usages": {name: amount for one in groups for name, amount in one.used.items()}}
