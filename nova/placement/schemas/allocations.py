"""Bodies of allocations: a list of providers before 1.12, then an object by provider."""

from __future__ import annotations

from nova.placement.schemas import CLASS, GENERATION, MAX_INT, NAME, SUFFIX, UUID
from nova.placement.schemas.inventories import records
from nova.web.schema import Body, Field, row
from nova.web.specs import Rules, Spec

_ID: Rules = {"min_length": 1, "max_length": 255}
_AMOUNT: Rules = {"min": 1, "max": MAX_INT}


def _resources(prefix: str) -> tuple[Field, ...]:
    return (row(f"{prefix}.resources", "object", required=True, min_keys=1),
            row(f"{prefix}.resources./{CLASS}/", "integer", **_AMOUNT))


def _listed() -> tuple[Field, ...]:
    """Return the fields of the list form, before 1.12."""
    found = (row("allocations", "array", required=True, min_items=1), row("allocations[]", "object"),
             row("allocations[].resource_provider", "object", required=True),
             row("allocations[].resource_provider.uuid", "string", required=True, format="uuid"),
             *_resources("allocations[]"))
    return tuple(Field(one.path, one.spec, one.required, None, "1.11", one.unknown) for one in found)


def _of_consumer(prefix: str = "") -> tuple[Field, ...]:
    """Return the fields of one consumer, from 1.12. A provider's generation is accepted, because GET shows it, and
    ignored."""
    provider = f"{prefix}allocations./{UUID}/"
    found = (row(provider, "object"), *_resources(provider), row(f"{provider}.generation", "integer"),
             row(f"{prefix}consumer_generation", ("integer", "null"), required=True, since="1.28", **GENERATION),
             row(f"{prefix}mappings", "object", since="1.34", min_keys=1),
             row(f"{prefix}mappings./{SUFFIX}/", "array", since="1.34", min_items=1,
                 items=Spec(type="string", format="uuid")),
             row(f"{prefix}consumer_type", "string", required=True, since="1.38", **NAME))
    return tuple(Field(one.path, one.spec, one.required, one.since or "1.12", None, one.unknown) for one in found)


def _owner(prefix: str = "") -> tuple[Field, ...]:
    return tuple(row(f"{prefix}{name}", "string", required=True, since="1.8", **_ID) for name in
                 ("project_id", "user_id"))


def _consumers(prefix: str) -> tuple[Field, ...]:
    """Return the fields by consumer; empty allocations release everything."""
    one = f"{prefix}/{UUID}/"
    return (row(one, "object"), row(f"{one}.allocations", "object", required=True), *_of_consumer(f"{one}."),
            *_owner(f"{one}."))


REPLACE = Body(*_listed(), row("allocations", "object", required=True, min_keys=1, since="1.12", until="1.27"),
               row("allocations", "object", required=True, since="1.28"), *_of_consumer(), *_owner())
REPLACE_MANY = Body(row("(body)", "object", min_keys=1), *_consumers(""))
RESHAPE = Body(row("inventories", "object", required=True), row(f"inventories./{UUID}/", "object"),
               *records(f"inventories./{UUID}/."),
               row("allocations", "object", required=True), *_consumers("allocations."))
