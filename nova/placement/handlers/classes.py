"""Handlers for resource classes."""

from __future__ import annotations

from nova import errors
from nova.placement import versions
from nova.placement.request import PlacementAnswer, PlacementAPIRequest


def index(req: PlacementAPIRequest) -> dict[str, object]:
    """List all resource classes, standard and custom, without pagination."""
    return {"resource_classes": [_shown(req, name) for name in req.conductor.list_classes()]}


def create(req: PlacementAPIRequest) -> PlacementAnswer:
    """Create a custom resource class. Raises placement.Exists (409); placement.NameInvalid, placement.NameStandard
    (400)."""
    name = req.body["name"]
    if not req.conductor.create_class(name):
        raise errors.placement.Exists(kind="resource class", name=name)
    return PlacementAnswer(None, 201, _path(name))


def show(req: PlacementAPIRequest, name: str) -> dict[str, object]:
    """Show one resource class. Raises placement.NotFound (404)."""
    if name not in req.conductor.list_classes():
        raise errors.placement.NotFound(kind="resource class", name=name)
    return _shown(req, name)


def update(req: PlacementAPIRequest, name: str) -> PlacementAnswer:
    """Ensure that a custom class exists (from 1.7): 201 if it is new, otherwise 204. Before 1.7, rename it as the body
    requests. Raises placement.NameInvalid, NameStandard (400); before 1.7 placement.NameNotFound (404), NameTaken
    (409)."""
    if versions.classes_are_ensured(req.version):
        return PlacementAnswer(None, 201 if req.conductor.create_class(name) else 204, _path(name))
    req.conductor.rename_class(name, req.body["name"])
    return PlacementAnswer(_shown(req, req.body["name"]))


def delete(req: PlacementAPIRequest, name: str) -> None:
    """Delete a custom resource class. Raises placement.NameNotFound (404); placement.NameStandard (400);
    placement.NameInuse (409)."""
    req.conductor.delete_class(name)


def _path(name: str) -> str:
    return f"/resource_classes/{name}"


def _shown(req: PlacementAPIRequest, name: str) -> dict[str, object]:
    return {"name": name, "links": [{"rel": "self", "href": req.prefix + _path(name)}]}
