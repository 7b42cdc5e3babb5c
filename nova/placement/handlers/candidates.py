"""The handler for allocation candidates."""

from __future__ import annotations

from nova.model.placement.providers import CandidateQuery
from nova.placement import query_parser, versions
from nova.placement.request import PlacementAPIRequest
from nova.placement.views import allocations as views


def index(req: PlacementAPIRequest) -> dict[str, object]:
    """List the allocation candidates for a request for resources, with their providers. From 1.29 candidates may span a
    tree. Nothing is claimed. Raises placement.QueryBadValue, QueryMissingValue, NameUnknown (400)."""
    request = query_parser.request(req.query, req.version)
    query = CandidateQuery(request=request, limit=_limit(req), nested=versions.candidates_are_nested(req.version))
    asked = {name for group in request.groups for name in group.resources}
    return views.candidates(req, req.conductor.list_candidates(query), asked)


def _limit(req: PlacementAPIRequest) -> int | None:
    asked = req.query.number("limit")
    return None if asked is None else min(asked, query_parser.MAX_INT)
