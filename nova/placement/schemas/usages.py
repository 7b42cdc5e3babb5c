"""The query of a project's usage."""

from __future__ import annotations

from nova.web.schema import Query, param
from nova.web.specs import Rules

_ID: Rules = {"min_length": 1, "max_length": 255}

LIST_QUERY = Query(
    param("project_id", repeat=False, **_ID), param("user_id", repeat=False, **_ID),
    param("consumer_type", repeat=False, since="1.38", max_length=255, pattern="^([A-Z0-9_]+|all|unknown)$"),
    refuse_unknown="1.0")
