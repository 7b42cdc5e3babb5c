"""Bodies and queries of resource providers."""

from __future__ import annotations

from nova.web.schema import Body, Query, param, row

_NAME = row("name", "string", required=True, min_length=1, max_length=200)
_PARENT = row("parent_provider_uuid", ("string", "null"), format="uuid", since="1.14")

CREATE = Body(_NAME, _PARENT, row("uuid", "string", format="uuid"))
UPDATE = Body(_NAME, _PARENT)

LIST_QUERY = Query(
    param("name", repeat=False), param("uuid", repeat=False, format="uuid"),
    param("member_of", repeat=False, since="1.3", until="1.23"), param("member_of", since="1.24"),
    param("resources", repeat=False, since="1.4"),
    param("in_tree", repeat=False, since="1.14", format="uuid"),
    param("required", since="1.18"),  # the last one applies before 1.39
    refuse_unknown="1.0")
