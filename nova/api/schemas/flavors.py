"""Bodies and queries of flavors."""

from __future__ import annotations

from nova.api.schema import LIMIT, MARKER, Query, param

_SORT_KEYS = ("created_at", "description", "disabled", "ephemeral_gb", "flavorid", "id", "is_public", "memory_mb",
              "name", "root_gb", "swap", "updated_at", "vcpu_weight", "vcpus")

LIST_QUERY = Query(
    LIMIT, MARKER, param("is_public"), param("minRam"), param("minDisk"),
    param("sort_key", allowed=(*_SORT_KEYS, "rxtx_factor"), until="2.101"),
    param("sort_key", allowed=_SORT_KEYS, since="2.102"),
    param("sort_dir", allowed=("asc", "desc")),
    param("name", since="2.102"),
    refuse_unknown="2.75")
