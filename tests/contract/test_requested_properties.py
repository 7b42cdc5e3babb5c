"""Every extra spec and image property of the contract that could concern where a server runs is looked at for that, or
there is a reason why not."""

from __future__ import annotations

import pytest

from nova import errors
from nova.model.flavor.flavors import Flavor
from nova.model.numa.topology import PciRequest, PciSpec
from nova.model.scheduling.requirements import Needs, needs_of
from nova.scheduler import prefilters
from tests.contract import rows
from tests.fakes.scheduling import filter_options, placement_request

pytestmark = rows.needs_contract

DEDICATED = {"hw:cpu_policy": "dedicated"}
REAL = {**DEDICATED, "hw:cpu_realtime": "yes", "hw:emulator_threads_policy": "share"}
NODES = {"hw:numa_nodes": "1"}
EFI = {"hw_firmware_type": "uefi"}
GPU = {"pci_passthrough:alias": "gpu:1"}
Properties = dict[str, str]

#: Extra spec -> (a value, other extra specs, image properties) with which it makes a difference.
SPECS: dict[str, tuple[str, Properties, Properties]] = {
    "hw:cpu_policy": ("dedicated", {}, {}), "hw:cpu_thread_policy": ("isolate", DEDICATED, {}),
    "hw:emulator_threads_policy": ("isolate", DEDICATED, {}),
    "hw:cpu_dedicated_mask": ("0", {"hw:cpu_policy": "mixed"}, {}),
    "hw:cpu_realtime": ("yes", {**DEDICATED, "hw:cpu_realtime_mask": "^0"}, {}),
    "hw:cpu_realtime_mask": ("^0", REAL, {}), "hw:mem_page_size": ("large", {}, {}),
    "hw:locked_memory": ("yes", {"hw:mem_page_size": "small"}, {}), "hw:numa_nodes": ("2", {}, {}),
    "hw:numa_cpus.{num}": ("0-3", NODES, {}), "hw:numa_mem.{num}": ("4096", NODES, {}),
    "hw:pci_numa_affinity_policy": ("required", GPU, {}), "hw:cpu_threads": ("2", DEDICATED, {}),
    "hw:mem_encryption": ("yes", {}, EFI), "hw:mem_encryption_model": ("amd-sev-es", {"hw:mem_encryption": "yes"}, EFI),
    "hw:pmem": ("4GB", {}, {}), "hw:tpm_version": ("2.0", {}, {}), "hw:tpm_model": ("tpm-crb", {}, {}),
    "hw:viommu_model": ("virtio", {}, {}), "hw:maxphysaddr_mode": ("emulate", {}, {}),
    "os:secure_boot": ("required", {}, {}),
    "pci_passthrough:alias": ("gpu:1", {}, {}),
    "group_policy": ("isolate", {"resources1:VGPU": "1", "resources2:VGPU": "1"}, {}),
}
#: Image property -> the same.
PROPERTIES: dict[str, tuple[str, Properties, Properties]] = {
    "hw_cpu_policy": ("dedicated", {}, {}), "hw_cpu_thread_policy": ("require", DEDICATED, {}),
    "hw_cpu_realtime_mask": ("^0", REAL, {}), "hw_cpu_threads": ("2", DEDICATED, {}),
    "hw_locked_memory": ("yes", {"hw:mem_page_size": "small"}, {}), "hw_mem_encryption": ("yes", {}, EFI),
    "hw_mem_encryption_model": ("amd-sev-es", {"hw:mem_encryption": "yes"}, EFI),
    "hw_mem_page_size": ("small", {"hw:mem_page_size": "any"}, {}), "hw_numa_nodes": ("2", {}, {}),
    "hw_numa_cpus": ("0-3", {}, {"hw_numa_nodes": "1"}), "hw_numa_mem": ("4096", {}, {"hw_numa_nodes": "1"}),
    "hw_pci_numa_affinity_policy": ("socket", GPU, {}), "hw_tpm_version": ("2.0", {}, {}),
    "hw_tpm_model": ("tpm-tis", {}, {}), "hw_viommu_model": ("intel", {}, {}),
    "hw_maxphysaddr_mode": ("passthrough", {}, {}), "hw_firmware_stateless": ("yes", {}, {}),
    "os_secure_boot": ("required", {}, {}), "traits_required": ("CUSTOM_A", {}, {}),
}
#: Name -> a value for which a prefilter of the scheduler asks for a trait, or a number.
PREFILTERED = {
    "hw:virtio_packed_ring": "yes", "hw_virtio_packed_ring": "yes", "hw:sound_model": "virtio",
    "hw_sound_model": "virtio", "hw:ephemeral_encryption": "yes", "hw_ephemeral_encryption": "yes",
    "hw:maxphysaddr_bits": "46", "hw_maxphysaddr_bits": "46",
    "hw:tpm_secret_security": "user", "accel:device_profile": "fpga"}
_GUEST, _PREFILTER = "how the guest is made, on whichever host", "a prefilter of the scheduler asks for it"
_BOUND = "a bound for what the image says of the guest's processors (nova.model.scheduling.image_flavor_conflicts)"
_CHECKED = "ImagePropertiesFilter compares it with what hosts can run"
#: Those that are looked at elsewhere, or of which no host has more than another.
ELSEWHERE = {
    **dict.fromkeys(("hw:cpu_sockets", "hw:cpu_cores", "hw:hide_hypervisor_id", "hw:boot_menu", "hw:pmu",
                     "hw:vif_multiqueue_enabled", "hw:serial_port_count", "hw:watchdog_action", "hw:usb_model",
                     "hw:redirected_usb_ports", "hw:ephemeral_encryption_format"), _GUEST),
    **dict.fromkeys(("hw:cpu_max_sockets", "hw:cpu_max_cores", "hw:cpu_max_threads"), _BOUND),
    **dict.fromkeys((name for name in PREFILTERED if ":" in name), _PREFILTER),
    **dict.fromkeys(("hw_architecture", "hw_vm_mode"), _CHECKED),
    **dict.fromkeys((name for name in PREFILTERED if ":" not in name), _PREFILTER),
    **dict.fromkeys((
        "hw_emulation_architecture", "hw_auto_disk_config", "hw_boot_menu", "hw_cdrom_bus", "hw_cpu_cores",
        "hw_cpu_sockets", "hw_cpu_max_cores", "hw_cpu_max_sockets", "hw_cpu_max_threads", "hw_device_id",
        "hw_disk_bus", "hw_disk_type", "hw_floppy_bus", "hw_input_bus", "hw_ipxe_boot", "hw_machine_type",
        "hw_pointer_model", "hw_pmu", "hw_qemu_guest_agent", "hw_rescue_bus", "hw_rescue_device", "hw_rng_model",
        "hw_time_hpet", "hw_serial_port_count", "hw_scsi_model", "hw_video_model", "hw_video_ram", "hw_vif_model",
        "hw_watchdog_action", "hw_vif_multiqueue_enabled", "hw_ephemeral_encryption_format",
        "hw_ephemeral_encryption_secret_uuid", "hw_usb_model", "hw_redirected_usb_ports",
        "hw_firmware_type", "os_admin_user", "os_command_line", "os_distro", "os_require_quiesce",
        "os_skip_agent_inject_files_at_boot", "os_skip_agent_inject_ssh", "os_type"),
                    "how the guest is made; [scheduler]image_metadata_prefilter asks for hosts that can"),
}
NAMESPACES = ("hw:", "os:", "pci_passthrough:", "accel:", "group_policy")


def needs(specs: Properties, image: Properties) -> Needs | str:
    """Or why not."""
    flavor = Flavor(flavorid="1", name="m1", vcpus=4, memory_mb=4096, root_gb=1, extra_specs=specs)
    gpu = PciRequest(count=1, specs=(PciSpec(vendor_id="10de"),), alias="gpu")
    try:
        return needs_of(flavor, image, {"gpu": gpu})
    except errors.Invalid as error:
        return error.message


def specs_of_contract() -> set[str]:
    return {entry["name"] for entry in rows.load("flavor_extra_specs.yaml")["specs"]
            if entry["name"].startswith(NAMESPACES)}


def properties_of_contract() -> set[str]:
    return {entry["name"] for entry in rows.load("image_properties.yaml")["properties"]
            if entry["name"].startswith(("hw_", "os_", "trait"))}


def test_every_name_of_the_contract_is_looked_at_or_there_is_a_reason_why_not():
    assert specs_of_contract() <= {*SPECS, *ELSEWHERE}
    assert properties_of_contract() <= {*PROPERTIES, *ELSEWHERE}
    assert not {*SPECS, *PROPERTIES} & set(ELSEWHERE)


@pytest.mark.parametrize("name", sorted(SPECS))
def test_extra_spec_makes_a_difference(name):
    value, specs, image = SPECS[name]
    with_it = needs({**specs, name.replace("{num}", "0"): value}, image)
    assert with_it != needs(specs, image)
    assert name in specs_of_contract()


@pytest.mark.parametrize("name", sorted(PROPERTIES))
def test_image_property_makes_a_difference(name):
    value, specs, image = PROPERTIES[name]
    given = f"{name}.0" if name in ("hw_numa_cpus", "hw_numa_mem") else name
    assert needs(specs, {**image, given: value}) != needs(specs, image)
    assert name in properties_of_contract()


@pytest.mark.parametrize("name", sorted(PREFILTERED))
def test_what_prefilters_ask_for_is_asked_for(name):
    tpm = {"hw:tpm_version": "2.0"} if "tpm" in name else {}
    said = {"extra_specs" if ":" in name else "image_properties": {**tpm, name: PREFILTERED[name]}}
    request = placement_request(**said)
    assert any(one.wanted(request) for one in prefilters.load(filter_options()))


@pytest.mark.parametrize("name", ["VCPU", "MEMORY_MB", "DISK_GB", "PCPU", "VGPU", "CUSTOM_A"])
def test_resources_of_the_contract_override_or_add(name):
    listed = rows.load("flavor_extra_specs.yaml")["resources"]["names"]
    assert name in listed or name.startswith("CUSTOM_")
    assert needs({f"resources:{name}": "3"}, {}) != needs({}, {})


@pytest.mark.parametrize("name", ["hw:cpu_policy", "hw:cpu_thread_policy", "hw:emulator_threads_policy",
                                  "hw:pci_numa_affinity_policy", "hw:mem_encryption_model", "group_policy"])
def test_each_value_of_the_contract_is_taken_and_no_other(name):
    [allowed] = [entry["allowed"] for entry in rows.load("flavor_extra_specs.yaml")["specs"] if entry["name"] == name]
    _, specs, image = SPECS[name]
    others = {**specs, **({"hw:cpu_dedicated_mask": "0"} if name == "hw:cpu_policy" else {})}
    for value in allowed:
        given = {**others, name: value}
        if name == "hw:cpu_policy" and value != "mixed":
            del given["hw:cpu_dedicated_mask"]
        assert isinstance(needs(given, image), Needs), (name, value)
    assert "must be one of" in needs({**specs, name: "nothing of it"}, image)
