"""What a request to the scheduler tells of other servers, so that no scheduler has to know them all."""

from __future__ import annotations

from typing import Any

from nova.conductor.world import World
from nova.db import placement_facts
from nova.model import hints
from nova.model.scheduling import PlacementRequest


def known(world: World, request: PlacementRequest) -> dict[str, Any]:
    """Fields of the request: one statement, and one more for each fact that the request or an option asks for."""
    settings = world.settings
    named = hints.all_named(request.hints)
    found: dict[str, Any] = {}
    with world.cell.reading() as tx:
        found["busy"] = placement_facts.busy(tx)
        if named:
            found["server_hosts"] = placement_facts.hosts_of(tx, named)
        if settings.image_props_weight_multiplier and request.image_properties:
            found["image_matches"] = placement_facts.image_matches(tx, request.image_properties,
                                                                   settings.image_props_weight_setting)
    if settings.limit_tenants_to_placement_aggregate:
        with world.api.reading() as tx:
            found["tenant_aggregates"] = placement_facts.has_aggregates(tx, request.project_id)
    return found
