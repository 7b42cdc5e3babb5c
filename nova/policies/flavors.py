"""Rules of flavors, their extra specs and access lists."""

from __future__ import annotations

from nova.policies.base import ADMIN, OLD_OWNER, READER, Old, Rule

RULES = (
    Rule("os_compute_api:os-flavor-access", ADMIN, ("GET /flavors/{flavor_id}/os-flavor-access",),
         old=Old("os_compute_api:os-flavor-access", OLD_OWNER)),
    Rule("os_compute_api:os-flavor-access:add_tenant_access", ADMIN,
         ("POST /flavors/{flavor_id}/action#addTenantAccess",)),
    Rule("os_compute_api:os-flavor-access:remove_tenant_access", ADMIN,
         ("POST /flavors/{flavor_id}/action#removeTenantAccess",)),
    Rule("os_compute_api:os-flavor-extra-specs:create", ADMIN, ("POST /flavors/{flavor_id}/os-extra_specs",)),
    Rule("os_compute_api:os-flavor-extra-specs:delete", ADMIN, ("DELETE /flavors/{flavor_id}/os-extra_specs/{key}",)),
    Rule("os_compute_api:os-flavor-extra-specs:index", READER,
         ("POST /flavors", "GET /flavors/detail", "GET /flavors/{flavor_id}", "PUT /flavors/{flavor_id}",
          "GET /flavors/{flavor_id}/os-extra_specs"), when="from 2.61, only decides whether extra_specs is shown"),
    Rule("os_compute_api:os-flavor-extra-specs:show", READER, ("GET /flavors/{flavor_id}/os-extra_specs/{key}",)),
    Rule("os_compute_api:os-flavor-extra-specs:update", ADMIN, ("PUT /flavors/{flavor_id}/os-extra_specs/{key}",)),
    Rule("os_compute_api:os-flavor-manage:create", ADMIN, ("POST /flavors",)),
    Rule("os_compute_api:os-flavor-manage:delete", ADMIN, ("DELETE /flavors/{flavor_id}",)),
    Rule("os_compute_api:os-flavor-manage:update", ADMIN, ("PUT /flavors/{flavor_id}",)),
)
