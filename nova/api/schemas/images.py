"""Bodies and queries of the image proxy of old versions."""

from __future__ import annotations

from nova.web.schema import Body, Query, param, row
from nova.web.specs import Rules

_COUNT: Rules = {"min_length": 1, "min": 1}

LIST_QUERY = Query(
    param("name"), param("status"), param("changes-since"), param("server"), param("type"), param("minRam"),
    param("minDisk"), param("limit", "integer_like", **_COUNT), param("page_size", "integer_like", **_COUNT),
    param("marker"), param("offset", "integer_like", **_COUNT), param("/^property-.*$/"))

_KEY = "/^[a-zA-Z0-9-_:. ]{1,255}$/"

METADATA = Body(row("metadata", "object", required=True), row(f"metadata.{_KEY}", "string", max_length=255))
METADATA_ITEM = Body(row("meta", "object", min_keys=1, max_keys=1, required=True),
                     row(f"meta.{_KEY}", "string", max_length=255))
