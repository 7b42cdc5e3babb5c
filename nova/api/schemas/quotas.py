"""Bodies and queries of quota sets and limits."""

from __future__ import annotations

from nova.api.schema import MAX_INT, Body, Query, param, row

LIMITS_QUERY = Query(param("tenant_id"), refuse_unknown="2.75")
QUERY = Query(param("user_id"), refuse_unknown="2.75")

#: Resource -> the last version that has it (None: all have).
LAST_VERSIONS: dict[str, str | None] = {
    "instances": None, "cores": None, "ram": None, "floating_ips": "2.35", "fixed_ips": "2.35",
    "metadata_items": None, "key_pairs": None, "security_groups": "2.35", "security_group_rules": "2.35",
    "injected_files": "2.56", "injected_file_content_bytes": "2.56", "injected_file_path_bytes": "2.56",
    "server_groups": None, "server_group_members": None}

UPDATE = Body(
    row("quota_set", "object", required=True),
    *(row(f"quota_set.{name}", "integer_like", min=-1, max=MAX_INT, pattern="^-?[0-9]+$", until=until)
      for name, until in LAST_VERSIONS.items()),
    row("quota_set.force", "boolean_like"))
