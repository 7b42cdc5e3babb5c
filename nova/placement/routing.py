"""What a row of the table of routes says of one operation."""

from __future__ import annotations

from dataclasses import dataclass

from nova.web.routing import APIRoute
from nova.web.schema import Query


@dataclass(frozen=True)
class PlacementRoute(APIRoute):
    """One operation. ``body``: at the versions that it is read at. ``looks_first``: the handler asks the policy rule,
    since whose project it is about stands in the query. ``silent_since``: from that version on a success has no body,
    so that it does not matter which media types the caller takes.
    """

    query: Query = Query(refuse_unknown="1.0")
    body_since: str | None = None
    body_until: str | None = None
    silent_since: str | None = None
