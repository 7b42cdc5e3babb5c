"""Bodies and queries of flavors, their extra specs and access lists."""

from __future__ import annotations

from typing import Any

from nova.web.schema import LIMIT, LOOSE_NAME, MARKER, MAX_INT, NAME, Body, Query, param, row
from nova.web.specs import Rules

_SORT_KEYS = ("created_at", "description", "disabled", "ephemeral_gb", "flavorid", "id", "is_public", "memory_mb",
              "name", "root_gb", "swap", "updated_at", "vcpu_weight", "vcpus")

LIST_QUERY = Query(
    LIMIT, MARKER, param("is_public"), param("minRam"), param("minDisk"),
    param("sort_key", allowed=(*_SORT_KEYS, "rxtx_factor"), until="2.101"),
    param("sort_key", allowed=_SORT_KEYS, since="2.102"),
    param("sort_dir", allowed=("asc", "desc")),
    param("name", since="2.102"),
    refuse_unknown="2.75")

_POSITIVE: Rules = {"min": 1, "max": MAX_INT, "pattern": "^[0-9]+$"}
_AMOUNT: Rules = {"min": 0, "max": MAX_INT, "pattern": "^[0-9]+$"}
_DESCRIPTION: Rules = {"min_length": 0, "max_length": 65535, "format": "printable"}

CREATE = Body(
    row("flavor", "object", required=True),
    row("flavor.name", "string", **NAME, required=True),
    row("flavor.id", ("string", "number", "null"), min_length=1, max_length=255,
        pattern="^(?! )[a-zA-Z0-9. _-]+(?<! )$"),
    row("flavor.ram", "integer_like", **_POSITIVE, required=True),
    row("flavor.vcpus", "integer_like", **_POSITIVE, required=True),
    row("flavor.disk", "integer_like", **_AMOUNT, required=True),
    row("flavor.OS-FLV-EXT-DATA:ephemeral", "integer_like", **_AMOUNT),
    row("flavor.swap", "integer_like", **_AMOUNT),
    row("flavor.rxtx_factor", "number_like", above=0, max=3.40282e+38, pattern=r"^[0-9]+(\.[0-9]+)?$", until="2.101"),
    row("flavor.os-flavor-access:is_public", "boolean_like"),
    row("flavor.description", ("string", "null"), **_DESCRIPTION, since="2.55"),
    legacy=(row("flavor.name", "string", **LOOSE_NAME, required=True),))

UPDATE = Body(
    row("flavor", "object", required=True),
    row("flavor.description", ("string", "null"), **_DESCRIPTION, required=True))

_PROJECT: dict[str, Any] = {"min_length": 1, "max_length": 255, "required": True}

ADD_ACCESS = Body(row("addTenantAccess", "object", required=True), row("addTenantAccess.tenant", "string", **_PROJECT))
REMOVE_ACCESS = Body(row("removeTenantAccess", "object", required=True),
                     row("removeTenantAccess.tenant", "string", **_PROJECT))

_KEY = "/^[a-zA-Z0-9-_:. ]{1,255}$/"

EXTRA_SPECS = Body(
    row("extra_specs", "object", required=True),
    row(f"extra_specs.{_KEY}", ("string", "number"), max_length=255))

EXTRA_SPEC = Body(
    row("(body)", "object", min_keys=1, max_keys=1),
    row(_KEY, ("string", "number"), max_length=255))
