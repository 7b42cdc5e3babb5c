"""Bodies of inventories."""

from __future__ import annotations

from nova.placement.schemas import CLASS, GENERATION, MAX_INT, NAME
from nova.web.schema import Body, Field, row
from nova.web.specs import Rules

MOST_RATIO = 3.40282e+38


def record(prefix: str = "") -> tuple[Field, ...]:
    """Return the fields of one inventory; ``prefix`` ends in a dot."""
    positive: Rules = {"min": 1, "max": MAX_INT}
    return (row(f"{prefix}total", "integer", required=True, **positive),
            row(f"{prefix}reserved", "integer", min=0, max=MAX_INT),
            *(row(f"{prefix}{name}", "integer", **positive) for name in ("min_unit", "max_unit", "step_size")),
            row(f"{prefix}allocation_ratio", "number", above=0, max=MOST_RATIO))


def records(prefix: str = "") -> tuple[Field, ...]:
    """Return the fields of a provider's inventories with its generation."""
    of_class = f"{prefix}inventories./{CLASS}/"
    return (row(f"{prefix}resource_provider_generation", "integer", required=True, **GENERATION),
            row(f"{prefix}inventories", "object", required=True), row(of_class, "object"), *record(f"{of_class}."))


CREATE = Body(row("resource_class", "string", required=True, **NAME),
              row("resource_provider_generation", "integer", **GENERATION), *record())
UPDATE = Body(row("resource_provider_generation", "integer", required=True, **GENERATION), *record())
REPLACE = Body(*records())
