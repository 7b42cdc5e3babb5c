"""The XML namespaces of the API and of each extension. An extension's alias is the prefix of the names it adds."""

from __future__ import annotations

from typing import NamedTuple

DOCS = "http://docs.openstack.org"
COMPUTE = f"{DOCS}/compute/api/v1.1"
COMMON = f"{DOCS}/common/api/v1.0"  # versions, limits, extensions
COMPUTE_OLD = "http://docs.rackspacecloud.com/servers/api/v1.0"  # cells
ATOM = "http://www.w3.org/2005/Atom"
_EXT = f"{DOCS}/compute/ext"


class Known(NamedTuple):
    """The published facts of an extension: its namespace, and the time of its last change."""

    namespace: str
    updated: str


#: Alias, which is the prefix -> published facts.
EXTENSIONS: dict[str, Known] = {
    "NMN": Known(f"{_EXT}/multinic/api/v1.1", "2011-06-09T00:00:00Z"),
    "OS-DCF": Known(f"{_EXT}/disk_config/api/v1.1", "2011-09-27T00:00:00Z"),
    "OS-EXT-AZ": Known(f"{_EXT}/extended_availability_zone/api/v2", "2013-01-30T00:00:00Z"),
    "OS-EXT-IMG-SIZE": Known(f"{_EXT}/image_size/api/v1.1", "2013-02-19T00:00:00Z"),
    "OS-EXT-IPS": Known(f"{_EXT}/extended_ips/api/v1.1", "2013-01-06T00:00:00Z"),
    "OS-EXT-IPS-MAC": Known(f"{_EXT}/extended_ips_mac/api/v1.1", "2013-03-07T00:00:00Z"),
    "OS-EXT-SRV-ATTR": Known(f"{_EXT}/extended_status/api/v1.1", "2011-11-03T00:00:00Z"),
    "OS-EXT-STS": Known(f"{_EXT}/extended_status/api/v1.1", "2011-11-03T00:00:00Z"),
    "OS-EXT-VIF-NET": Known(f"{_EXT}/extended-virtual-interfaces-net/api/v1.1", "2013-03-07T00:00:00Z"),
    "OS-FLV-DISABLED": Known(f"{_EXT}/flavor_disabled/api/v1.1", "2012-08-29T00:00:00Z"),
    "OS-FLV-EXT-DATA": Known(f"{_EXT}/flavor_extra_data/api/v1.1", "2011-09-14T00:00:00Z"),
    "OS-SCH-HNT": Known(f"{_EXT}/scheduler-hints/api/v2", "2011-07-19T00:00:00Z"),
    "OS-SRV-USG": Known(f"{_EXT}/server_usage/api/v1.1", "2013-04-29T00:00:00Z"),
    "os-admin-actions": Known(f"{_EXT}/admin-actions/api/v1.1", "2011-09-20T00:00:00Z"),
    "os-agents": Known(f"{_EXT}/agents/api/v2", "2012-10-28T00:00:00Z"),
    "os-aggregates": Known(f"{_EXT}/aggregates/api/v1.1", "2012-01-12T00:00:00Z"),
    "os-assisted-volume-snapshots": Known(f"{_EXT}/assisted-volume-snapshots/api/v2", "2013-08-29T00:00:00Z"),
    "os-attach-interfaces": Known(f"{_EXT}/interfaces/api/v1.1", "2012-07-22T00:00:00Z"),
    "os-availability-zone": Known(f"{_EXT}/availabilityzone/api/v1.1", "2012-12-21T00:00:00Z"),
    "os-baremetal-ext-status": Known(f"{_EXT}/baremetal_ext_status/api/v2", "2013-08-27T00:00:00Z"),
    "os-baremetal-nodes": Known(f"{_EXT}/baremetal_nodes/api/v2", "2013-01-04T00:00:00Z"),
    "os-block-device-mapping-v2-boot": Known(f"{_EXT}/block_device_mapping_v2_boot/api/v2", "2013-07-08T00:00:00Z"),
    "os-cell-capacities": Known(f"{_EXT}/cell_capacities/api/v1.1", "2013-05-27T00:00:00Z"),
    "os-cells": Known(f"{_EXT}/cells/api/v1.1", "2013-05-14T00:00:00Z"),
    "os-certificates": Known(f"{_EXT}/certificates/api/v1.1", "2012-01-19T00:00:00Z"),
    "os-cloudpipe": Known(f"{_EXT}/cloudpipe/api/v1.1", "2011-12-16T00:00:00Z"),
    "os-cloudpipe-update": Known(f"{_EXT}/cloudpipe-update/api/v2", "2012-11-14T00:00:00Z"),
    "os-config-drive": Known(f"{_EXT}/config_drive/api/v1.1", "2012-07-16T00:00:00Z"),
    "os-console-auth-tokens": Known(f"{_EXT}/consoles-auth-tokens/api/v2", "2013-08-13T00:00:00Z"),
    "os-console-output": Known(f"{_EXT}/os-console-output/api/v2", "2011-12-08T00:00:00Z"),
    "os-consoles": Known(f"{_EXT}/os-consoles/api/v2", "2011-12-23T00:00:00Z"),
    "os-create-server-ext": Known(f"{_EXT}/createserverext/api/v1.1", "2011-07-19T00:00:00Z"),
    "os-deferred-delete": Known(f"{_EXT}/deferred-delete/api/v1.1", "2011-09-01T00:00:00Z"),
    "os-evacuate": Known(f"{_EXT}/evacuate/api/v2", "2013-01-06T00:00:00Z"),
    "os-extended-evacuate-find-host": Known(f"{_EXT}/extended_evacuate_find_host/api/v2", "2014-02-12T00:00:00Z"),
    "os-extended-floating-ips": Known(f"{_EXT}/extended_floating_ips/api/v2", "2013-04-19T00:00:00Z"),
    "os-extended-hypervisors": Known(f"{_EXT}/extended_hypervisors/api/v1.1", "2014-01-04T00:00:00Z"),
    "os-extended-networks": Known(f"{_EXT}/extended_networks/api/v2", "2014-05-09T00:00:00Z"),
    "os-extended-quotas": Known(f"{_EXT}/extended_quotas/api/v1.1", "2013-06-09T00:00:00Z"),
    "os-extended-services": Known(f"{_EXT}/extended_services/api/v2", "2013-05-17T00:00:00Z"),
    "os-extended-services-delete": Known(f"{_EXT}/extended_services_delete/api/v2", "2013-12-10T00:00:00Z"),
    "os-extended-volumes": Known(f"{_EXT}/extended_volumes/api/v1.1", "2013-06-07T00:00:00Z"),
    "os-fixed-ips": Known(f"{_EXT}/fixed_ips/api/v2", "2012-10-18T19:25:27Z"),
    "os-flavor-access": Known(f"{_EXT}/flavor_access/api/v2", "2012-08-01T00:00:00Z"),
    "os-flavor-extra-specs": Known(f"{_EXT}/flavor_extra_specs/api/v1.1", "2011-06-23T00:00:00Z"),
    "os-flavor-manage": Known(f"{_EXT}/flavor_manage/api/v1.1", "2012-01-19T00:00:00Z"),
    "os-flavor-rxtx": Known(f"{_EXT}/flavor_rxtx/api/v1.1", "2012-08-29T00:00:00Z"),
    "os-flavor-swap": Known(f"{_EXT}/flavor_swap/api/v1.1", "2012-08-29T00:00:00Z"),
    "os-floating-ip-dns": Known(f"{DOCS}/ext/floating_ip_dns/api/v1.1", "2011-12-23T00:00:00Z"),
    "os-floating-ip-pools": Known(f"{_EXT}/floating_ip_pools/api/v1.1", "2012-01-04T00:00:00Z"),
    "os-floating-ips": Known(f"{_EXT}/floating_ips/api/v1.1", "2011-06-16T00:00:00Z"),
    "os-floating-ips-bulk": Known(f"{_EXT}/floating_ips_bulk/api/v2", "2012-10-29T19:25:27Z"),
    "os-fping": Known(f"{_EXT}/fping/api/v1.1", "2012-07-06T00:00:00Z"),
    "os-hide-server-addresses": Known(f"{_EXT}/hide_server_addresses/api/v1.1", "2012-12-11T00:00:00Z"),
    "os-hosts": Known(f"{_EXT}/hosts/api/v1.1", "2011-06-29T00:00:00Z"),
    "os-hypervisor-status": Known(f"{_EXT}/hypervisor_status/api/v1.1", "2014-04-17T00:00:00Z"),
    "os-hypervisors": Known(f"{_EXT}/hypervisors/api/v1.1", "2012-06-21T00:00:00Z"),
    "os-instance-actions": Known(f"{_EXT}/instance-actions/api/v1.1", "2013-02-08T00:00:00Z"),
    "os-instance_usage_audit_log": Known(f"{DOCS}/ext/services/api/v1.1", "2012-07-06T01:00:00Z"),
    "os-keypairs": Known(f"{_EXT}/keypairs/api/v1.1", "2011-08-08T00:00:00Z"),
    "os-migrations": Known(f"{_EXT}/migrations/api/v2.0", "2013-05-30T00:00:00Z"),
    "os-multiple-create": Known(f"{_EXT}/multiplecreate/api/v1.1", "2012-08-07T00:00:00Z"),
    "os-networks": Known(f"{_EXT}/os-networks/api/v1.1", "2011-12-23T00:00:00Z"),
    "os-networks-associate": Known(f"{_EXT}/networks_associate/api/v2", "2012-11-19T00:00:00Z"),
    "os-preserve-ephemeral-rebuild": Known(f"{_EXT}/preserve_ephemeral_rebuild/api/v2", "2013-12-17T00:00:00Z"),
    "os-quota-class-sets": Known(f"{_EXT}/quota-classes-sets/api/v1.1", "2012-03-12T00:00:00Z"),
    "os-quota-sets": Known(f"{_EXT}/quotas-sets/api/v1.1", "2011-08-08T00:00:00Z"),
    "os-security-group-default-rules": Known(f"{_EXT}/securitygroupdefaultrules/api/v1.1", "2013-02-05T00:00:00Z"),
    "os-security-groups": Known(f"{_EXT}/securitygroups/api/v1.1", "2013-05-28T00:00:00Z"),
    "os-server-diagnostics": Known(f"{_EXT}/server-diagnostics/api/v1.1", "2011-12-21T00:00:00Z"),
    "os-server-external-events": Known(f"{_EXT}/server-external-events/api/v2", "2014-02-18T00:00:00Z"),
    "os-server-group-quotas": Known(f"{_EXT}/server-group-quotas/api/v2", "2014-07-25T00:00:00Z"),
    "os-server-groups": Known(f"{_EXT}/servergroups/api/v2", "2013-06-20T00:00:00Z"),
    "os-server-list-multi-status": Known(f"{_EXT}/os-server-list-multi-status/api/v2", "2014-05-11T00:00:00Z"),
    "os-server-password": Known(f"{_EXT}/server-password/api/v2", "2012-11-29T00:00:00Z"),
    "os-server-start-stop": Known(f"{_EXT}/servers/api/v1.1", "2012-01-23T00:00:00Z"),
    "os-services": Known(f"{_EXT}/services/api/v2", "2012-10-28T00:00:00Z"),
    "os-simple-tenant-usage": Known(f"{_EXT}/os-simple-tenant-usage/api/v1.1", "2011-08-19T00:00:00Z"),
    "os-tenant-networks": Known(f"{_EXT}/os-tenant-networks/api/v2", "2012-03-07T14:46:43Z"),
    "os-used-limits": Known(f"{_EXT}/used_limits/api/v1.1", "2012-07-13T00:00:00Z"),
    "os-used-limits-for-admin": Known(f"{_EXT}/used_limits_for_admin/api/v1.1", "2013-05-02T00:00:00Z"),
    "os-user-data": Known(f"{_EXT}/userdata/api/v1.1", "2012-08-07T00:00:00Z"),
    "os-user-quotas": Known(f"{_EXT}/user_quotas/api/v1.1", "2013-07-18T00:00:00Z"),
    "os-virtual-interfaces": Known(f"{_EXT}/virtual_interfaces/api/v1.1", "2011-08-17T00:00:00Z"),
    "os-volume-attachment-update": Known(f"{_EXT}/os-volume-attachment-update/api/v2", "2013-06-20T00:00:00Z"),
    "os-volumes": Known(f"{_EXT}/volumes/api/v1.1", "2011-03-25T00:00:00Z"),
}

#: Prefix -> namespace, for all names that may occur in a response.
PREFIXES: dict[str, str] = {"atom": ATOM, **{alias: known.namespace for alias, known in EXTENSIONS.items()}}
#: Namespace -> prefix. Two extensions share a namespace; in this table both are OS-EXT-STS.
ALIASES: dict[str, str] = {known.namespace: alias for alias, known in EXTENSIONS.items()}
