"""The table of operations, one row for each. Versions are the contract's; operations not served are in
``absent.py``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from nova.api.handlers import (
    aggregates,
    assisted_snapshots,
    baremetal,
    consoles,
    extensions,
    flavor_extra_specs,
    flavors,
    floating_addresses,
    hosts,
    hypervisors,
    images,
    instance_actions,
    interfaces,
    keypairs,
    migrations,
    network_pools,
    networks,
    quotas,
    security_groups,
    server_actions,
    server_groups,
    server_images,
    server_metadata,
    server_moves,
    server_parts,
    server_rebuild,
    server_rescue,
    server_shelve,
    server_tags,
    servers,
    services,
    usage,
    usage_audits,
    volume_attachments,
    volumes,
)
from nova.api.routing import Route
from nova.api.schemas import aggregates as aggregate_schemas
from nova.api.schemas import baremetal as baremetal_schemas
from nova.api.schemas import consoles as console_schemas
from nova.api.schemas import flavors as flavor_schemas
from nova.api.schemas import floating_addresses as floating_schemas
from nova.api.schemas import hosts as host_schemas
from nova.api.schemas import hypervisors as hypervisor_schemas
from nova.api.schemas import images as image_schemas
from nova.api.schemas import interfaces as interface_schemas
from nova.api.schemas import keypairs as keypair_schemas
from nova.api.schemas import migrations as migration_schemas
from nova.api.schemas import quotas as quota_schemas
from nova.api.schemas import security_groups as security_schemas
from nova.api.schemas import server_actions as action_schemas
from nova.api.schemas import server_groups as server_group_schemas
from nova.api.schemas import server_moves as move_schemas
from nova.api.schemas import server_parts as part_schemas
from nova.api.schemas import server_rebuild as rebuild_schemas
from nova.api.schemas import servers as server_schemas
from nova.api.schemas import services as service_schemas
from nova.api.schemas import usage as usage_schemas
from nova.api.schemas import volumes as volume_schemas
from nova.web.schema import Body, Query

_SERVERS = "os_compute_api:servers:"
_METADATA = "os_compute_api:server-metadata:"
_TAGS = "os_compute_api:os-server-tags:"
_MOVES = "os_compute_api:servers:migrations:"
_INTERFACES = "os_compute_api:os-attach-interfaces:"
_CONSOLES = "os_compute_api:os-remote-consoles"
_PAUSE = "os_compute_api:os-pause-server:"
_SUSPEND = "os_compute_api:os-suspend-server:"
_DELETED = "os_compute_api:os-deferred-delete:"
_SHELVE = "os_compute_api:os-shelve:"
_MIGRATE = "os_compute_api:os-migrate-server:"
_GROUPS = "os_compute_api:os-server-groups:"
_SECURITY = "os_compute_api:os-security-groups:"
_FLOATING = "os_compute_api:os-floating-ips:"
_FLAVORS = "os_compute_api:os-flavor-manage:"
_VOLUMES = "os_compute_api:os-volumes:"
_ATTACHMENTS = "os_compute_api:os-volumes-attachments:"
_VOLUMES_OF_SERVER = "/servers/{server_id}/os-volume_attachments"
_VOLUME_OF_SERVER = f"{_VOLUMES_OF_SERVER}/{{volume_id}}"
_ASSISTED = "os_compute_api:os-assisted-volume-snapshots:"
_ACCESS = "os_compute_api:os-flavor-access"
_SPECS = "os_compute_api:os-flavor-extra-specs:"
_KEYPAIRS = "os_compute_api:os-keypairs:"
_QUOTAS = "os_compute_api:os-quota-sets:"
_QUOTA_CLASSES = "os_compute_api:os-quota-class-sets:"
_USAGE = "os_compute_api:os-simple-tenant-usage:"
_AUDITS = "os_compute_api:os-instance-usage-audit-log:"
_SERVICES = "os_compute_api:os-services:"
_AGGREGATES = "os_compute_api:os-aggregates:"
_HOSTS = "os_compute_api:os-hosts:"
_HYPERVISORS = "os_compute_api:os-hypervisors:"

#: Query without parameters: unknown parameters are refused from 2.102.
NO_QUERY = Query(refuse_unknown="2.102")


def _action(name: str, handler: Callable[..., object], policy: str | None, body: Body, *, code: int = 202,
            since: str = "2.1", until: str | None = None) -> Route:
    """Return the row of an action on a server."""
    return Route("POST", "/servers/{server_id}/action", handler, policy, body, code=code, since=since, until=until,
                 action=name, looks_first=policy is not None)


#: Also served under /os-volumes_boot, up to 2.102.
SERVER_ROWS: tuple[Route, ...] = (
    Route("GET", "/servers", servers.index, f"{_SERVERS}index", query=server_schemas.LIST_QUERY, looks_first=True),
    Route("POST", "/servers", servers.create, f"{_SERVERS}create", server_schemas.CREATE, code=202),
    Route("GET", "/servers/detail", servers.detail, f"{_SERVERS}detail", query=server_schemas.LIST_QUERY,
          looks_first=True),
    Route("GET", "/servers/{server_id}", servers.show, f"{_SERVERS}show", query=NO_QUERY, looks_first=True),
    Route("PUT", "/servers/{server_id}", servers.update, f"{_SERVERS}update", server_schemas.UPDATE, looks_first=True),
    Route("DELETE", "/servers/{server_id}", servers.delete, f"{_SERVERS}delete", code=204, looks_first=True),
    _action("os-start", server_actions.start, f"{_SERVERS}start", server_schemas.START),
    _action("os-stop", server_actions.stop, f"{_SERVERS}stop", server_schemas.STOP),
    _action("reboot", server_actions.reboot, f"{_SERVERS}reboot", server_schemas.REBOOT),
    _action("trigger_crash_dump", server_actions.trigger_crash_dump, f"{_SERVERS}trigger_crash_dump",
            action_schemas.TRIGGER_CRASH_DUMP, since="2.17"),
    _action("rebuild", server_rebuild.rebuild, f"{_SERVERS}rebuild", rebuild_schemas.REBUILD),
    _action("createImage", server_images.create_image, f"{_SERVERS}create_image", action_schemas.CREATE_IMAGE),
    _action("resize", server_moves.resize, f"{_SERVERS}resize", move_schemas.RESIZE),
    _action("confirmResize", server_moves.confirm_resize, f"{_SERVERS}confirm_resize",
            action_schemas.plain("confirmResize"), code=204),
    _action("revertResize", server_moves.revert_resize, f"{_SERVERS}revert_resize",
            action_schemas.plain("revertResize")),
)

ROUTES: tuple[Route, ...] = (
    # servers
    *SERVER_ROWS,
    *(dataclasses.replace(row, path=row.path.replace("/servers", "/os-volumes_boot"), until="2.102")
      for row in SERVER_ROWS),
    _action("os-getConsoleOutput", server_actions.console_output, "os_compute_api:os-console-output",
            server_schemas.CONSOLE_OUTPUT, code=200),
    _action("lock", server_actions.lock, "os_compute_api:os-lock-server:lock", server_schemas.LOCK),
    _action("unlock", server_actions.unlock, "os_compute_api:os-lock-server:unlock", server_schemas.UNLOCK),
    _action("pause", server_actions.pause, f"{_PAUSE}pause", action_schemas.plain("pause")),
    _action("unpause", server_actions.unpause, f"{_PAUSE}unpause", action_schemas.plain("unpause")),
    _action("suspend", server_actions.suspend, f"{_SUSPEND}suspend", action_schemas.plain("suspend")),
    _action("resume", server_actions.resume, f"{_SUSPEND}resume", action_schemas.plain("resume")),
    _action("rescue", server_rescue.rescue, "os_compute_api:os-rescue", action_schemas.RESCUE, code=200),
    _action("unrescue", server_rescue.unrescue, "os_compute_api:os-unrescue", action_schemas.plain("unrescue")),
    _action("changePassword", server_actions.change_password, "os_compute_api:os-admin-password",
            action_schemas.CHANGE_PASSWORD),
    _action("createBackup", server_images.create_backup, "os_compute_api:os-create-backup",
            action_schemas.CREATE_BACKUP),
    _action("restore", server_actions.restore, f"{_DELETED}restore", action_schemas.plain("restore")),
    _action("forceDelete", server_actions.force_delete, f"{_DELETED}force", action_schemas.plain("forceDelete")),
    _action("shelve", server_shelve.shelve, f"{_SHELVE}shelve", action_schemas.plain("shelve")),
    _action("shelveOffload", server_shelve.shelve_offload, f"{_SHELVE}shelve_offload",
            action_schemas.plain("shelveOffload")),
    _action("unshelve", server_shelve.unshelve, f"{_SHELVE}unshelve", action_schemas.UNSHELVE),
    _action("migrate", server_moves.migrate, f"{_MIGRATE}migrate", move_schemas.MIGRATE),
    _action("os-migrateLive", server_moves.live_migrate, f"{_MIGRATE}migrate_live", move_schemas.LIVE_MIGRATE),
    _action("evacuate", server_moves.evacuate, "os_compute_api:os-evacuate", move_schemas.EVACUATE, code=200),
    _action("injectNetworkInfo", server_actions.inject_network_info,
            "os_compute_api:os-admin-actions:inject_network_info", action_schemas.plain("injectNetworkInfo")),
    _action("os-resetState", server_parts.reset_state, "os_compute_api:os-admin-actions:reset_state",
            part_schemas.RESET_STATE),
    _action("os-getVNCConsole", consoles.vnc, _CONSOLES, console_schemas.VNC, code=200, until="2.5"),
    _action("os-getSPICEConsole", consoles.spice, _CONSOLES, console_schemas.SPICE, code=200, until="2.5"),
    _action("os-getSerialConsole", consoles.serial, _CONSOLES, console_schemas.SERIAL, code=200, until="2.5"),
    _action("os-getRDPConsole", consoles.rdp, None, console_schemas.RDP, code=200, until="2.5"),
    Route("POST", "/servers/{server_id}/remote-consoles", consoles.create, _CONSOLES, console_schemas.REMOTE,
          since="2.6", looks_first=True),
    Route("GET", "/os-console-auth-tokens/{console_token}", consoles.show_token,
          "os_compute_api:os-console-auth-tokens", query=console_schemas.TOKEN_QUERY),
    # parts of a server
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
    Route("GET", "/servers/{server_id}/os-interface", interfaces.index, f"{_INTERFACES}list", query=NO_QUERY,
          looks_first=True),
    Route("POST", "/servers/{server_id}/os-interface", interfaces.create, f"{_INTERFACES}create",
          interface_schemas.ATTACH, looks_first=True),
    Route("GET", "/servers/{server_id}/os-interface/{port_id}", interfaces.show, f"{_INTERFACES}show", query=NO_QUERY,
          looks_first=True),
    Route("DELETE", "/servers/{server_id}/os-interface/{port_id}", interfaces.delete, f"{_INTERFACES}delete", code=202,
          looks_first=True),
    _action("addFixedIp", interfaces.add_fixed_ip, "os_compute_api:os-multinic:add", interface_schemas.ADD_FIXED_IP,
            until="2.43"),
    _action("removeFixedIp", interfaces.remove_fixed_ip, "os_compute_api:os-multinic:remove",
            interface_schemas.REMOVE_FIXED_IP, until="2.43"),
    Route("GET", "/servers/{server_id}/tags", server_tags.index, f"{_TAGS}index", since="2.26", looks_first=True),
    Route("PUT", "/servers/{server_id}/tags", server_tags.replace, f"{_TAGS}update_all", part_schemas.TAGS,
          since="2.26", looks_first=True),
    Route("DELETE", "/servers/{server_id}/tags", server_tags.delete_all, f"{_TAGS}delete_all", code=204, since="2.26",
          looks_first=True),
    Route("GET", "/servers/{server_id}/tags/{tag}", server_tags.show, f"{_TAGS}show", code=204, since="2.26",
          looks_first=True),
    Route("PUT", "/servers/{server_id}/tags/{tag}", server_tags.update, f"{_TAGS}update", part_schemas.ONE_TAG,
          code=201, since="2.26", looks_first=True),
    Route("DELETE", "/servers/{server_id}/tags/{tag}", server_tags.delete, f"{_TAGS}delete", code=204, since="2.26",
          looks_first=True),
    Route("GET", "/servers/{server_id}/os-server-password", server_parts.password,
          "os_compute_api:os-server-password:show", query=NO_QUERY, looks_first=True),
    Route("DELETE", "/servers/{server_id}/os-server-password", server_parts.clear_password,
          "os_compute_api:os-server-password:clear", code=204, looks_first=True),
    Route("GET", "/servers/{server_id}/diagnostics", server_parts.diagnostics, "os_compute_api:os-server-diagnostics",
          query=NO_QUERY, looks_first=True),
    Route("GET", "/servers/{server_id}/topology", server_parts.topology, "compute:server:topology:index",
          query=NO_QUERY, since="2.78", looks_first=True),
    Route("POST", "/os-server-external-events", server_parts.external_events,
          "os_compute_api:os-server-external-events:create", part_schemas.EXTERNAL_EVENTS),
    # volumes
    Route("GET", _VOLUMES_OF_SERVER, volume_attachments.index, f"{_ATTACHMENTS}index",
          query=volume_schemas.ATTACHMENTS_QUERY, looks_first=True),
    Route("POST", _VOLUMES_OF_SERVER, volume_attachments.create, f"{_ATTACHMENTS}create", volume_schemas.ATTACH,
          code=((None, "2.100", 200), ("2.101", None, 202)), looks_first=True),
    Route("GET", _VOLUME_OF_SERVER, volume_attachments.show, f"{_ATTACHMENTS}show", looks_first=True),
    Route("PUT", _VOLUME_OF_SERVER, volume_attachments.update, f"{_ATTACHMENTS}swap", volume_schemas.UPDATE, code=202,
          looks_first=True),
    Route("DELETE", _VOLUME_OF_SERVER, volume_attachments.delete, f"{_ATTACHMENTS}delete", code=202, looks_first=True),
    Route("GET", "/os-volumes", volumes.index, f"{_VOLUMES}list", query=volume_schemas.LIST_QUERY, until="2.35"),
    Route("POST", "/os-volumes", volumes.create, f"{_VOLUMES}create", volume_schemas.CREATE, until="2.35"),
    Route("GET", "/os-volumes/detail", volumes.detail, f"{_VOLUMES}detail", query=volume_schemas.LIST_QUERY,
          until="2.35"),
    Route("GET", "/os-volumes/{volume_id}", volumes.show, f"{_VOLUMES}show", until="2.35"),
    Route("DELETE", "/os-volumes/{volume_id}", volumes.delete, f"{_VOLUMES}delete", code=202, until="2.35"),
    Route("GET", "/os-snapshots", volumes.snapshots, f"{_VOLUMES}snapshots:list", query=volume_schemas.LIST_QUERY,
          until="2.35"),
    Route("POST", "/os-snapshots", volumes.create_snapshot, f"{_VOLUMES}snapshots:create",
          volume_schemas.CREATE_SNAPSHOT, until="2.35"),
    Route("GET", "/os-snapshots/detail", volumes.snapshot_details, f"{_VOLUMES}snapshots:detail",
          query=volume_schemas.LIST_QUERY, until="2.35"),
    Route("GET", "/os-snapshots/{snapshot_id}", volumes.snapshot, f"{_VOLUMES}snapshots:show", until="2.35"),
    Route("DELETE", "/os-snapshots/{snapshot_id}", volumes.delete_snapshot, f"{_VOLUMES}snapshots:delete", code=202,
          until="2.35"),
    Route("POST", "/os-assisted-volume-snapshots", assisted_snapshots.create, f"{_ASSISTED}create",
          volume_schemas.CREATE_ASSISTED),
    Route("DELETE", "/os-assisted-volume-snapshots/{snapshot_id}", assisted_snapshots.delete, f"{_ASSISTED}delete",
          query=volume_schemas.DELETE_ASSISTED, code=204),
    # migrations
    Route("GET", "/os-migrations", migrations.index, "os_compute_api:os-migrations:index",
          query=migration_schemas.LIST_QUERY),
    Route("GET", "/servers/{server_id}/migrations", migrations.server_index, f"{_MOVES}index", query=NO_QUERY,
          since="2.23", looks_first=True),
    Route("GET", "/servers/{server_id}/migrations/{migration_id}", migrations.server_show, f"{_MOVES}show",
          query=NO_QUERY, since="2.23", looks_first=True),
    Route("DELETE", "/servers/{server_id}/migrations/{migration_id}", migrations.abort, f"{_MOVES}delete", code=202,
          since="2.24", looks_first=True),
    Route("POST", "/servers/{server_id}/migrations/{migration_id}/action", migrations.force_complete,
          f"{_MOVES}force_complete", migration_schemas.FORCE_COMPLETE, code=202, since="2.22",
          action="force_complete", looks_first=True),
    # floating addresses
    Route("GET", "/os-floating-ip-pools", floating_addresses.pools, "os_compute_api:os-floating-ip-pools",
          until="2.35"),
    Route("GET", "/os-floating-ips", floating_addresses.index, f"{_FLOATING}list", until="2.35"),
    Route("POST", "/os-floating-ips", floating_addresses.create, f"{_FLOATING}create", floating_schemas.CREATE,
          until="2.35"),
    Route("GET", "/os-floating-ips/{floating_ip_id}", floating_addresses.show, f"{_FLOATING}show", until="2.35"),
    Route("DELETE", "/os-floating-ips/{floating_ip_id}", floating_addresses.delete, f"{_FLOATING}delete", code=202,
          until="2.35"),
    _action("addFloatingIp", floating_addresses.add_to_server, f"{_FLOATING}add", floating_schemas.ADD, until="2.43"),
    _action("removeFloatingIp", floating_addresses.remove_from_server, f"{_FLOATING}remove", floating_schemas.REMOVE,
            until="2.43"),
    # security groups
    Route("GET", "/os-security-groups", security_groups.index, f"{_SECURITY}get", query=security_schemas.LIST_QUERY,
          until="2.35"),
    Route("POST", "/os-security-groups", security_groups.create, f"{_SECURITY}create", security_schemas.WRITE,
          until="2.35"),
    Route("GET", "/os-security-groups/{security_group_id}", security_groups.show, f"{_SECURITY}show", until="2.35"),
    Route("PUT", "/os-security-groups/{security_group_id}", security_groups.update, f"{_SECURITY}update",
          security_schemas.WRITE, until="2.35"),
    Route("DELETE", "/os-security-groups/{security_group_id}", security_groups.delete, f"{_SECURITY}delete", code=202,
          until="2.35"),
    Route("POST", "/os-security-group-rules", security_groups.create_rule, f"{_SECURITY}rule:create",
          security_schemas.RULE, until="2.35"),
    Route("DELETE", "/os-security-group-rules/{rule_id}", security_groups.delete_rule, f"{_SECURITY}rule:delete",
          code=202, until="2.35"),
    Route("GET", "/servers/{server_id}/os-security-groups", security_groups.of_server, f"{_SECURITY}list",
          query=NO_QUERY, looks_first=True),
    _action("addSecurityGroup", security_groups.add, f"{_SECURITY}add", security_schemas.ADD),
    _action("removeSecurityGroup", security_groups.remove, f"{_SECURITY}remove", security_schemas.REMOVE),
    # server groups
    Route("GET", "/os-server-groups", server_groups.index, f"{_GROUPS}index", query=server_group_schemas.LIST_QUERY),
    Route("POST", "/os-server-groups", server_groups.create, f"{_GROUPS}create", server_group_schemas.CREATE),
    Route("GET", "/os-server-groups/{server_group_id}", server_groups.show, f"{_GROUPS}show", query=NO_QUERY),
    Route("DELETE", "/os-server-groups/{server_group_id}", server_groups.delete, f"{_GROUPS}delete", code=204),
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
    # resources of users and projects
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
    Route("GET", "/os-quota-class-sets/{quota_class}", quotas.show_class, f"{_QUOTA_CLASSES}show", query=NO_QUERY),
    Route("PUT", "/os-quota-class-sets/{quota_class}", quotas.update_class, f"{_QUOTA_CLASSES}update",
          quota_schemas.UPDATE_CLASS),
    Route("GET", "/os-simple-tenant-usage", usage.index, f"{_USAGE}list", query=usage_schemas.LIST_QUERY),
    Route("GET", "/os-simple-tenant-usage/{tenant_id}", usage.show, f"{_USAGE}show", query=usage_schemas.SHOW_QUERY,
          looks_first=True),
    Route("GET", "/os-instance_usage_audit_log", usage_audits.index, f"{_AUDITS}list", query=NO_QUERY),
    Route("GET", "/os-instance_usage_audit_log/{before_timestamp}", usage_audits.show, f"{_AUDITS}show",
          query=NO_QUERY),
    # capabilities of the API
    Route("GET", "/extensions", extensions.index, "os_compute_api:extensions", query=NO_QUERY),
    Route("GET", "/extensions/{alias}", extensions.show, "os_compute_api:extensions", query=NO_QUERY),
    # hosts and their services
    Route("GET", "/os-availability-zone", services.zones, "os_compute_api:os-availability-zone:list", query=NO_QUERY),
    Route("GET", "/os-availability-zone/detail", services.zones_detail, "os_compute_api:os-availability-zone:detail",
          query=NO_QUERY),
    Route("GET", "/os-aggregates", aggregates.index, f"{_AGGREGATES}index", query=NO_QUERY),
    Route("POST", "/os-aggregates", aggregates.create, f"{_AGGREGATES}create", aggregate_schemas.CREATE),
    Route("GET", "/os-aggregates/{aggregate_id}", aggregates.show, f"{_AGGREGATES}show", query=NO_QUERY),
    Route("PUT", "/os-aggregates/{aggregate_id}", aggregates.update, f"{_AGGREGATES}update", aggregate_schemas.UPDATE),
    Route("DELETE", "/os-aggregates/{aggregate_id}", aggregates.delete, f"{_AGGREGATES}delete"),
    Route("POST", "/os-aggregates/{aggregate_id}/action", aggregates.add_host, f"{_AGGREGATES}add_host",
          aggregate_schemas.ADD_HOST, action="add_host"),
    Route("POST", "/os-aggregates/{aggregate_id}/action", aggregates.remove_host, f"{_AGGREGATES}remove_host",
          aggregate_schemas.REMOVE_HOST, action="remove_host"),
    Route("POST", "/os-aggregates/{aggregate_id}/action", aggregates.set_metadata, f"{_AGGREGATES}set_metadata",
          aggregate_schemas.SET_METADATA, action="set_metadata"),
    Route("POST", "/os-aggregates/{aggregate_id}/images", aggregates.cache_images, "compute:aggregates:images",
          aggregate_schemas.CACHE_IMAGES, code=202, since="2.81"),
    Route("GET", "/os-hosts", hosts.index, f"{_HOSTS}list", query=host_schemas.LIST_QUERY, until="2.42"),
    Route("GET", "/os-hosts/{host_name}", hosts.show, f"{_HOSTS}show", until="2.42"),
    Route("PUT", "/os-hosts/{host_name}", hosts.update, f"{_HOSTS}update", host_schemas.UPDATE, until="2.42"),
    Route("GET", "/os-hosts/{host_name}/startup", hosts.startup, f"{_HOSTS}start", until="2.42"),
    Route("GET", "/os-hosts/{host_name}/shutdown", hosts.shutdown, f"{_HOSTS}shutdown", until="2.42"),
    Route("GET", "/os-hosts/{host_name}/reboot", hosts.reboot, f"{_HOSTS}reboot", until="2.42"),
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
    # proxies of old versions to other services
    Route("GET", "/os-baremetal-nodes", baremetal.index, "os_compute_api:os-baremetal-nodes:list", until="2.35"),
    Route("GET", "/os-baremetal-nodes/{node_id}", baremetal.show, "os_compute_api:os-baremetal-nodes:show",
          until="2.35"),
    Route("POST", "/os-baremetal-nodes", baremetal.create, body=baremetal_schemas.ANYTHING, until="2.35"),
    Route("DELETE", "/os-baremetal-nodes/{node_id}", baremetal.delete, until="2.35"),
    Route("POST", "/os-baremetal-nodes/{node_id}/action", baremetal.add_interface, body=baremetal_schemas.ANYTHING,
          action="add_interface", until="2.35"),
    Route("POST", "/os-baremetal-nodes/{node_id}/action", baremetal.remove_interface,
          body=baremetal_schemas.ANYTHING, action="remove_interface", until="2.35"),
    Route("GET", "/os-networks", networks.index, "os_compute_api:os-networks:list", until="2.35"),
    Route("GET", "/os-networks/{network_id}", networks.show, "os_compute_api:os-networks:show", until="2.35"),
    Route("GET", "/os-tenant-networks", network_pools.of_project, "os_compute_api:os-tenant-networks:list",
          until="2.35"),
    Route("GET", "/os-tenant-networks/{network_id}", network_pools.one_of_project,
          "os_compute_api:os-tenant-networks:show", until="2.35"),
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
