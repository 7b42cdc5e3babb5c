"""Bodies and queries of services."""

from __future__ import annotations

from nova.web.schema import Body, Query, param, row

LIST_QUERY = Query(param("host"), param("binary"), refuse_unknown="2.75")

#: Up to 2.52 the path has the action and the body the service; from 2.53 the reverse.
UPDATE = Body(
    row("host", "string", min_length=1, max_length=255, pattern="^[a-zA-Z0-9-._]*$", required=True, until="2.52"),
    row("binary", "string", min_length=1, max_length=255, required=True, until="2.52"),
    row("disabled_reason", "string", min_length=1, max_length=255),
    row("forced_down", "boolean_like", since="2.11"),
    row("status", "string", allowed=("enabled", "disabled"), since="2.53"))
