"""Traits: their names, and which a provider has."""

from __future__ import annotations

from nova import errors
from nova.model.base import Json, utcnow
from nova.model.placement.providers import ProviderTraits, TraitQuery
from nova.placement.request import PlacementAnswer, PlacementAPIRequest

ASSOCIATED = {"true": True, "false": False}


def index(req: PlacementAPIRequest) -> dict[str, Json]:
    """List the names of traits: all, those ``in:`` a list or that ``startswith:`` a text, or those some provider has.
    placement.QueryBadValue (400)."""
    return {"traits": list(req.conductor.list_traits(_asked(req)))}


def _asked(req: PlacementAPIRequest) -> TraitQuery:
    """placement.QueryBadValue."""
    name, associated = req.query.one("name"), req.query.one("associated")
    if associated is not None and associated.lower() not in ASSOCIATED:
        raise errors.placement.QueryBadValue(name="associated", reason="it must be true or false.")
    having = None if associated is None else ASSOCIATED[associated.lower()]
    kind, colon, value = (name or "").partition(":")
    if name is not None and not (colon and kind in ("in", "startswith")):
        raise errors.placement.QueryBadValue(name="name",
                                             reason="it must be of the form in:NAME,... or startswith:BEGINNING.")
    return TraitQuery(names=tuple(value.split(",")) if kind == "in" else None,
                      prefix=value if kind == "startswith" else None, associated=having)


def show(req: PlacementAPIRequest, name: str) -> PlacementAnswer:
    """Answer 204 with an empty body when there is the trait. placement.NotFound (404)."""
    if not req.conductor.list_traits(TraitQuery(names=(name,))):
        raise errors.placement.NotFound(kind="trait", name=name)
    return PlacementAnswer(None, 204)


def create(req: PlacementAPIRequest, name: str) -> PlacementAnswer:
    """Make sure that a custom trait is there: 201 when it is new, else 204. placement.NameInvalid,
    placement.NameStandard (400)."""
    made = req.conductor.create_trait(name)
    return PlacementAnswer(None, 201 if made else 204, f"/traits/{name}", utcnow())


def delete(req: PlacementAPIRequest, name: str) -> None:
    """Delete a custom trait that no provider has. placement.NameNotFound (404); placement.NameStandard (400);
    placement.NameInuse (409)."""
    req.conductor.delete_trait(name)


def of_provider(req: PlacementAPIRequest, uuid: str) -> dict[str, Json]:
    """List the traits of a provider, in the order of their names. placement.ResourceProviderNotFound (404)."""
    return _shown(req.conductor.get_provider_traits(uuid))


def replace(req: PlacementAPIRequest, uuid: str) -> dict[str, Json]:
    """Put these traits in the place of all a provider had. A compute host's own come back with its next report.
    placement.ResourceProviderNotFound (404); placement.TraitUnknown (400); placement.ConcurrentUpdate (409)."""
    return _shown(req.conductor.set_provider_traits(ProviderTraits(
        uuid=uuid, generation=req.body["resource_provider_generation"], traits=tuple(req.body["traits"]))))


def clear(req: PlacementAPIRequest, uuid: str) -> None:
    """Take all traits from a provider, whatever its generation. placement.ResourceProviderNotFound (404)."""
    req.conductor.set_provider_traits(ProviderTraits(uuid=uuid))


def _shown(found: ProviderTraits) -> dict[str, Json]:
    return {"resource_provider_generation": found.generation, "traits": sorted(found.traits)}
