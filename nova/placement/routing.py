"""The row type of the table of routes."""

from __future__ import annotations

from dataclasses import dataclass

from nova.web.routing import APIRoute
from nova.web.schema import Query


@dataclass(frozen=True)
class PlacementRoute(APIRoute):
    """An operation of Placement's API. ``body_since`` and ``body_until``: the versions in which the body is read.
    ``looks_first``: the handler checks the policy rule, since the query names the project. ``silent_since``: from that
    version on a success has no body, so that the Accept header does not matter."""

    query: Query = Query(refuse_unknown="1.0")
    body_since: str | None = None
    body_until: str | None = None
    silent_since: str | None = None
