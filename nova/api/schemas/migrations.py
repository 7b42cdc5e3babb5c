"""Bodies and queries of migrations."""

from __future__ import annotations

from nova.web.schema import Body, Query, param, row

LIST_QUERY = Query(
    *(param(name) for name in ("hidden", "host", "instance_uuid", "source_compute", "status", "migration_type")),
    param("limit", "integer_like", min_length=1, min=0, repeat=False, since="2.59"),
    param("marker", repeat=False, since="2.59"),
    param("changes-since", format="date-time", repeat=False, since="2.59"),
    param("changes-before", format="date-time", repeat=False, since="2.66"),
    param("user_id", repeat=False, since="2.80"),
    param("project_id", repeat=False, since="2.80"),
    refuse_unknown="2.59")

FORCE_COMPLETE = Body(row("force_complete", "null", required=True))
