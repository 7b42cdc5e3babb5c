"""Rules of the operations that only nova-network supports (``nova.api.legacy_networks``). The contract does not have
them any more; their names are those of the releases that had them."""

from __future__ import annotations

from nova.policies.base import ADMIN, MEMBER, READER, Rule

RULES: tuple[Rule, ...] = (
    Rule("os_compute_api:os-networks:create", ADMIN, ("POST /os-networks",)),
    Rule("os_compute_api:os-networks:add", ADMIN, ("POST /os-networks/add",)),
    Rule("os_compute_api:os-networks:delete", ADMIN, ("DELETE /os-networks/{network_id}",)),
    Rule("os_compute_api:os-networks:disassociate", ADMIN, ("POST /os-networks/{network_id}/action#disassociate",)),
    *[Rule(f"os_compute_api:os-networks-associate:{action}", ADMIN,
           (f"POST /os-networks/{{network_id}}/action#{action}",))
      for action in ("disassociate_host", "disassociate_project", "associate_host")],
    Rule("os_compute_api:os-tenant-networks:create", MEMBER, ("POST /os-tenant-networks",)),
    Rule("os_compute_api:os-tenant-networks:create:host_fields", ADMIN, ("POST /os-tenant-networks",),
         "for more than label, cidr, cidr_v6, num_networks and network_size, and for many or large networks"),
    Rule("os_compute_api:os-tenant-networks:delete", MEMBER, ("DELETE /os-tenant-networks/{network_id}",)),
    Rule("os_compute_api:os-fixed-ips", ADMIN, (
        "GET /os-fixed-ips/{fixed_ip}", "POST /os-fixed-ips/{fixed_ip}/action#reserve",
        "POST /os-fixed-ips/{fixed_ip}/action#unreserve")),
    Rule("os_compute_api:os-virtual-interfaces", READER, ("GET /servers/{server_id}/os-virtual-interfaces",)),
    Rule("os_compute_api:os-security-group-default-rules", ADMIN, (
        "GET /os-security-group-default-rules", "POST /os-security-group-default-rules",
        "GET /os-security-group-default-rules/{rule_id}", "DELETE /os-security-group-default-rules/{rule_id}")),
    Rule("os_compute_api:os-floating-ips-bulk", ADMIN, (
        "GET /os-floating-ips-bulk", "POST /os-floating-ips-bulk", "GET /os-floating-ips-bulk/{host_name}",
        "PUT /os-floating-ips-bulk/{host_name}")),
    Rule("os_compute_api:os-floating-ip-dns", MEMBER, (
        "GET /os-floating-ip-dns", "GET /os-floating-ip-dns/{domain}/entries/{name}",
        "PUT /os-floating-ip-dns/{domain}/entries/{name}", "DELETE /os-floating-ip-dns/{domain}/entries/{name}")),
    Rule("os_compute_api:os-floating-ip-dns:domain:update", ADMIN, ("PUT /os-floating-ip-dns/{domain}",)),
    Rule("os_compute_api:os-floating-ip-dns:domain:delete", ADMIN, ("DELETE /os-floating-ip-dns/{domain}",)),
    Rule("os_compute_api:os-cloudpipe", ADMIN, ("GET /os-cloudpipe", "POST /os-cloudpipe", "PUT /os-cloudpipe/{id}")),
)
