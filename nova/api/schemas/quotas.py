"""Bodies and queries of quota sets and limits."""

from __future__ import annotations

from nova.web.schema import MAX_INT, Body, Field, Query, param, row

LIMITS_QUERY = Query(param("tenant_id"), refuse_unknown="2.75")
QUERY = Query(param("user_id"), refuse_unknown="2.75")

#: Resource -> the last version that has it (None: all versions).
LAST_VERSIONS: dict[str, str | None] = {
    "instances": None, "cores": None, "ram": None, "floating_ips": "2.35", "fixed_ips": "2.35",
    "metadata_items": None, "key_pairs": None, "security_groups": "2.35", "security_group_rules": "2.35",
    "injected_files": "2.56", "injected_file_content_bytes": "2.56", "injected_file_path_bytes": "2.56",
    "server_groups": None, "server_group_members": None}

#: The same for quota classes, from which the network resources were removed later.
CLASS_LAST_VERSIONS = {name: "2.49" if until == "2.35" else until for name, until in LAST_VERSIONS.items()}
#: Resources that a class shows from a version on, but accepts in earlier ones.
CLASS_SHOWN_SINCE = {"server_groups": "2.50", "server_group_members": "2.50"}


def _limits(name: str, resources: dict[str, str | None]) -> tuple[Field, ...]:
    return (row(name, "object", required=True),
            *(row(f"{name}.{resource}", "integer_like", min=-1, max=MAX_INT, pattern="^-?[0-9]+$", until=until)
              for resource, until in resources.items()))


UPDATE = Body(*_limits("quota_set", LAST_VERSIONS), row("quota_set.force", "boolean_like"))
UPDATE_CLASS = Body(*_limits("quota_class_set", CLASS_LAST_VERSIONS))
