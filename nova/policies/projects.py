"""Rules of the resources of projects and users: keypairs, quotas, limits, usage, server groups."""

from __future__ import annotations

from nova.policies.base import ADMIN, ANYONE, MEMBER, OLD_ADMIN, OWN_USER, READER, Old, Rule

RULES = (
    Rule("os_compute_api:extensions", ANYONE, ("GET /extensions", "GET /extensions/{alias}")),
    Rule("os_compute_api:limits", ANYONE, ("GET /limits",)),
    Rule("os_compute_api:limits:other_project", ADMIN, ("GET /limits",),
         when="only with the query tenant_id (even when it is the own project)",
         old=Old("os_compute_api:os-used-limits", OLD_ADMIN)),
    Rule("os_compute_api:os-keypairs:create", OWN_USER, ("POST /os-keypairs",)),
    Rule("os_compute_api:os-keypairs:delete", OWN_USER, ("DELETE /os-keypairs/{keypair_name}",)),
    Rule("os_compute_api:os-keypairs:index", OWN_USER, ("GET /os-keypairs",)),
    Rule("os_compute_api:os-keypairs:show", OWN_USER, ("GET /os-keypairs/{keypair_name}",)),
    Rule("os_compute_api:os-quota-class-sets:show", ADMIN, ("GET /os-quota-class-sets/{quota_class}",)),
    Rule("os_compute_api:os-quota-class-sets:update", ADMIN, ("PUT /os-quota-class-sets/{quota_class}",)),
    Rule("os_compute_api:os-quota-sets:defaults", ANYONE, ("GET /os-quota-sets/{tenant_id}/defaults",)),
    Rule("os_compute_api:os-quota-sets:delete", ADMIN, ("DELETE /os-quota-sets/{tenant_id}",)),
    Rule("os_compute_api:os-quota-sets:detail", READER, ("GET /os-quota-sets/{tenant_id}/detail",)),
    Rule("os_compute_api:os-quota-sets:show", READER, ("GET /os-quota-sets/{tenant_id}",)),
    Rule("os_compute_api:os-quota-sets:update", ADMIN, ("PUT /os-quota-sets/{tenant_id}",)),
    Rule("os_compute_api:os-server-groups:create", MEMBER, ("POST /os-server-groups",)),
    Rule("os_compute_api:os-server-groups:delete", MEMBER, ("DELETE /os-server-groups/{server_group_id}",)),
    Rule("os_compute_api:os-server-groups:index", READER, ("GET /os-server-groups",)),
    Rule("os_compute_api:os-server-groups:index:all_projects", ADMIN, ("GET /os-server-groups",),
         when="only with the query all_projects; without the right the query is ignored"),
    Rule("os_compute_api:os-server-groups:show", READER, ("GET /os-server-groups/{server_group_id}",)),
    Rule("os_compute_api:os-simple-tenant-usage:list", ADMIN, ("GET /os-simple-tenant-usage",)),
    Rule("os_compute_api:os-simple-tenant-usage:show", READER, ("GET /os-simple-tenant-usage/{tenant_id}",)),
)
