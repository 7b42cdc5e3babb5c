"""Payloads of requests to the scheduler. Subject: ``nova.notifications.facts.SpecFacts``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nova.notifications.facts import SpecFacts
from nova.notifications.payloads.fields import Payload, PayloadField, fields, wire
from nova.notifications.payloads.resources import EXCEPTION, SERVERS_FLAVOR

#: Image properties with other types than text. Images store all of them as text.
_INTEGERS = frozenset((
    "hw_cpu_cores", "hw_cpu_sockets", "hw_cpu_threads", "hw_cpu_max_cores", "hw_cpu_max_sockets",
    "hw_cpu_max_threads", "hw_device_id", "hw_numa_nodes", "hw_serial_port_count", "hw_video_ram",
    "hw_maxphysaddr_bits", "hw_redirected_usb_ports", "img_compression_level", "img_version"))
_BOOLEANS = frozenset((
    "hw_boot_menu", "hw_firmware_stateless", "hw_ipxe_boot", "hw_locked_memory", "hw_mem_encryption", "hw_pmu",
    "hw_qemu_guest_agent", "hw_time_hpet", "hw_vif_multiqueue_enabled", "hw_ephemeral_encryption",
    "hw_virtio_packed_ring", "img_bittorrent", "img_bdm_v2", "img_cache_in_nova", "img_linked_clone",
    "img_use_agent", "img_hide_hypervisor_id", "os_require_quiesce", "os_skip_agent_inject_files_at_boot",
    "os_skip_agent_inject_ssh"))
_TEXTS = frozenset((
    "hw_architecture", "hw_emulation_architecture", "hw_auto_disk_config", "hw_cdrom_bus", "hw_cpu_policy",
    "hw_cpu_thread_policy", "hw_cpu_realtime_mask", "hw_disk_bus", "hw_disk_type", "hw_floppy_bus",
    "hw_firmware_type", "hw_input_bus", "hw_machine_type", "hw_mem_encryption_model", "hw_mem_page_size",
    "hw_pci_numa_affinity_policy", "hw_pointer_model", "hw_rescue_bus", "hw_rescue_device", "hw_rng_model",
    "hw_scsi_model", "hw_video_model", "hw_vif_model", "hw_viommu_model", "hw_vm_mode", "hw_watchdog_action",
    "hw_tpm_model", "hw_tpm_version", "hw_ephemeral_encryption_format", "hw_maxphysaddr_mode", "hw_sound_model",
    "hw_usb_model", "img_hv_type", "img_config_drive", "img_owner_id", "img_root_device_name", "img_signature",
    "img_signature_hash_method", "img_signature_key_type", "img_signature_certificate_uuid",
    "img_hv_requested_version", "os_admin_user", "os_command_line", "os_distro", "os_secure_boot", "os_type"))
_TRUE = frozenset(("true", "yes", "on", "1", "t", "y"))
PROPS_VERSION = "1.19"


def properties(given: Mapping[str, str]) -> dict[str, object]:
    """Return the properties that compute defines; others belong to the image service only."""
    data: dict[str, Any] = {}
    for name, value in sorted(given.items()):
        if name in _TEXTS:
            data[name] = value
        elif name in _BOOLEANS:
            data[name] = str(value).lower() in _TRUE
        elif name in _INTEGERS and str(value).lstrip("-").isdigit():
            data[name] = int(value)
    required = sorted(name.removeprefix("trait:") for name, value in given.items()
                      if name.startswith("trait:") and value == "required")
    if required:
        data["traits_required"] = required
    return wire("ImageMetaPropsPayload", PROPS_VERSION, data)


IMAGE_META = Payload(
    "ImageMetaPayload", "1.0",
    *fields("id", "name", "status", "visibility", "protected", "checksum", "owner", "container_format", "disk_format",
            "created_at", "updated_at"),
    PayloadField("size", "size_bytes"), PayloadField("virtual_size", lambda image: image.virtual_size_bytes or None),
    PayloadField("min_ram", "min_ram_mb"), PayloadField("min_disk", "min_disk_gb"),
    # tags and locations stay in the image service: a server's copy of its image has none
    PayloadField("tags", lambda _image: []), PayloadField("direct_url", lambda _image: None),
    PayloadField("properties", lambda image: properties(image.properties)))

DESTINATION = Payload("DestinationPayload", "1.0", PayloadField("host", lambda arguments: arguments["host"]),
                      PayloadField("node", lambda arguments: arguments.get("node")),
                      PayloadField("cell", lambda _arguments: None),
                      PayloadField("aggregates", lambda _arguments: None))
RETRIES = Payload("SchedulerRetriesPayload", "1.0", PayloadField("num_attempts", len), PayloadField("hosts", list))
PCI_REQUESTS = Payload("InstancePCIRequestsPayload", "1.0", PayloadField("instance_uuid", "uuid"),
                       PayloadField("requests", lambda _row: []))


def _destination(spec: SpecFacts) -> object:
    """Return the requested host; a forced host is in other fields, not here."""
    asked = spec.arguments.get("host") and not spec.arguments.get("forced")
    return DESTINATION(spec.arguments) if asked else None


def _forced(name: str) -> PayloadField:
    return PayloadField(f"force_{name}s",
                        lambda spec: spec.arguments.get(name) if spec.arguments.get("forced") else None)


def _hints(spec: SpecFacts) -> dict[str, list[object]]:
    return {name: list(value) if isinstance(value, (list, tuple)) else [value]
            for name, value in (spec.row.scheduler_hints or {}).items()}


def _image(spec: SpecFacts) -> dict[str, object] | None:
    return IMAGE_META(spec.row.image)


REQUEST_SPEC = Payload(
    "RequestSpecPayload", "1.1",
    *fields("project_id", "user_id", of="row"),
    PayloadField("instance_uuid", "row.uuid"), PayloadField("availability_zone", "row.pinned_availability_zone"),
    PayloadField("flavor", lambda spec: SERVERS_FLAVOR(spec.row.flavor)), PayloadField("image", _image),
    _forced("host"), _forced("node"), PayloadField("ignore_hosts", lambda spec: spec.tried or None),
    PayloadField("instance_group", lambda _spec: None), PayloadField("numa_topology", lambda _spec: None),
    PayloadField("pci_requests", lambda spec: PCI_REQUESTS(spec.row)), PayloadField("num_instances", "count"),
    PayloadField("requested_destination", _destination),
    PayloadField("retry", lambda spec: RETRIES(spec.tried) if spec.tried else None),
    PayloadField("scheduler_hints", _hints),
                       PayloadField("security_groups", lambda spec: spec.row.security_groups or ()))

COMPUTE_TASK = Payload(
    "ComputeTaskPayload", "1.0",
    PayloadField("instance_uuid", "uuid"), PayloadField("request_spec", lambda task: REQUEST_SPEC(task.spec)),
    PayloadField("state", "state"), PayloadField("reason", lambda task: EXCEPTION(task.failure)))
