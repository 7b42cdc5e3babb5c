"""The table of removed operations that are still served with nova-network: they work up to the version that removed
them, and are 404 in later versions. The rows have the form of ``routes.ROUTES``.
"""

from __future__ import annotations

from nova.api.handlers import floating_addresses, floating_dns, network_pools, security_groups
from nova.api.routing import Route
from nova.api.schemas import floating_addresses as floating_schemas
from nova.api.schemas import networks as network_schemas
from nova.api.schemas import security_groups as security_schemas

BACK_END = "nova-network"
LAST = "2.35"  # last version that has them; 2.36 removed the proxies to other services
LAST_OF_SERVERS = "2.43"  # 2.44 removed the operations under /servers
_NETWORKS, _ASSOCIATE = "os_compute_api:os-networks", "os_compute_api:os-networks-associate"
_ACTION, _FIXED_ACTION = "/os-networks/{network_id}/action", "/os-fixed-ips/{fixed_ip}/action"
_FIXED = "os_compute_api:os-fixed-ips"
_BULK = "os_compute_api:os-floating-ips-bulk"
_DNS = "os_compute_api:os-floating-ip-dns"
_DOMAIN, _ENTRIES = "/os-floating-ip-dns/{domain}", "/os-floating-ip-dns/{domain}/entries/{name}"
_DEFAULT_RULES = "os_compute_api:os-security-group-default-rules"

ROUTES: tuple[Route, ...] = (
    Route("POST", "/os-networks", network_pools.create, f"{_NETWORKS}:create", network_schemas.CREATE, until=LAST),
    Route("POST", "/os-networks/add", network_pools.add, f"{_NETWORKS}:add", network_schemas.ADD, code=202, until=LAST),
    Route("DELETE", "/os-networks/{network_id}", network_pools.delete, f"{_NETWORKS}:delete", code=202, until=LAST),
    Route("POST", _ACTION, network_pools.disassociate, f"{_NETWORKS}:disassociate", network_schemas.DISASSOCIATE,
          code=202, until=LAST, action="disassociate"),
    Route("POST", _ACTION, network_pools.disassociate_host, f"{_ASSOCIATE}:disassociate_host",
          network_schemas.DISASSOCIATE_HOST, code=202, until=LAST, action="disassociate_host"),
    Route("POST", _ACTION, network_pools.disassociate_project, f"{_ASSOCIATE}:disassociate_project",
          network_schemas.DISASSOCIATE_PROJECT, code=202, until=LAST, action="disassociate_project"),
    Route("POST", _ACTION, network_pools.associate_host, f"{_ASSOCIATE}:associate_host",
          network_schemas.ASSOCIATE_HOST, code=202, until=LAST, action="associate_host"),
    Route("POST", "/os-tenant-networks", network_pools.create_own, "os_compute_api:os-tenant-networks:create",
          network_schemas.CREATE, until=LAST),
    Route("DELETE", "/os-tenant-networks/{network_id}", network_pools.delete_own,
          "os_compute_api:os-tenant-networks:delete", code=202, until=LAST),
    Route("GET", "/os-fixed-ips/{fixed_ip}", network_pools.fixed, _FIXED, until=LAST),
    Route("POST", _FIXED_ACTION, network_pools.reserve, _FIXED, network_schemas.RESERVE, code=202, until=LAST,
          action="reserve"),
    Route("POST", _FIXED_ACTION, network_pools.unreserve, _FIXED, network_schemas.UNRESERVE, code=202, until=LAST,
          action="unreserve"),
    Route("GET", "/servers/{server_id}/os-virtual-interfaces", network_pools.virtual_interfaces,
          "os_compute_api:os-virtual-interfaces", until=LAST_OF_SERVERS, looks_first=True),
    Route("GET", "/os-security-group-default-rules", security_groups.default_rules, _DEFAULT_RULES, until=LAST),
    Route("POST", "/os-security-group-default-rules", security_groups.create_default_rule, _DEFAULT_RULES,
          security_schemas.DEFAULT_RULE, until=LAST),
    Route("GET", "/os-security-group-default-rules/{rule_id}", security_groups.default_rule, _DEFAULT_RULES,
          until=LAST),
    Route("DELETE", "/os-security-group-default-rules/{rule_id}", security_groups.delete_default_rule, _DEFAULT_RULES,
          code=204, until=LAST),
    Route("GET", "/os-floating-ips-bulk", floating_addresses.bulk_index, _BULK, until=LAST),
    Route("POST", "/os-floating-ips-bulk", floating_addresses.bulk_create, _BULK, floating_schemas.BULK_CREATE,
          until=LAST),
    Route("GET", "/os-floating-ips-bulk/{host_name}", floating_addresses.bulk_show, _BULK, until=LAST),
    Route("PUT", "/os-floating-ips-bulk/{host_name}", floating_addresses.bulk_update, _BULK,
          floating_schemas.BULK_DELETE, until=LAST),
    Route("GET", "/os-floating-ip-dns", floating_dns.index, _DNS, until=LAST),
    Route("PUT", _DOMAIN, floating_dns.update, f"{_DNS}:domain:update", floating_schemas.PUT_DOMAIN, until=LAST),
    Route("DELETE", _DOMAIN, floating_dns.delete, f"{_DNS}:domain:delete", code=202, until=LAST),
    Route("GET", _ENTRIES, floating_dns.show_entry, _DNS, until=LAST),
    Route("PUT", _ENTRIES, floating_dns.update_entry, _DNS, floating_schemas.PUT_ENTRY, until=LAST),
    Route("DELETE", _ENTRIES, floating_dns.delete_entry, _DNS, code=202, until=LAST),
)

__all__ = ["BACK_END", "LAST", "LAST_OF_SERVERS", "ROUTES"]
