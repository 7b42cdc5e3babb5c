"""The table of operations: one row each. Versions are the contract's; those we don't serve are in ``absent.py``."""

from __future__ import annotations

import dataclasses

from nova.api.handlers import (
    aggregates,
    flavor_extra_specs,
    flavors,
    hypervisors,
    images,
    instance_actions,
    keypairs,
    networks,
    quotas,
    server_actions,
    server_metadata,
    servers,
    services,
)
from nova.api.routing import Route
from nova.api.schema import NO_QUERY
from nova.api.schemas import flavors as flavor_schemas
from nova.api.schemas import hypervisors as hypervisor_schemas
from nova.api.schemas import images as image_schemas
from nova.api.schemas import keypairs as keypair_schemas
from nova.api.schemas import quotas as quota_schemas
from nova.api.schemas import servers as server_schemas
from nova.api.schemas import services as service_schemas

_SERVERS = "os_compute_api:servers:"
_METADATA = "os_compute_api:server-metadata:"
_FLAVORS = "os_compute_api:os-flavor-manage:"
_ACCESS = "os_compute_api:os-flavor-access"
_SPECS = "os_compute_api:os-flavor-extra-specs:"
_KEYPAIRS = "os_compute_api:os-keypairs:"
_QUOTAS = "os_compute_api:os-quota-sets:"
_SERVICES = "os_compute_api:os-services:"
_HYPERVISORS = "os_compute_api:os-hypervisors:"

#: Also served under /os-volumes_boot, up to 2.102.
SERVER_ROWS: tuple[Route, ...] = (
    Route("GET", "/servers", servers.index, f"{_SERVERS}index", query=server_schemas.LIST_QUERY, looks_first=True),
    Route("POST", "/servers", servers.create, f"{_SERVERS}create", server_schemas.CREATE, code=202),
    Route("GET", "/servers/detail", servers.detail, f"{_SERVERS}detail", query=server_schemas.LIST_QUERY,
          looks_first=True),
    Route("GET", "/servers/{server_id}", servers.show, f"{_SERVERS}show", query=NO_QUERY, looks_first=True),
    Route("PUT", "/servers/{server_id}", servers.update, f"{_SERVERS}update", server_schemas.UPDATE, looks_first=True),
    Route("DELETE", "/servers/{server_id}", servers.delete, f"{_SERVERS}delete", code=204, looks_first=True),
    Route("POST", "/servers/{server_id}/action", server_actions.start, f"{_SERVERS}start", server_schemas.START,
          code=202, action="os-start", looks_first=True),
    Route("POST", "/servers/{server_id}/action", server_actions.stop, f"{_SERVERS}stop", server_schemas.STOP,
          code=202, action="os-stop", looks_first=True),
    Route("POST", "/servers/{server_id}/action", server_actions.reboot, f"{_SERVERS}reboot", server_schemas.REBOOT,
          code=202, action="reboot", looks_first=True),
)

ROUTES: tuple[Route, ...] = (
    # servers
    *SERVER_ROWS,
    *(dataclasses.replace(row, path=row.path.replace("/servers", "/os-volumes_boot"), until="2.102")
      for row in SERVER_ROWS),
    Route("POST", "/servers/{server_id}/action", server_actions.console_output, "os_compute_api:os-console-output",
          server_schemas.CONSOLE_OUTPUT, action="os-getConsoleOutput", looks_first=True),
    Route("POST", "/servers/{server_id}/action", server_actions.lock, "os_compute_api:os-lock-server:lock",
          server_schemas.LOCK, code=202, action="lock", looks_first=True),
    Route("POST", "/servers/{server_id}/action", server_actions.unlock, "os_compute_api:os-lock-server:unlock",
          server_schemas.UNLOCK, code=202, action="unlock", looks_first=True),
    # what belongs to a server
    Route("GET", "/servers/{server_id}/ips", server_metadata.ips, "os_compute_api:ips:index", query=NO_QUERY,
          looks_first=True),
    Route("GET", "/servers/{server_id}/ips/{network_label}", server_metadata.network_ips, "os_compute_api:ips:show",
          query=NO_QUERY, looks_first=True),
    Route("GET", "/servers/{server_id}/metadata", server_metadata.index, f"{_METADATA}index", query=NO_QUERY,
          looks_first=True),
    Route("POST", "/servers/{server_id}/metadata", server_metadata.merge, f"{_METADATA}create",
          server_schemas.METADATA, looks_first=True),
    Route("PUT", "/servers/{server_id}/metadata", server_metadata.replace, f"{_METADATA}update_all",
          server_schemas.METADATA, looks_first=True),
    Route("GET", "/servers/{server_id}/metadata/{key}", server_metadata.show, f"{_METADATA}show", query=NO_QUERY,
          looks_first=True),
    Route("PUT", "/servers/{server_id}/metadata/{key}", server_metadata.update, f"{_METADATA}update",
          server_schemas.METADATA_ITEM, looks_first=True),
    Route("DELETE", "/servers/{server_id}/metadata/{key}", server_metadata.delete, f"{_METADATA}delete", code=204,
          looks_first=True),
    Route("GET", "/servers/{server_id}/os-instance-actions", instance_actions.index,
          "os_compute_api:os-instance-actions:list", query=server_schemas.ACTIONS_QUERY, looks_first=True),
    Route("GET", "/servers/{server_id}/os-instance-actions/{request_id}", instance_actions.show,
          "os_compute_api:os-instance-actions:show", query=NO_QUERY, looks_first=True),
    # flavors
    Route("GET", "/flavors", flavors.index, query=flavor_schemas.LIST_QUERY),
    Route("GET", "/flavors/detail", flavors.detail, query=flavor_schemas.LIST_QUERY),
    Route("GET", "/flavors/{flavor_id}", flavors.show, query=NO_QUERY),
    Route("POST", "/flavors", flavors.create, f"{_FLAVORS}create", flavor_schemas.CREATE),
    Route("PUT", "/flavors/{flavor_id}", flavors.update, f"{_FLAVORS}update", flavor_schemas.UPDATE, since="2.55"),
    Route("DELETE", "/flavors/{flavor_id}", flavors.delete, f"{_FLAVORS}delete", code=202),
    Route("POST", "/flavors/{flavor_id}/action", flavors.add_access, f"{_ACCESS}:add_tenant_access",
          flavor_schemas.ADD_ACCESS, action="addTenantAccess"),
    Route("POST", "/flavors/{flavor_id}/action", flavors.remove_access, f"{_ACCESS}:remove_tenant_access",
          flavor_schemas.REMOVE_ACCESS, action="removeTenantAccess"),
    Route("GET", "/flavors/{flavor_id}/os-flavor-access", flavors.access, _ACCESS, query=NO_QUERY),
    Route("GET", "/flavors/{flavor_id}/os-extra_specs", flavor_extra_specs.index, f"{_SPECS}index", query=NO_QUERY),
    Route("POST", "/flavors/{flavor_id}/os-extra_specs", flavor_extra_specs.create, f"{_SPECS}create",
          flavor_schemas.EXTRA_SPECS),
    Route("GET", "/flavors/{flavor_id}/os-extra_specs/{key}", flavor_extra_specs.show, f"{_SPECS}show",
          query=NO_QUERY),
    Route("PUT", "/flavors/{flavor_id}/os-extra_specs/{key}", flavor_extra_specs.update, f"{_SPECS}update",
          flavor_schemas.EXTRA_SPEC),
    Route("DELETE", "/flavors/{flavor_id}/os-extra_specs/{key}", flavor_extra_specs.delete, f"{_SPECS}delete"),
    # what belongs to users and projects
    Route("GET", "/os-keypairs", keypairs.index, f"{_KEYPAIRS}index", query=keypair_schemas.LIST_QUERY,
          looks_first=True),
    Route("POST", "/os-keypairs", keypairs.create, f"{_KEYPAIRS}create", keypair_schemas.CREATE,
          code=((None, "2.1", 200), ("2.2", None, 201)), looks_first=True),
    Route("GET", "/os-keypairs/{keypair_name}", keypairs.show, f"{_KEYPAIRS}show", query=keypair_schemas.QUERY,
          looks_first=True),
    Route("DELETE", "/os-keypairs/{keypair_name}", keypairs.delete, f"{_KEYPAIRS}delete", query=keypair_schemas.QUERY,
          code=((None, "2.1", 202), ("2.2", None, 204)), looks_first=True),
    Route("GET", "/limits", quotas.limits, "os_compute_api:limits", query=quota_schemas.LIMITS_QUERY),
    Route("GET", "/os-quota-sets/{tenant_id}", quotas.show, f"{_QUOTAS}show", query=quota_schemas.QUERY,
          looks_first=True),
    Route("PUT", "/os-quota-sets/{tenant_id}", quotas.update, f"{_QUOTAS}update", quota_schemas.UPDATE,
          quota_schemas.QUERY, looks_first=True),
    Route("DELETE", "/os-quota-sets/{tenant_id}", quotas.delete, f"{_QUOTAS}delete", query=quota_schemas.QUERY,
          code=202, looks_first=True),
    Route("GET", "/os-quota-sets/{tenant_id}/detail", quotas.detail, f"{_QUOTAS}detail", query=quota_schemas.QUERY,
          looks_first=True),
    Route("GET", "/os-quota-sets/{tenant_id}/defaults", quotas.defaults, f"{_QUOTAS}defaults", looks_first=True),
    # hosts and what runs on them
    Route("GET", "/os-availability-zone", services.zones, "os_compute_api:os-availability-zone:list", query=NO_QUERY),
    Route("GET", "/os-availability-zone/detail", services.zones_detail, "os_compute_api:os-availability-zone:detail",
          query=NO_QUERY),
    Route("GET", "/os-aggregates", aggregates.index, "os_compute_api:os-aggregates:index", query=NO_QUERY),
    Route("GET", "/os-services", services.index, f"{_SERVICES}list", query=service_schemas.LIST_QUERY),
    Route("PUT", "/os-services/{service_id}", services.update, f"{_SERVICES}update", service_schemas.UPDATE),
    Route("DELETE", "/os-services/{service_id}", services.delete, f"{_SERVICES}delete", code=204),
    Route("GET", "/os-hypervisors", hypervisors.index, f"{_HYPERVISORS}list", query=hypervisor_schemas.LIST_QUERY),
    Route("GET", "/os-hypervisors/detail", hypervisors.detail, f"{_HYPERVISORS}list-detail",
          query=hypervisor_schemas.LIST_QUERY),
    Route("GET", "/os-hypervisors/statistics", hypervisors.statistics, f"{_HYPERVISORS}statistics", until="2.87"),
    Route("GET", "/os-hypervisors/{hypervisor_id}", hypervisors.show, f"{_HYPERVISORS}show",
          query=hypervisor_schemas.SHOW_QUERY),
    Route("GET", "/os-hypervisors/{hypervisor_id}/uptime", hypervisors.uptime, f"{_HYPERVISORS}uptime", until="2.87"),
    Route("GET", "/os-hypervisors/{hypervisor_hostname_pattern}/search", hypervisors.search, f"{_HYPERVISORS}search",
          until="2.52"),
    Route("GET", "/os-hypervisors/{hypervisor_hostname_pattern}/servers", hypervisors.servers,
          f"{_HYPERVISORS}servers", until="2.52"),
    # what old versions passed on to other services
    Route("GET", "/os-networks", networks.index, "os_compute_api:os-networks:list", until="2.35"),
    Route("GET", "/os-networks/{network_id}", networks.show, "os_compute_api:os-networks:show", until="2.35"),
    Route("GET", "/images", images.index, query=image_schemas.LIST_QUERY, until="2.35"),
    Route("GET", "/images/detail", images.detail, query=image_schemas.LIST_QUERY, until="2.35"),
    Route("GET", "/images/{image_id}", images.show, until="2.35"),
    Route("DELETE", "/images/{image_id}", images.delete, code=204, until="2.35"),
    Route("GET", "/images/{image_id}/metadata", images.metadata, until="2.38"),
    Route("POST", "/images/{image_id}/metadata", images.merge_metadata, body=image_schemas.METADATA, until="2.38"),
    Route("PUT", "/images/{image_id}/metadata", images.replace_metadata, body=image_schemas.METADATA, until="2.38"),
    Route("GET", "/images/{image_id}/metadata/{key}", images.metadata_item, until="2.38"),
    Route("PUT", "/images/{image_id}/metadata/{key}", images.update_metadata_item, body=image_schemas.METADATA_ITEM,
          until="2.38"),
    Route("DELETE", "/images/{image_id}/metadata/{key}", images.delete_metadata_item, code=204, until="2.38"),
)
