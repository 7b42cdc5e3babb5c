"""Bodies of aggregates."""

from __future__ import annotations

from typing import Any

from nova.web.schema import LOOSE_NAME, NAME, Body, row

_ANY_ZONE = row("aggregate.availability_zone", ("string", "null"), min_length=1, max_length=255, format="az_name")
_LOOSE_ZONE = row("aggregate.availability_zone", ("string", "null"), min_length=1, max_length=255,
                  format="az_name_with_leading_trailing_spaces")
_HOST: dict[str, Any] = {"min_length": 1, "max_length": 255, "pattern": "^[a-zA-Z0-9-._]*$", "required": True}

CREATE = Body(
    row("aggregate", "object", required=True),
    row("aggregate.name", "string", **NAME, required=True),
    _ANY_ZONE,
    legacy=(row("aggregate.name", "string", **LOOSE_NAME, required=True), _LOOSE_ZONE))

UPDATE = Body(
    row("aggregate", "object", required=True, any_key=("name", "availability_zone")),
    row("aggregate.name", "string", **LOOSE_NAME),
    _ANY_ZONE,
    legacy=(_LOOSE_ZONE,))

ADD_HOST = Body(row("add_host", "object", required=True), row("add_host.host", "string", **_HOST))
REMOVE_HOST = Body(row("remove_host", "object", required=True), row("remove_host.host", "string", **_HOST))

SET_METADATA = Body(
    row("set_metadata", "object", required=True),
    row("set_metadata.metadata", "object", required=True),
    row("set_metadata.metadata./^[a-zA-Z0-9-_:. ]{1,255}$/", ("string", "null"), max_length=255))

CACHE_IMAGES = Body(
    row("cache", "array", min_items=1, required=True),
    row("cache[]", "object"),
    row("cache[].id", "string", format="uuid", required=True))
