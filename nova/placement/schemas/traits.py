"""Bodies and queries of traits."""

from __future__ import annotations

from nova.placement.schemas import GENERATION, NAME
from nova.web.schema import Body, Query, param, row
from nova.web.specs import Spec

REPLACE = Body(row("resource_provider_generation", "integer", required=True, **GENERATION),
               row("traits", "array", required=True, items=Spec(type="string", **NAME), unique_items=True))

LIST_QUERY = Query(param("name", repeat=False), param("associated", repeat=False), refuse_unknown="1.0")
