"""Queries of volumes, snapshots and a server's attachments."""

from __future__ import annotations

from nova.web.schema import Query, param

_PAGE = (param("limit", "integer_like", min_length=1, min=0), param("offset", "integer_like", min_length=1, min=0))

LIST_QUERY = Query(*_PAGE)
ATTACHMENTS_QUERY = Query(*_PAGE, refuse_unknown="2.75")
