"""Queries of usage."""

from __future__ import annotations

from nova.web.schema import LIMIT, Query, param

_TIMES = (param("start"), param("end"))
_PAGES = (param("limit", LIMIT.spec.type, min_length=1, min=0, since="2.40"), param("marker", since="2.40"))

LIST_QUERY = Query(*_TIMES, param("detailed"), *_PAGES, refuse_unknown="2.75")
SHOW_QUERY = Query(*_TIMES, *_PAGES, refuse_unknown="2.75")
