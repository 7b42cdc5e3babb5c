"""Views of resource providers, their aggregates and usages."""

from __future__ import annotations

from typing import Any

from nova.model.placement.providers import Provider, ProviderAggregates, ProviderUsages
from nova.placement.request import PlacementAnswer, PlacementAPIRequest
from nova.web.ranges import within

#: Relation, and the version that added it.
LINKS = (("inventories", None), ("usages", None), ("aggregates", "1.1"), ("traits", "1.6"), ("allocations", "1.11"))
TREE, AGGREGATE_GENERATION = "1.14", "1.19"  # the versions that added these


def path_of(uuid: str) -> str:
    """Return the path of a provider, relative to the API."""
    return f"/resource_providers/{uuid}"


def shown(req: PlacementAPIRequest, one: Provider) -> dict[str, object]:
    """Return one provider with links to its parts; links and fields depend on the version."""
    href = req.prefix + path_of(one.uuid)
    links = [{"rel": "self", "href": href}]
    links += [{"rel": name, "href": f"{href}/{name}"} for name, since in LINKS if within(req.version, since, None)]
    body: dict[str, Any] = {"uuid": one.uuid, "name": one.name, "generation": one.generation, "links": links}
    if within(req.version, TREE, None):
        body |= {"parent_provider_uuid": one.parent_uuid, "root_provider_uuid": one.root_uuid or one.uuid}
    return body


def answer(req: PlacementAPIRequest, one: Provider) -> PlacementAnswer:
    """Return one provider as a complete response, dated by its last change."""
    return PlacementAnswer(shown(req, one), at=one.updated_at)


def listing(req: PlacementAPIRequest, found: tuple[Provider, ...]) -> PlacementAnswer:
    """Return all providers found, in one response dated by their newest change; now, if there are none."""
    times = [one.updated_at for one in found if one.updated_at]
    return PlacementAnswer({"resource_providers": [shown(req, one) for one in found]}, at=max(times, default=None))


def aggregates(req: PlacementAPIRequest, one: ProviderAggregates) -> dict[str, object]:
    """Return a provider's aggregates, and from 1.19 its generation."""
    body: dict[str, Any] = {"aggregates": list(one.aggregates)}
    if within(req.version, AGGREGATE_GENERATION, None):
        body["resource_provider_generation"] = one.generation
    return body


def usages(one: ProviderUsages) -> dict[str, object]:
    """Return the ``usages`` by class, with the provider's generation."""
    return {"resource_provider_generation": one.generation, "usages": dict(one.used)}
