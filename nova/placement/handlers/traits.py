"""Handlers for traits: their names, and the traits of a provider."""

from __future__ import annotations

from nova import errors
from nova.model.base import utcnow
from nova.model.placement.providers import ProviderTraits, TraitQuery
from nova.placement.request import PlacementAnswer, PlacementAPIRequest

ASSOCIATED = {"true": True, "false": False}


def index(req: PlacementAPIRequest) -> dict[str, object]:
    """List the names of traits: all, by list (``in:``), by prefix (``startswith:``), or in use by any
    provider. Raises placement.QueryBadValue (400)."""
    return {"traits": list(req.conductor.list_traits(_asked(req)))}


def _asked(req: PlacementAPIRequest) -> TraitQuery:
    """Return the trait query of a request. Raises placement.QueryBadValue."""
    name, associated = req.query.one("name"), req.query.one("associated")
    if associated is not None and associated.lower() not in ASSOCIATED:
        raise errors.placement.QueryBadValue(name="associated", reason="it must be true or false.")
    having = None if associated is None else ASSOCIATED[associated.lower()]
    kind, colon, value = (name or "").partition(":")
    if name is not None and not (colon and kind in ("in", "startswith")):
        raise errors.placement.QueryBadValue(name="name",
                                             reason="it must be of the form in:NAME,... or startswith:PREFIX.")
    return TraitQuery(names=tuple(value.split(",")) if kind == "in" else None,
                      prefix=value if kind == "startswith" else None, associated=having)


def show(req: PlacementAPIRequest, name: str) -> PlacementAnswer:
    """Answer 204 with an empty body if the trait exists. Raises placement.NotFound (404)."""
    if not req.conductor.list_traits(TraitQuery(names=(name,))):
        raise errors.placement.NotFound(kind="trait", name=name)
    return PlacementAnswer(None, 204)


def create(req: PlacementAPIRequest, name: str) -> PlacementAnswer:
    """Ensure that a custom trait exists: 201 if it is new, otherwise 204. Raises placement.NameInvalid,
    placement.NameStandard (400)."""
    made = req.conductor.create_trait(name)
    return PlacementAnswer(None, 201 if made else 204, f"/traits/{name}", utcnow())


def delete(req: PlacementAPIRequest, name: str) -> None:
    """Delete a custom trait that no provider has. Raises placement.NameNotFound (404); placement.NameStandard (400);
    placement.NameInuse (409)."""
    req.conductor.delete_trait(name)


def of_provider(req: PlacementAPIRequest, uuid: str) -> dict[str, object]:
    """List the traits of a provider, sorted by name. Raises placement.ResourceProviderNotFound (404)."""
    return _shown(req.conductor.get_provider_traits(uuid))


def replace(req: PlacementAPIRequest, uuid: str) -> dict[str, object]:
    """Replace all traits of a provider. Traits reported by a compute host return with its next report. Raises
    placement.ResourceProviderNotFound (404); placement.TraitUnknown (400); placement.ConcurrentUpdate (409)."""
    return _shown(req.conductor.set_provider_traits(ProviderTraits(
        uuid=uuid, generation=req.body["resource_provider_generation"], traits=tuple(req.body["traits"]))))


def clear(req: PlacementAPIRequest, uuid: str) -> None:
    """Delete all traits of a provider, at any generation. Raises placement.ResourceProviderNotFound (404)."""
    req.conductor.set_provider_traits(ProviderTraits(uuid=uuid))


def _shown(found: ProviderTraits) -> dict[str, object]:
    return {"resource_provider_generation": found.generation, "traits": sorted(found.traits)}
