"""The body of a provider's aggregates: a list before 1.19, then an object with the generation."""

from __future__ import annotations

from nova.placement.schemas import GENERATION
from nova.web.schema import BODY, Body, row
from nova.web.specs import Spec

_UUIDS = Spec(type="string", format="uuid")

REPLACE = Body(
    row(BODY, "array", items=_UUIDS, unique_items=True, until="1.18"), row(BODY, "object", since="1.19"),
    row("aggregates", "array", required=True, items=_UUIDS, unique_items=True, since="1.19"),
    row("resource_provider_generation", "integer", required=True, since="1.19", **GENERATION))
