"""The table of operations: one row each. Versions are the contract's; those we don't serve are in ``absent.py``."""

from __future__ import annotations

import dataclasses

from nova.api.handlers import flavors, instance_actions, server_actions, server_metadata, servers
from nova.api.routing import Route
from nova.api.schema import NO_QUERY
from nova.api.schemas import flavors as flavor_schemas
from nova.api.schemas import servers as server_schemas

_SERVERS = "os_compute_api:servers:"
_METADATA = "os_compute_api:server-metadata:"

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
)
