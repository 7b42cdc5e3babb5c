"""The body of a rebuild."""

from __future__ import annotations

from nova.api.schemas.servers import METADATA_KEY, changeable, personality, trusted_certs
from nova.web.schema import LOOSE_NAME, NAME, Body, Spec, row

REBUILD = Body(
    row("rebuild", "object", required=True),
    row("rebuild.name", "string", **NAME),
    row("rebuild.imageRef", "string", format="uuid", required=True),
    row("rebuild.adminPass", "string"),
    row("rebuild.metadata", "object"),
    row(f"rebuild.metadata.{METADATA_KEY}", "string", max_length=255),
    row("rebuild.preserve_ephemeral", "boolean_like"),
    *changeable("rebuild"),
    *personality("rebuild"),
    row("rebuild.key_name", one_of=(Spec(type="string", min_length=1, max_length=255), Spec(type="null")),
        since="2.54"),
    row("rebuild.user_data", ("string", "null"), max_length=65535, format="base64", since="2.57"),
    *trusted_certs("rebuild"),
    legacy=(row("rebuild.name", "string", **LOOSE_NAME),))
