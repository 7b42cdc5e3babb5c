"""Bodies of moves: resize, migration, evacuation."""

from __future__ import annotations

from nova.api.schemas.servers import HOST
from nova.web.schema import ACCEPT, Body, Spec, row

RESIZE = Body(
    row("resize", "object", required=True),
    row("resize.flavorRef", ("string", "integer"), min_length=1, required=True),
    row("resize.OS-DCF:diskConfig", "string", allowed=("AUTO", "MANUAL")))

MIGRATE = Body(
    row("(body)", "object", unknown=ACCEPT, until="2.55"),
    row("(body)", "object", since="2.56"),
    row("migrate", ("object", "null"), required=True, since="2.56"),
    row("migrate.host", ("string", "null"), **HOST, since="2.56"))

LIVE_MIGRATE = Body(
    row("os-migrateLive", "object", required=True),
    row("os-migrateLive.host", ("string", "null"), **HOST, required=True),
    row("os-migrateLive.block_migration", "boolean_like", required=True, until="2.24"),
    row("os-migrateLive.block_migration", "boolean_like", or_=(Spec(type="string", allowed=("auto",)),), required=True,
        since="2.25"),
    row("os-migrateLive.disk_over_commit", "boolean_like", required=True, until="2.24"),
    row("os-migrateLive.force", "boolean_like", since="2.30", until="2.67"))

EVACUATE = Body(
    row("evacuate", "object", required=True),
    row("evacuate.host", "string", **HOST),
    row("evacuate.onSharedStorage", "boolean_like", required=True, until="2.13"),
    row("evacuate.adminPass", "string"),
    row("evacuate.force", "boolean_like", since="2.29", until="2.67"))
