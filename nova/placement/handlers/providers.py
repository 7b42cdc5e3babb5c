"""Handlers for resource providers."""

from __future__ import annotations

import uuid as uuids

from nova.model.placement.providers import NewProvider, ProviderQuery, ProviderUpdate
from nova.placement import query_parser, versions
from nova.placement.request import PlacementAnswer, PlacementAPIRequest, canonical
from nova.placement.views import providers as views


def index(req: PlacementAPIRequest) -> PlacementAnswer:
    """List the providers that meet all conditions of the query, without pagination. Raises placement.QueryBadValue,
    placement.NameUnknown (400)."""
    uuid = req.query.one("uuid")
    query = ProviderQuery(name=req.query.one("name"), uuid=canonical(uuid) if uuid else None,
                          group=query_parser.group(req.query, req.version))
    return views.listing(req, req.conductor.list_providers(query))


def create(req: PlacementAPIRequest) -> PlacementAnswer:
    """Create a provider, with a generated UUID if the body has none. Raises placement.DuplicateName (409);
    placement.ResourceProviderBadParent (400)."""
    asked = req.body.get("uuid")
    made = req.conductor.create_provider(NewProvider(uuid=canonical(asked) if asked else str(uuids.uuid4()),
                                                     name=req.body["name"], parent_uuid=_parent(req)))
    location = views.path_of(made.uuid)
    if versions.created_provider_is_answered(req.version):
        return PlacementAnswer(views.shown(req, made), 200, location, made.updated_at)
    return PlacementAnswer(None, 201, location)


def show(req: PlacementAPIRequest, uuid: str) -> PlacementAnswer:
    """Show one provider. Raises placement.ResourceProviderNotFound (404)."""
    return views.answer(req, req.conductor.get_provider(uuid))


def update(req: PlacementAPIRequest, uuid: str) -> PlacementAnswer:
    """Rename a provider or set its parent; from 1.37 the parent can change. Raises placement.ResourceProviderNotFound
    (404); placement.ResourceProviderBadParent (400); placement.DuplicateName, ResourceProviderHostsOwn (409)."""
    change = ProviderUpdate(uuid=uuid, name=req.body["name"], parent_uuid=_parent(req),
                            parent_asked="parent_provider_uuid" in req.body,
                            may_reparent=versions.may_reparent(req.version))
    return views.answer(req, req.conductor.update_provider(change))


def delete(req: PlacementAPIRequest, uuid: str) -> None:
    """Delete an unused provider. Raises placement.ResourceProviderNotFound (404); placement.ResourceProviderInuse,
    ResourceProviderCannotDeleteParent, ResourceProviderHostsOwn (409)."""
    req.conductor.delete_provider(uuid)


def _parent(req: PlacementAPIRequest) -> str | None:
    asked = req.body.get("parent_provider_uuid")
    return canonical(asked) if asked else None
