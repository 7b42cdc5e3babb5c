"""Rules of Placement's API: for administrators and other services; reshape only for services; a project's readers may
see its usage."""

from __future__ import annotations

from nova.policies.base import SERVICE, Rule

_PROVIDER = "/resource_providers/{uuid}"

RULES = (
    Rule("placement:resource_providers:list", SERVICE, ("GET /resource_providers",)),
    Rule("placement:resource_providers:create", SERVICE, ("POST /resource_providers",)),
    Rule("placement:resource_providers:show", SERVICE, (f"GET {_PROVIDER}",)),
    Rule("placement:resource_providers:update", SERVICE, (f"PUT {_PROVIDER}",)),
    Rule("placement:resource_providers:delete", SERVICE, (f"DELETE {_PROVIDER}",)),
    Rule("placement:resource_classes:list", SERVICE, ("GET /resource_classes",)),
    Rule("placement:resource_classes:create", SERVICE, ("POST /resource_classes",)),
    Rule("placement:resource_classes:show", SERVICE, ("GET /resource_classes/{name}",)),
    Rule("placement:resource_classes:update", SERVICE, ("PUT /resource_classes/{name}",)),
    Rule("placement:resource_classes:delete", SERVICE, ("DELETE /resource_classes/{name}",)),
    Rule("placement:resource_providers:inventories:list", SERVICE, (f"GET {_PROVIDER}/inventories",)),
    Rule("placement:resource_providers:inventories:create", SERVICE, (f"POST {_PROVIDER}/inventories",)),
    Rule("placement:resource_providers:inventories:show", SERVICE, (f"GET {_PROVIDER}/inventories/{{name}}",)),
    Rule("placement:resource_providers:inventories:update", SERVICE,
         (f"PUT {_PROVIDER}/inventories", f"PUT {_PROVIDER}/inventories/{{name}}")),
    Rule("placement:resource_providers:inventories:delete", SERVICE,
         (f"DELETE {_PROVIDER}/inventories", f"DELETE {_PROVIDER}/inventories/{{name}}")),
    Rule("placement:resource_providers:aggregates:list", SERVICE, (f"GET {_PROVIDER}/aggregates",)),
    Rule("placement:resource_providers:aggregates:update", SERVICE, (f"PUT {_PROVIDER}/aggregates",)),
    Rule("placement:resource_providers:usages", SERVICE, (f"GET {_PROVIDER}/usages",)),
    Rule("placement:usages", f"{SERVICE} or rule:project_reader_api", ("GET /usages",)),
    Rule("placement:traits:list", SERVICE, ("GET /traits",)),
    Rule("placement:traits:show", SERVICE, ("GET /traits/{name}",)),
    Rule("placement:traits:update", SERVICE, ("PUT /traits/{name}",)),
    Rule("placement:traits:delete", SERVICE, ("DELETE /traits/{name}",)),
    Rule("placement:resource_providers:traits:list", SERVICE, (f"GET {_PROVIDER}/traits",)),
    Rule("placement:resource_providers:traits:update", SERVICE, (f"PUT {_PROVIDER}/traits",)),
    Rule("placement:resource_providers:traits:delete", SERVICE, (f"DELETE {_PROVIDER}/traits",)),
    Rule("placement:allocations:manage", SERVICE, ("POST /allocations",)),
    Rule("placement:allocations:list", SERVICE, ("GET /allocations/{consumer}",)),
    Rule("placement:allocations:update", SERVICE, ("PUT /allocations/{consumer}",)),
    Rule("placement:allocations:delete", SERVICE, ("DELETE /allocations/{consumer}",)),
    Rule("placement:resource_providers:allocations:list", SERVICE, (f"GET {_PROVIDER}/allocations",)),
    Rule("placement:allocation_candidates:list", SERVICE, ("GET /allocation_candidates",)),
    Rule("placement:reshaper:reshape", "rule:service_api", ("POST /reshaper",)),
)
