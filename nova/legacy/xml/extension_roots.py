"""XML layouts of the extensions' resources. All other resources have plain child elements and no namespace."""

from __future__ import annotations

from nova.legacy.xml.layouts import ATTRIBUTES, DATA, GENERIC, META, Listing, Pairs, Record, Root
from nova.legacy.xml.namespaces import COMPUTE, COMPUTE_OLD

_LISTED = ("dns_entries", "domain_entries", "floating_ip_pools", "floating_ips", "hosts", "migrations", "services",
           "snapshots", "volumeAttachments", "agents")
_ONE = ("certificate", "dns_entry", "domain_entry", "floating_ip", "hypervisor_statistics", "interface", "service",
        "snapshot", "volumeAttachment")
_SINGULARS = {"dns_entries": "dns_entry", "domain_entries": "domain_entry"}

_VOLUME = Record(attributes=True, inside={"attachments": Listing("attachment", ATTRIBUTES), "metadata": META},
                 order=("attachments", "metadata"))
_RULE = Record(attributes=True, elements=("ip_protocol", "from_port", "to_port"),
               order=("ip_protocol", "from_port", "to_port", "group", "ip_range"))
_GROUP = Record(attributes=True, elements=("description",), order=("description", "rules"),
                inside={"rules": Listing("rule", _RULE)})
_SERVER_GROUP = Record(
    attributes=True, order=("policies", "members", "metadata"),
    inside={"policies": Listing("policy"), "members": Listing("member"), "metadata": META})
_QUOTAS = Record(attributes=True, elements=(
    "cores", "fixed_ips", "floating_ips", "injected_file_content_bytes", "injected_file_path_bytes", "injected_files",
    "instances", "key_pairs", "metadata_items", "ram", "security_group_rules", "security_groups", "server_groups",
    "server_group_members", "networks"))
_HYPERVISOR = Record(
    attributes=True, inside={"service": ATTRIBUTES, "servers": Listing("server", ATTRIBUTES)})
_WITH_SERVERS = Record(attributes=True, inside=_HYPERVISOR.inside, always=("servers",))
_ACTION = Record(attributes=True, inside={"events": Listing("events", ATTRIBUTES, flat=True)})
_NODE = Record(attributes=True, inside={"interfaces": Listing("interface", ATTRIBUTES)})
_UNITS = Record(attributes=True, inside={"units_by_mb": Pairs("unit_by_mb", "mb", "unit", flat=True)})
_CELL = Record(attributes=True, inside={"capacities": Record(inside={"ram_free": _UNITS, "disk_free": _UNITS})})

ROOTS: dict[str, Root] = {
    **{name: Root(Listing(_SINGULARS.get(name) or name[:-1], ATTRIBUTES)) for name in _LISTED},
    **dict.fromkeys(_ONE, Root(ATTRIBUTES)),
    "volume": Root(_VOLUME),
    "volumes": Root(Listing("volume", _VOLUME)),
    "extra_specs": Root(DATA),
    "flavor_access": Root(Listing("access", ATTRIBUTES)),
    "hypervisor": Root(_HYPERVISOR),
    "hypervisors": Root(Listing("hypervisor", _HYPERVISOR)),
    "instanceAction": Root(_ACTION),
    "instanceActions": Root(Listing("instanceAction", _ACTION)),
    "node": Root(_NODE),
    "nodes": Root(Listing("node", _NODE)),
    "quota_set": Root(_QUOTAS),
    "quota_class_set": Root(_QUOTAS),
    "security_group": Root(_GROUP, COMPUTE),
    "security_groups": Root(Listing("security_group", _GROUP), COMPUTE),
    "security_group_rule": Root(_RULE, COMPUTE),
    "security_group_default_rule": Root(_RULE, COMPUTE),
    "security_group_default_rules": Root(Listing("security_group_default_rule", _RULE), COMPUTE),
    "server_group": Root(_SERVER_GROUP, COMPUTE, ("atom",)),
    "server_groups": Root(Listing("server_group", _SERVER_GROUP), COMPUTE, ("atom",)),
    "tenant_usages": Root(Listing("tenant_usage", Record(always=("server_usages",)))),
    "virtual_interfaces": Root(Listing("virtual_interface", ATTRIBUTES), COMPUTE),
    "cell": Root(_CELL, COMPUTE_OLD),
    "cells": Root(Listing("cell", _CELL), COMPUTE_OLD),
}

HOST_POWER = Root(ATTRIBUTES)
HOST_RESOURCES = Root(Listing("resource"))
SERVERS_OF_HYPERVISORS = Root(Listing("hypervisor", _WITH_SERVERS))
EXTRA_SPEC = Root(Pairs("extra_spec", flat=True))
PINGED, ALL_PINGED = Root(GENERIC), Root(Listing("server"))
