"""Bodies and queries of keypairs."""

from __future__ import annotations

from nova.web.schema import LIMIT, LOOSE_NAME, MARKER, NAME, Body, Query, param, row

_USER = param("user_id", since="2.10")

LIST_QUERY = Query(
    _USER,
    param("limit", LIMIT.spec.type, min_length=1, min=0, since="2.35"),
    param(MARKER.name, since="2.35"),
    refuse_unknown="2.75")

QUERY = Query(_USER, refuse_unknown="2.75")

CREATE = Body(
    row("keypair", "object", required=True),
    row("keypair.name", "string", **NAME, pattern=r"^[_\- a-zA-Z0-9]+$", required=True, until="2.91"),
    row("keypair.name", "string", **NAME, pattern=r"^[_\-\@\. a-zA-Z0-9]+$", required=True, since="2.92"),
    row("keypair.public_key", "string", until="2.91"),
    row("keypair.public_key", "string", required=True, since="2.92"),
    row("keypair.type", "string", allowed=("ssh", "x509"), since="2.2"),
    row("keypair.user_id", "string", since="2.10"),
    legacy=(row("keypair.name", "string", **LOOSE_NAME, required=True),))
