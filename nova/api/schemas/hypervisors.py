"""Queries of hypervisors."""

from __future__ import annotations

from nova.web.schema import Query, param

_WITH_SERVERS = param("with_servers", "boolean_like", repeat=False, since="2.53")

LIST_QUERY = Query(
    param("limit", "integer_like", min_length=1, min=0, since="2.33", until="2.52"),
    param("limit", "integer_like", min_length=1, min=0, repeat=False, since="2.53"),
    param("marker", since="2.33", until="2.52"),
    param("marker", repeat=False, since="2.53"),
    param("hypervisor_hostname_pattern", min_length=1, max_length=255, pattern="^[a-zA-Z0-9-._]*$", repeat=False,
          since="2.53"),
    _WITH_SERVERS,
    refuse_unknown="2.53")

SHOW_QUERY = Query(_WITH_SERVERS, refuse_unknown="2.53")
