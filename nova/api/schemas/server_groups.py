"""Bodies and queries of server groups."""

from __future__ import annotations

from typing import Any

from nova.model.server.server_groups import HARD_POLICIES, SOFT_POLICIES
from nova.web.schema import NAME, Body, Query, param, row

LIST_QUERY = Query(
    param("all_projects"),
    param("limit", "integer_like", min_length=1, min=0),
    param("offset", "integer_like", min_length=1, min=0),
    refuse_unknown="2.75")

_POLICIES: dict[str, Any] = {"required": True, "min_items": 1, "max_items": 1, "unique_items": True}

CREATE = Body(
    row("server_group", "object", required=True),
    row("server_group.name", "string", **NAME, required=True),
    row("server_group.policies", "array", **_POLICIES, until="2.63"),
    row("server_group.policies[]", "string", allowed=HARD_POLICIES, until="2.14"),
    row("server_group.policies[]", "string", allowed=(*HARD_POLICIES, *SOFT_POLICIES), since="2.15", until="2.63"),
    row("server_group.policy", "string", allowed=(*HARD_POLICIES, *SOFT_POLICIES), required=True, since="2.64"),
    row("server_group.rules", "object", since="2.64"),
    row("server_group.rules.max_server_per_host", "integer_like", min_length=1, min=1, since="2.64"))
