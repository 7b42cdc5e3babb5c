"""Bodies and queries of servers and of their actions."""

from __future__ import annotations

from nova.web.schema import ACCEPT, LIMIT, LOOSE_NAME, MARKER, MAX_INT, NAME, Body, Field, Query, Spec, param, row
from nova.web.specs import Rules

METADATA_KEY = "/^[a-zA-Z0-9-_:. ]{1,255}$/"
_UUID = Spec(type="string", format="uuid")
_IP = (Spec(format="ipv4"), Spec(format="ipv6"))
_UUIDS = Spec(type="array", items=_UUID)
_TAG: Rules = {"min_length": 1, "max_length": 60, "pattern": "^[^,/]*$"}
HOST: Rules = {"min_length": 1, "max_length": 255, "pattern": "^[a-zA-Z0-9-._]*$"}
_DEVICE_NAME: Rules = {"min_length": 1, "max_length": 255, "pattern": "^[a-zA-Z0-9._/-]*$"}
_TEXT_255: Rules = {"max_length": 255}


def changeable(name: str) -> tuple[Field, ...]:
    """Return the fields that creates, updates and rebuilds share, in the body's object ``name``."""
    return (
        row(f"{name}.OS-DCF:diskConfig", "string", allowed=("AUTO", "MANUAL")),
        row(f"{name}.accessIPv4", "string", format="ipv4"),
        row(f"{name}.accessIPv6", "string", format="ipv6"),
        row(f"{name}.description", ("string", "null"), max_length=255, format="printable", since="2.19"),
        row(f"{name}.hostname", "string", min_length=2, max_length=63,
            pattern="^[a-zA-Z0-9]+[a-zA-Z0-9-]*[a-zA-Z0-9]+$", since="2.90", until="2.93"),
        row(f"{name}.hostname", "string", **HOST, since="2.94"),
    )


def personality(name: str) -> tuple[Field, ...]:
    """Return the fields of files for the guest, in old versions."""
    return (
        row(f"{name}.personality", "array", until="2.56"),
        row(f"{name}.personality[]", "object", until="2.56"),
        row(f"{name}.personality[].path", "string", until="2.56"),
        row(f"{name}.personality[].contents", "string", format="base64", until="2.56"),
    )


def trusted_certs(name: str) -> tuple[Field, ...]:
    """Return the rows of ``trusted_image_certificates`` in ``name``: 1 to 50 ids, or null; from 2.63."""
    return (
        row(f"{name}.trusted_image_certificates", ("array", "null"), min_items=1, max_items=50, unique_items=True,
            since="2.63"),
        row(f"{name}.trusted_image_certificates[]", "string", min_length=1, since="2.63"),
    )


_CHANGEABLE = changeable("server")


def _hints(name: str) -> tuple[Field, ...]:
    return (
        row(name, "object", unknown=ACCEPT),
        row(f"{name}.group", one_of=(_UUIDS, _UUID)),
        row(f"{name}.different_host", one_of=(_UUID, _UUIDS)),
        row(f"{name}.same_host", ("string", "array")),
        row(f"{name}.same_host[]", "string", format="uuid"),
        row(f"{name}.query", ("string", "object"), unknown=ACCEPT),
        row(f"{name}.target_cell", "string", **NAME),
        row(f"{name}.different_cell", ("string", "array")),
        row(f"{name}.different_cell[]", "string"),
        row(f"{name}.build_near_host_ip", "string", one_of=_IP),
        row(f"{name}.cidr", "string", pattern="^/[0-9a-f.:]+$"),
    )


def _block_device(name: str) -> tuple[Field, ...]:
    return (
        row(name, "array"),
        row(f"{name}[]", "object"),
        row(f"{name}[].virtual_name", "string", **_TEXT_255),
        row(f"{name}[].volume_id", "string", format="uuid"),
        row(f"{name}[].snapshot_id", "string", format="uuid"),
        row(f"{name}[].volume_size", "integer_like", min=1, max=MAX_INT),
        row(f"{name}[].device_name", "string", **_DEVICE_NAME),
        row(f"{name}[].delete_on_termination", "boolean_like"),
        row(f"{name}[].no_device"),
        row(f"{name}[].connection_info", "string", max_length=16777215),
    )


_BLOCK_DEVICE_V2 = (
    *_block_device("server.block_device_mapping_v2"),
    row("server.block_device_mapping_v2[].source_type", "string", allowed=("volume", "image", "snapshot", "blank")),
    row("server.block_device_mapping_v2[].uuid", "string", min_length=1, max_length=255, pattern="^[a-zA-Z0-9._-]*$"),
    row("server.block_device_mapping_v2[].image_id", "string", format="uuid"),
    row("server.block_device_mapping_v2[].destination_type", "string", allowed=("local", "volume")),
    row("server.block_device_mapping_v2[].guest_format", "string", **_TEXT_255),
    row("server.block_device_mapping_v2[].device_type", "string", **_TEXT_255),
    row("server.block_device_mapping_v2[].disk_bus", "string", **_TEXT_255),
    row("server.block_device_mapping_v2[].boot_index", ("integer_like", "null")),
    row("server.block_device_mapping_v2[].tag", "string", **_TAG, since="2.32", until="2.32"),
    row("server.block_device_mapping_v2[].tag", "string", **_TAG, since="2.42"),
    row("server.block_device_mapping_v2[].volume_type", ("string", "null"), max_length=255, since="2.67"),
)

_NETWORKS = (
    row("server.networks", "array", until="2.36"),
    row("server.networks", "array", required=True, or_=(Spec(type="string", allowed=("none", "auto")),), since="2.37"),
    row("server.networks[]", "object"),
    row("server.networks[].fixed_ip", "string", one_of=_IP),
    row("server.networks[].port", ("string", "null"), format="uuid"),
    row("server.networks[].uuid", "string", until="2.36"),
    row("server.networks[].uuid", "string", format="uuid", since="2.37"),
    row("server.networks[].tag", "string", **_TAG, since="2.32", until="2.36"),
    row("server.networks[].tag", "string", **_TAG, since="2.42"),
)

CREATE = Body(
    row("server", "object", required=True),
    row("server.name", "string", **NAME, required=True),
    row("server.imageRef", one_of=(_UUID, Spec(type="string", max_length=0))),
    row("server.flavorRef", ("string", "integer"), min_length=1, required=True),
    row("server.adminPass", "string"),
    row("server.metadata", "object"),
    row(f"server.metadata.{METADATA_KEY}", "string", **_TEXT_255),
    *_NETWORKS,
    *_CHANGEABLE,
    *personality("server"),
    row("server.availability_zone", "string", **NAME),
    *_block_device("server.block_device_mapping"),
    *_BLOCK_DEVICE_V2,
    row("server.config_drive", "boolean_like"),
    row("server.key_name", "string", **NAME),
    row("server.min_count", "integer_like", min_length=1, min=1),
    row("server.max_count", "integer_like", min_length=1, min=1),
    row("server.return_reservation_id", "boolean_like"),
    row("server.security_groups", "array"),
    row("server.security_groups[]", "object"),
    row("server.security_groups[].name", "string", **NAME),
    row("server.user_data", "string", max_length=65535, format="base64"),
    row("server.tags", "array", max_items=50, since="2.52"),
    row("server.tags[]", "string", **_TAG, since="2.52"),
    *trusted_certs("server"),
    row("server.host", "string", **HOST, since="2.74"),
    row("server.hypervisor_hostname", "string", **HOST, since="2.74"),
    *_hints("os:scheduler_hints"),
    *_hints("OS-SCH-HNT:scheduler_hints"),
    legacy=(
        row("server.name", "string", **LOOSE_NAME, required=True),
        row("server.availability_zone", "string", **LOOSE_NAME),
        row("server.key_name", "string", **LOOSE_NAME),
        row("server.security_groups[].name", "string", **LOOSE_NAME),
        row("server.user_data", ("string", "null"), max_length=65535, format="base64"),
    ))

UPDATE = Body(
    row("server", "object", required=True),
    row("server.name", "string", **NAME),
    *_CHANGEABLE,
    row("server.pinned_availability_zone", since="2.104",
        one_of=(Spec(type="string", min_length=1, max_length=255), Spec(type="null"))),
    legacy=(row("server.name", "string", **LOOSE_NAME),))

# lists

#: Filters that are regular expressions.
_REGEX = ("kernel_id", "ramdisk_id", "hostname", "key_name", "power_state", "node", "flavor", "reservation_id",
          "launched_at", "terminated_at", "availability_zone", "name", "display_name", "description",
          "display_description", "locked_by", "root_device_name", "config_drive", "access_ip_v4", "access_ip_v6",
          "auto_disk_config", "progress", "ip", "ip6", "created_at")
_PLAIN = ("user_id", "project_id", "tenant_id", "launch_index", "image_ref", "image", "vm_state", "task_state", "host",
          "uuid", "sort_dir", "all_tenants", "soft_deleted", "deleted", "status")
#: Names of joined tables: listed so that they can be refused by name.
JOINED = ("block_device_mapping", "services", "metadata", "system_metadata", "info_cache", "security_groups",
          "pci_devices")
_SORT_KEYS = ("access_ip_v4", "access_ip_v6", "auto_disk_config", "availability_zone", "config_drive", "created_at",
              "display_description", "display_name", "host", "hostname", "image_ref", "instance_type_id", "kernel_id",
              "key_name", "launch_index", "launched_at", "locked", "locked_by", "node", "power_state", "progress",
              "project_id", "ramdisk_id", "root_device_name", "task_state", "terminated_at", "updated_at", "user_id",
              "uuid", "vm_state")
#: Accepted before 2.75, without effect.
IDLE_SORT_KEYS = ("architecture", "cell_name", "cleaned", "default_ephemeral_device", "default_swap_device", "deleted",
                  "deleted_at", "disable_terminate", "ephemeral_gb", "ephemeral_key_uuid", "id", "key_data",
                  "launched_on", "memory_mb", "os_type", "reservation_id", "root_gb", "shutdown_terminate",
                  "user_data", "vcpus", "vm_mode")

LIST_QUERY = Query(
    *(param(name) for name in (*_PLAIN, *JOINED)),
    *(param(name, format="regex") for name in _REGEX),
    param("sort_key", allowed=(*_SORT_KEYS, *IDLE_SORT_KEYS), until="2.74"),
    param("sort_key", allowed=_SORT_KEYS, since="2.75"),
    param("/^_/"),
    LIMIT, MARKER,
    param("changes-since", format="date-time"),
    param("changes-before", format="date-time", since="2.66"),
    param("locked", since="2.73"),
    *(param(name, format="regex", since="2.26") for name in ("tags", "tags-any", "not-tags", "not-tags-any")),
    refuse_unknown="2.75")

# actions

START = Body(row("os-start", required=True))
STOP = Body(row("os-stop", required=True))
REBOOT = Body(
    row("reboot", "object", required=True),
    row("reboot.type", "string", allowed=("HARD", "Hard", "hard", "SOFT", "Soft", "soft"), required=True))
CONSOLE_OUTPUT = Body(
    row("os-getConsoleOutput", "object", required=True),
    row("os-getConsoleOutput.length", ("integer_like", "null"), min=-1))
LOCK = Body(
    row("lock", required=True, until="2.72"),
    row("lock", ("object", "null"), required=True, since="2.73"),
    row("lock.locked_reason", "string", min_length=1, max_length=255, since="2.73"))
UNLOCK = Body(row("(body)", "object", until="2.72"), row("unlock", required=True, until="2.72"),
              row("(body)", "object", unknown=ACCEPT, since="2.73"))

# what belongs to a server

METADATA = Body(
    row("metadata", "object", required=True),
    row(f"metadata.{METADATA_KEY}", "string", **_TEXT_255))
METADATA_ITEM = Body(
    row("meta", "object", required=True, min_keys=1, max_keys=1),
    row(f"meta.{METADATA_KEY}", "string", **_TEXT_255))
ACTIONS_QUERY = Query(
    param("limit", "integer_like", min_length=1, min=0, repeat=False, since="2.58"),
    param("marker", repeat=False, since="2.58"),
    param("changes-since", format="date-time", repeat=False, since="2.58"),
    param("changes-before", format="date-time", repeat=False, since="2.66"),
    refuse_unknown="2.58")
