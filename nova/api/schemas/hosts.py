"""Bodies and queries of hosts."""

from __future__ import annotations

from nova.web.schema import Body, Query, param, row

LIST_QUERY = Query(param("zone"))

_SWITCH = ("DISABLE", "Disable", "ENABLE", "Enable", "disable", "enable")

UPDATE = Body(
    row("(body)", "object", any_key=("status", "maintenance_mode")),
    row("status", "string", allowed=_SWITCH),
    row("maintenance_mode", "string", allowed=_SWITCH))
