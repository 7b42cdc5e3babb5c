"""What flavors and images ask of hosts."""

from __future__ import annotations

import timeit
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nova import errors
from nova.model.flavor.flavors import Flavor
from nova.model.numa import pci_aliases
from nova.model.numa.topology import GuestTopology, PciRequest, PciSpec
from nova.model.placement import candidates
from nova.model.placement.providers import Amount, ProviderState, RequestGroup
from nova.model.scheduling.decisions import HostRequirements, Resources
from nova.model.scheduling.requirements import may_hold, needs_of

DEDICATED = {"hw:cpu_policy": "dedicated"}
MIXED = {"hw:cpu_policy": "mixed"}
REAL = {**DEDICATED, "hw:cpu_realtime": "yes"}
GPU = PciRequest(count=1, specs=(PciSpec(vendor_id="10de", product_id="1db4"),), alias="gpu")
Specs = Mapping[str, str]


def flavor(specs: Specs = {}, vcpus: int = 4, memory_mb: int = 4096, **fields: object) -> Flavor:  # noqa: B006
    return Flavor(**{"flavorid": "1", "name": "m1", "root_gb": 10, "vcpus": vcpus, "memory_mb": memory_mb,
                     "extra_specs": specs, **fields})


def requirements_of(specs: Specs, image: Specs | None = None, **fields: object) -> HostRequirements:
    found = needs_of(flavor(specs, **fields), image or {}, {"gpu": GPU}).requirements
    assert found is not None
    return found


def guest(specs: Specs, image: Specs | None = None, **fields: object) -> GuestTopology:
    found = requirements_of(specs, image, **fields).topology.guest
    assert found is not None
    return found


def refused(specs: Specs, image: Specs | None = None, **fields: object) -> errors.Invalid:
    with pytest.raises(errors.Invalid) as caught:
        needs_of(flavor(specs, **fields), image or {}, {"gpu": GPU})
    return caught.value


# -- amounts and traits

@pytest.mark.parametrize(("specs", "image"), [
    ({}, {}), ({"hw:boot_menu": "yes", "hw:cpu_cores": "2"}, {"hw_disk_bus": "virtio", "os_type": "linux"}),
    ({"quota:cpu_shares": "5", "mine": "x"}, {}), ({"hw:cpu_policy": "shared"}, {"hw_cpu_policy": "shared"}),
    ({"hw:mem_encryption": "no", "hw:emulator_threads_policy": "share", "hw:cpu_realtime": "off"}, {}),
    ({"os:secure_boot": "disabled", "hw:locked_memory": "no"}, {"hw_firmware_stateless": "no"})])
def test_needs_when_nothing_is_required_then_there_are_numbers_only(specs, image):
    assert not may_hold(flavor(specs), image) or "hw:cpu_policy" in specs
    assert needs_of(flavor(specs, swap_mb=100, ephemeral_gb=2), image) == (
        Resources(vcpus=4, memory_mb=4096, disk_gb=13), None)


def test_needs_of_a_plain_server_cost_next_to_nothing():
    """It is asked for each boot; bounded widely, for busy machines."""
    one, image = flavor(), {"os_type": "linux", "architecture": "x86_64"}
    assert min(timeit.repeat(lambda: needs_of(one, image), number=100, repeat=20)) / 100 < 50e-6


def test_needs_when_amounts_are_overridden_then_they_are_so():
    found = needs_of(flavor({"resources:VCPU": "0", "resources:MEMORY_MB": "0", "resources:DISK_GB": "0",
                             "resources:CUSTOM_BAREMETAL": "1"}), {})
    assert found.resources == Resources(vcpus=0, memory_mb=0, disk_gb=0)
    assert found.requirements.request.groups == (RequestGroup(resources={"CUSTOM_BAREMETAL": 1}),)
    found = needs_of(flavor({"resources:VCPU": "2"}), {})
    assert found == (Resources(vcpus=2, memory_mb=4096, disk_gb=10), None)


def test_needs_of_groups():
    request = requirements_of({"resources:VGPU": "1", "trait:HW_CPU_X86_AVX": "required",
                               "trait:CUSTOM_OLD": "forbidden", "trait1:CUSTOM_BAD": "forbidden",
                               "resources1:SRIOV_NET_VF": "1", "trait1:CUSTOM_NET": "required",
                               "resources_ssd:CUSTOM_DISK": "2", "resources3:VGPU": "0", "group_policy": "isolate",
                               "same_subtree": "1,_ssd"}).request
    assert request.groups == (
        RequestGroup(resources={"VCPU": 4, "MEMORY_MB": 4096, "DISK_GB": 10, "VGPU": 1},
                     required=(("HW_CPU_X86_AVX",),), forbidden=("CUSTOM_OLD",)),
        RequestGroup(suffix="1", resources={"SRIOV_NET_VF": 1}, required=(("CUSTOM_NET",),), forbidden=("CUSTOM_BAD",)),
        RequestGroup(suffix="_ssd", resources={"CUSTOM_DISK": 2}))
    assert request.group_policy == "isolate" and request.same_subtree == (("1", "_ssd"),)


@pytest.mark.parametrize(("image", "traits"), [
    ({"trait:HW_CPU_X86_AVX": "required"}, ["HW_CPU_X86_AVX"]),
    ({"traits_required": "CUSTOM_A, CUSTOM_B"}, ["CUSTOM_A", "CUSTOM_B"]),
    ({"traits_required": '["CUSTOM_B", "CUSTOM_A"]'}, ["CUSTOM_A", "CUSTOM_B"])])
def test_needs_when_the_image_requires_traits_then_they_stand_beside_the_flavors(image, traits):
    [group] = requirements_of({"trait:CUSTOM_0": "required"}, image).request.groups
    assert group.required == (("CUSTOM_0",), *((name,) for name in traits))


@pytest.mark.parametrize(("specs", "image", "traits"), [
    ({"hw:tpm_version": "2.0", "hw:tpm_model": "tpm-crb"}, {},
     ["COMPUTE_SECURITY_TPM_2_0", "COMPUTE_SECURITY_TPM_CRB"]),
    ({}, {"hw_tpm_version": "1.2"}, ["COMPUTE_SECURITY_TPM_1_2"]),
    ({"os:secure_boot": "required"}, {}, ["COMPUTE_SECURITY_UEFI_SECURE_BOOT"]),
    ({}, {"os_secure_boot": "required"}, ["COMPUTE_SECURITY_UEFI_SECURE_BOOT"]),
    ({}, {"hw_firmware_stateless": "yes"}, ["COMPUTE_SECURITY_STATELESS_FIRMWARE"]),
    ({}, {"hw_maxphysaddr_mode": "emulate"}, ["COMPUTE_ADDRESS_SPACE_EMULATED"]),
    ({"hw:maxphysaddr_mode": "passthrough"}, {}, ["COMPUTE_ADDRESS_SPACE_PASSTHROUGH"]),
    ({"hw:maxphysaddr_mode": "emulate", "hw:maxphysaddr_bits": "46"}, {"hw_maxphysaddr_bits": "99"},
     ["COMPUTE_ADDRESS_SPACE_EMULATED"]),
    ({"hw:viommu_model": "virtio"}, {}, ["COMPUTE_VIOMMU_MODEL_VIRTIO"])])
def test_needs_when_not_every_host_can_then_one_with_the_trait_is_asked_for(specs, image, traits):
    assert requirements_of(specs, image).request.root_required == tuple(sorted(traits))


def test_needs_of_persistent_memory():
    [group] = requirements_of({"hw:pmem": "4gb,4GB,16GB"}).request.groups
    assert group.resources["CUSTOM_PMEM_NAMESPACE_4GB"] == 2 and group.resources["CUSTOM_PMEM_NAMESPACE_16GB"] == 1


@pytest.mark.parametrize(("specs", "image", "trait"), [
    ({"hw:mem_encryption": "true"}, {}, "HW_CPU_X86_AMD_SEV"), ({}, {"hw_mem_encryption": "yes"}, "HW_CPU_X86_AMD_SEV"),
    ({"hw:mem_encryption": "true", "hw:mem_encryption_model": "amd-sev-es"}, {}, "HW_CPU_X86_AMD_SEV_ES"),
    ({"hw:mem_encryption": "true"}, {"hw_mem_encryption_model": "amd-sev-snp"}, "HW_CPU_X86_AMD_SEV_SNP")])
def test_needs_of_encrypted_memory(specs, image, trait):
    [group] = requirements_of(specs, {"hw_firmware_type": "uefi", "hw_machine_type": "q35", **image}).request.groups
    assert group.resources["MEM_ENCRYPTION_CONTEXT"] == 1 and group.required == ((trait,),)


# -- cells

def test_guest_when_it_is_dedicated_then_processors_are_of_another_class():
    found = needs_of(flavor({**DEDICATED, "hw:emulator_threads_policy": "isolate"}), {})
    assert found.resources == Resources(vcpus=0, memory_mb=4096, disk_gb=10)
    assert found.requirements.request.groups[0].resources == {"PCPU": 5, "MEMORY_MB": 4096, "DISK_GB": 10}
    topology = found.requirements.topology.guest
    assert not topology.numa and topology.emulator == "isolate"
    [cell] = topology.cells
    assert (cell.vcpus, cell.pinned, cell.memory_mb) == ((0, 1, 2, 3), (0, 1, 2, 3), 4096)


def test_guest_when_it_is_mixed_then_both_classes():
    found = needs_of(flavor({**MIXED, "hw:cpu_dedicated_mask": "^0"}), {})
    assert found.resources.vcpus == 1 and found.requirements.request.groups[0].resources["PCPU"] == 3
    assert found.requirements.topology.guest.cells[0].pinned == (1, 2, 3)


def test_guest_when_an_amount_of_processors_is_named_then_it_stands():
    found = needs_of(flavor({**DEDICATED, "resources:PCPU": "3"}), {})
    assert found.resources.vcpus == 4 and found.requirements.request.groups[0].resources["PCPU"] == 3


@pytest.mark.parametrize(("specs", "image", "cells"), [
    ({"hw:numa_nodes": "2"}, {}, [((0, 1), 2048), ((2, 3), 2048)]),
    ({}, {"hw_numa_nodes": "4"}, [((0,), 1024), ((1,), 1024), ((2,), 1024), ((3,), 1024)]),
    ({"hw:numa_nodes": "2", "hw:numa_cpus.0": "0-3,^2", "hw:numa_cpus.1": "2", "hw:numa_mem.0": "3096",
      "hw:numa_mem.1": "1000"}, {}, [((0, 1, 3), 3096), ((2,), 1000)]),
    ({}, {"hw_numa_nodes": "2", "hw_numa_cpus.0": "3", "hw_numa_cpus.1": "0-2", "hw_numa_mem.0": "96",
          "hw_numa_mem.1": "4000"}, [((3,), 96), ((0, 1, 2), 4000)])])
def test_guest_of_nodes(specs, image, cells):
    found = guest(specs, image)
    assert found.numa and [(cell.vcpus, cell.memory_mb) for cell in found.cells] == cells
    assert needs_of(flavor(specs), image).resources.vcpus == 4


@pytest.mark.parametrize(("specs", "image", "page"), [
    ({"hw:mem_page_size": "large"}, {}, "large"), ({"hw:mem_page_size": "2048"}, {}, "2048"),
    ({"hw:mem_page_size": "2MB"}, {}, "2048"), ({"hw:mem_page_size": "1GiB"}, {}, "1048576"),
    ({"hw:mem_page_size": "1G"}, {}, "1048576"), ({"hw:mem_page_size": "16Mb"}, {}, "2048"),
    ({"hw:mem_page_size": "4096B"}, {}, "4"), ({"hw:mem_page_size": "any"}, {"hw_mem_page_size": "small"}, "small"),
    ({"hw:mem_page_size": "any"}, {"hw_mem_page_size": "1GB"}, "1048576"),
    ({"hw:mem_page_size": "large"}, {"hw_mem_page_size": "2048"}, "2048"),
    ({"hw:mem_page_size": "large"}, {"hw_mem_page_size": "any"}, "large"),
    ({"hw:mem_page_size": "2048"}, {"hw_mem_page_size": "2MB"}, "2048")])
def test_guest_of_pages(specs, image, page):
    found = guest(specs, image)
    assert found.page == page and not found.numa and len(found.cells) == 1


def test_guest_of_locked_memory():
    assert guest({"hw:mem_page_size": "small", "hw:locked_memory": "yes"}).locked
    assert guest({"hw:mem_page_size": "small"}, {"hw_locked_memory": "yes"}).locked
    assert not guest({"hw:mem_page_size": "small"}).locked


@pytest.mark.parametrize(("specs", "image", "policy"), [
    ({**DEDICATED, "hw:cpu_thread_policy": "isolate"}, {}, "isolate"),
    (DEDICATED, {"hw_cpu_thread_policy": "require"}, "require"),
    ({}, {"hw_cpu_policy": "dedicated", "hw_cpu_thread_policy": "prefer"}, "prefer"),
    ({**DEDICATED, "hw:cpu_thread_policy": "prefer"}, {"hw_cpu_thread_policy": "isolate"}, "prefer"),
    (DEDICATED, {"hw_cpu_policy": "shared"}, "")])
def test_guest_of_thread_policies(specs, image, policy):
    found = guest(specs, image)
    assert found.thread_policy == policy and len(found.cells[0].pinned) == 4


@pytest.mark.parametrize(("specs", "image", "fast", "pinned"), [
    ({**REAL, "hw:cpu_realtime_mask": "^0"}, {}, (1, 2, 3), 4),
    ({**REAL, "hw:cpu_realtime_mask": "2-3"}, {}, (2, 3), 4),
    ({**REAL, "hw:cpu_realtime_mask": "^0"}, {"hw_cpu_realtime_mask": "^0-1"}, (2, 3), 4),
    ({**REAL, "hw:emulator_threads_policy": "share"}, {}, (0, 1, 2, 3), 4),
    ({**MIXED, "hw:cpu_realtime": "yes", "hw:cpu_realtime_mask": "^0"}, {}, (1, 2, 3), 3),
    ({**MIXED, "hw:cpu_realtime": "yes", "hw:cpu_dedicated_mask": "3"}, {}, (3,), 1),
    ({**DEDICATED, "hw:cpu_realtime_mask": "^0"}, {}, (), 4)])
def test_guest_of_realtime_processors(specs, image, fast, pinned):
    found = guest(specs, image)
    assert found.realtime == fast and len(found.cells[0].pinned) == pinned


def test_guest_of_threads():
    assert guest({**DEDICATED, "hw:cpu_threads": "2"}).threads == 2
    assert guest(DEDICATED, {"hw_cpu_threads": "4"}).threads == 4 and guest(DEDICATED).threads is None


# -- contradictions: (extra specs, image, what the error is about, words of it)

CONTRADICTIONS = [
    ({"hw:cpu_policy": "some"}, {}, "hw:cpu_policy", "one of shared, mixed, dedicated"),
    ({"hw:cpu_policy": "shared"}, {"hw_cpu_policy": "dedicated"}, "hw_cpu_policy", "flavor has hw:cpu_policy=shared"),
    ({"hw:cpu_policy": "shared"}, {"hw_cpu_policy": "mixed"}, "hw_cpu_policy", "the flavor has"),
    ({**MIXED, "hw:cpu_dedicated_mask": "0"}, {"hw_cpu_policy": "dedicated"}, "hw_cpu_policy", "the flavor has"),
    (MIXED, {}, "hw:cpu_policy", "requires hw:cpu_dedicated_mask"),
    ({}, {"hw_cpu_policy": "mixed"}, "hw_cpu_policy", "requires hw:cpu_dedicated_mask"),
    ({**MIXED, "hw:cpu_dedicated_mask": "0-3"}, {}, "hw:cpu_dedicated_mask", "at least one dedicated and one shared"),
    ({**MIXED, "hw:cpu_dedicated_mask": "^0-3"}, {}, "hw:cpu_dedicated_mask", "at least one dedicated and one shared"),
    ({**MIXED, "hw:cpu_dedicated_mask": "4"}, {}, "hw:cpu_dedicated_mask", "CPUs 0 to 3"),
    ({**MIXED, "hw:cpu_dedicated_mask": "x"}, {}, "hw:cpu_dedicated_mask", "a CPU set"),
    ({**MIXED, "hw:cpu_dedicated_mask": "0", "hw:cpu_realtime": "1", "hw:cpu_realtime_mask": "1"}, {},
     "hw:cpu_dedicated_mask", "remove one of them"),
    ({**DEDICATED, "hw:cpu_dedicated_mask": "0"}, {}, "hw:cpu_dedicated_mask", "requires hw:cpu_policy=mixed"),
    ({"hw:cpu_dedicated_mask": "0"}, {}, "hw:cpu_dedicated_mask", "requires hw:cpu_policy=mixed"),
    ({"hw:cpu_thread_policy": "isolate"}, {}, "hw:cpu_thread_policy", "requires dedicated"),
    ({}, {"hw_cpu_thread_policy": "prefer"}, "hw_cpu_thread_policy", "requires dedicated"),
    ({**DEDICATED, "hw:cpu_thread_policy": "isolate"}, {"hw_cpu_thread_policy": "require"}, "hw_cpu_thread_policy",
     "flavor has hw:cpu_thread_policy=isolate"),
    ({"hw:emulator_threads_policy": "isolate"}, {}, "hw:emulator_threads_policy", "requires dedicated"),
    ({"hw:emulator_threads_policy": "alone"}, {}, "hw:emulator_threads_policy", "one of isolate, share"),
    ({"hw:cpu_realtime": "yes"}, {}, "hw:cpu_realtime", "requires dedicated"),
    ({"hw:cpu_realtime": "maybe"}, {}, "hw:cpu_realtime", "yes or no"),
    (REAL, {}, "hw:cpu_realtime", "at least one CPU must not be realtime"),
    ({**REAL, "hw:cpu_realtime_mask": "0-3"}, {}, "hw:cpu_realtime_mask", "at least one CPU must not"),
    ({**REAL, "hw:cpu_realtime_mask": "^0-3"}, {}, "hw:cpu_realtime_mask", "no CPU remains"),
    ({**REAL, "hw:cpu_realtime_mask": "1-9"}, {}, "hw:cpu_realtime_mask", "CPUs 0 to 3"),
    ({"hw:numa_nodes": "3"}, {}, "hw:numa_nodes", "4 CPUs cannot be divided evenly"),
    ({"hw:numa_nodes": "0"}, {}, "hw:numa_nodes", "an integer from 1"),
    ({"hw:numa_nodes": "5"}, {}, "hw:numa_nodes", "only has 4 CPUs"),
    ({}, {"hw_numa_nodes": "999999999999999999"}, "hw_numa_nodes", "an integer from 1"),
    ({"hw:numa_nodes": "2"}, {"hw_numa_nodes": "2"}, "hw_numa_nodes", "the image cannot set"),
    ({"hw:numa_nodes": "2"}, {"hw_numa_mem.0": "5"}, "hw_numa_mem.0", "the image cannot set"),
    ({"hw:numa_cpus.0": "0"}, {}, "hw:numa_cpus.0", "requires hw:numa_nodes"),
    ({}, {"hw_numa_mem.1": "7"}, "hw_numa_mem.1", "requires hw_numa_nodes"),
    ({"hw:numa_nodes": "2", "hw:numa_cpus.0": "0-3"}, {}, "hw:numa_nodes", "both CPUs and memory"),
    ({"hw:numa_nodes": "1", "hw:numa_cpus.1": "0-3", "hw:numa_mem.1": "4096"}, {}, "hw:numa_cpus.1",
     "there are 1 nodes"),
    ({"hw:numa_nodes": "2", "hw:numa_cpus.0": "0-2", "hw:numa_cpus.1": "2-3", "hw:numa_mem.0": "96",
      "hw:numa_mem.1": "4000"}, {}, "hw:numa_cpus.1", "CPU 2 is already assigned"),
    ({"hw:numa_nodes": "2", "hw:numa_cpus.0": "0", "hw:numa_cpus.1": "2-3", "hw:numa_mem.0": "96",
      "hw:numa_mem.1": "4000"}, {}, "hw:numa_nodes", "CPU 1 is not assigned"),
    ({"hw:numa_nodes": "2", "hw:numa_cpus.0": "0-1", "hw:numa_cpus.1": "2-3", "hw:numa_mem.0": "96",
      "hw:numa_mem.1": "40"}, {}, "hw:numa_nodes", "136 MB of memory in total, but the server has 4096 MB"),
    ({"hw:numa_nodes": "2", "hw:numa_cpus.0": "0-3", "hw:numa_cpus.1": "^0-3", "hw:numa_mem.0": "96",
      "hw:numa_mem.1": "4000"}, {}, "hw:numa_cpus.1", "at least one CPU"),
    ({}, {"hw_numa_nodes": "1", "hw_numa_cpus.0": "0-99999999", "hw_numa_mem.0": "1"}, "hw_numa_cpus.0", "0 to 3"),
    ({"hw:mem_page_size": "huge"}, {}, "hw:mem_page_size", "small, large, any, or a size"),
    ({"hw:mem_page_size": "0"}, {}, "hw:mem_page_size", "at least 1 KB"),
    ({"hw:mem_page_size": "8b"}, {}, "hw:mem_page_size", "at least 1 KB"),
    ({}, {"hw_mem_page_size": "large"}, "hw_mem_page_size", "the flavor must allow it"),
    ({"hw:mem_page_size": "small"}, {"hw_mem_page_size": "large"}, "hw_mem_page_size", "hw:mem_page_size=small"),
    ({"hw:mem_page_size": "large"}, {"hw_mem_page_size": "small"}, "hw_mem_page_size", "hw:mem_page_size=large"),
    ({"hw:mem_page_size": "2MB"}, {"hw_mem_page_size": "1GB"}, "hw_mem_page_size", "hw:mem_page_size=2MB"),
    ({"hw:locked_memory": "yes"}, {}, "hw:locked_memory", "requires a page size"),
    ({"hw:locked_memory": "yes", "hw:mem_page_size": "any"}, {"hw_locked_memory": "no"}, "hw_locked_memory",
     "flavor has hw:locked_memory=yes"),
    ({"hw:mem_encryption": "yes"}, {}, "hw:mem_encryption", "hw_firmware_type=uefi"),
    ({"hw:maxphysaddr_mode": "host"}, {}, "hw:maxphysaddr_mode", "one of passthrough, emulate"),
    ({"hw:maxphysaddr_mode": "emulate", "hw:maxphysaddr_bits": "99"}, {}, "hw:maxphysaddr_bits", "from 32 to 64"),
    ({"hw:maxphysaddr_mode": "emulate", "hw:maxphysaddr_bits": "31"}, {}, "hw:maxphysaddr_bits", "from 32 to 64"),
    ({"hw:maxphysaddr_mode": "emulate"}, {"hw_maxphysaddr_bits": "-1"}, "hw_maxphysaddr_bits", "from 32 to 64"),
    ({"hw:mem_encryption": "yes"}, {"hw_mem_encryption": "no"}, "hw_mem_encryption", "flavor has"),
    ({"hw:mem_encryption": "yes"}, {"hw_firmware_type": "uefi", "hw_machine_type": "pc"}, "hw_machine_type", "q35"),
    ({"hw:mem_encryption": "yes", "hw:mem_encryption_model": "amd-sev"},
     {"hw_firmware_type": "uefi", "hw_mem_encryption_model": "amd-sev-es"}, "hw_mem_encryption_model", "flavor has"),
    ({"hw:mem_encryption": "yes", "trait:HW_CPU_X86_AMD_SEV": "forbidden"}, {"hw_firmware_type": "uefi"},
     "trait:HW_CPU_X86_AMD_SEV", "memory is encrypted"),
    ({"trait:CUSTOM_A": "forbidden"}, {"trait:CUSTOM_A": "required"}, "trait:CUSTOM_A", "the image requires it"),
    ({}, {"trait:CUSTOM_A": "forbidden"}, "trait:CUSTOM_A", "one of required"),
    ({}, {"traits_required": "[1]"}, "traits_required", "a list of traits"),
    ({"trait:CUSTOM_A": "maybe"}, {}, "trait:CUSTOM_A", "one of required, forbidden"),
    ({"resources:VGPU": "-1"}, {}, "resources:VGPU", "an integer from 0"),
    ({"trait1:CUSTOM_A": "required"}, {}, "trait1:CUSTOM_A", "the group has no resources"),
    ({"group_policy": "some"}, {}, "group_policy", "one of none, isolate"),
    ({"same_subtree": "1,2", "resources1:VGPU": "1"}, {}, "same_subtree", "unknown group '2'"),
    ({"pci_passthrough:alias": "fpga:1"}, {}, "fpga", "is not defined"),
    ({"pci_passthrough:alias": "gpu"}, {}, "gpu", "must have the form"),
    ({"pci_passthrough:alias": "gpu:0"}, {}, "gpu:0", "must have the form"),
    ({"hw:pci_numa_affinity_policy": "socket"}, {"hw_pci_numa_affinity_policy": "legacy"},
     "hw_pci_numa_affinity_policy", "flavor has"),
    ({"hw:pci_numa_affinity_policy": "near"}, {}, "hw:pci_numa_affinity_policy", "one of required, preferred"),
    ({**DEDICATED, "hw:cpu_threads": "0"}, {}, "hw:cpu_threads", "an integer from 1"),
]


@pytest.mark.parametrize(("specs", "image", "name", "words"), CONTRADICTIONS)
def test_needs_when_they_cannot_be_met_then_the_error_names_what_says_so(specs, image, name, words):
    error = refused(specs, image)
    assert error.message.startswith((f"{name}=", f"PCI alias {name} ", f"pci_passthrough:alias={name}"))
    assert words in error.message and error.status == 400
    assert error.code in ("server.impossible_requirement", "pci.no_such_alias", "pci.bad_request")


# -- devices

def test_devices_of_aliases():
    assert requirements_of({"pci_passthrough:alias": "gpu:2, gpu:1"}).topology.devices == (
        PciRequest(count=2, specs=GPU.specs, alias="gpu"), GPU)


@pytest.mark.parametrize(("specs", "image"), [
    ({"hw:pci_numa_affinity_policy": "socket"}, {}), ({}, {"hw_pci_numa_affinity_policy": "socket"})])
def test_devices_when_a_policy_is_requested_then_it_stands_above_the_aliases(specs, image):
    [device] = requirements_of({"pci_passthrough:alias": "gpu:1", **specs}, image).topology.devices
    assert device.numa_policy == "socket"


def test_devices_of_ports_keep_what_they_say():
    ports = (PciRequest(count=1, specs=(PciSpec(),), id="p1", numa_policy="required"),
             PciRequest(count=1, specs=(PciSpec(),), id="p2"))
    found = needs_of(flavor({"hw:pci_numa_affinity_policy": "preferred"}), {}, {}, ports)
    assert [one.numa_policy for one in found.requirements.topology.devices] == ["required", "preferred"]
    assert needs_of(flavor(), {}, {}, ports).requirements.topology.devices == ports


# -- whatever comes

WORDS = st.sampled_from(["yes", "no", "0", "1", "2", "4", "-1", "0-1", "^0", "dedicated", "mixed", "shared", "isolate",
                         "require", "share", "large", "any", "2MB", "uefi", "required", "x" * 300, "", " ", "gpu:1",
                         "{}"])
KEYS = st.sampled_from([
    "hw:cpu_policy", "hw:cpu_thread_policy", "hw:emulator_threads_policy", "hw:cpu_realtime", "hw:cpu_realtime_mask",
    "hw:cpu_dedicated_mask", "hw:mem_page_size", "hw:locked_memory", "hw:numa_nodes", "hw:numa_cpus.0", "hw:numa_mem.0",
    "hw:pci_numa_affinity_policy", "hw:cpu_threads", "hw:mem_encryption", "hw:pmem", "group_policy", "same_subtree",
    "pci_passthrough:alias", "resources:VCPU", "resources1:VGPU", "trait:CUSTOM_A", "trait1:CUSTOM_A"])


@settings(max_examples=300, deadline=None)
@given(specs=st.dictionaries(KEYS, WORDS), image=st.dictionaries(
    KEYS.map(lambda key: key.replace("hw:", "hw_")), WORDS))
def test_needs_of_anything_are_found_or_refused_and_hold_together(specs, image):
    try:
        resources, found = needs_of(flavor(specs), image, {"gpu": GPU})
    except errors.Invalid:
        return
    assert (resources.memory_mb, resources.disk_gb) == (4096, 10)
    if found is not None and found.topology.anything:
        assert may_hold(flavor(specs), image)
    if found is None or found.topology.guest is None:
        return
    guest = found.topology.guest
    assert sorted(cpu for cell in guest.cells for cpu in cell.vcpus) == [0, 1, 2, 3]
    assert sum(cell.memory_mb for cell in guest.cells) == 4096
    pinned = {cpu for cell in guest.cells for cpu in cell.pinned}
    assert set(guest.realtime) <= pinned and (pinned or not guest.thread_policy)
    amounts = found.request.groups[0].resources
    if "resources:VCPU" not in specs:
        assert amounts.get("PCPU", 0) == len(pinned) + (guest.emulator == "isolate")
        assert amounts.get("VCPU", 0) == 4 - len(pinned) == resources.vcpus


def test_needs_are_met_by_the_one_rule():
    request = requirements_of({**DEDICATED, "resources1:VGPU": "1", "trait1:CUSTOM_A": "required"}).request
    amounts = {"PCPU": Amount(capacity=4, max_unit=4), "MEMORY_MB": Amount(capacity=9999, max_unit=9999),
               "DISK_GB": Amount(capacity=99, max_unit=99)}
    root = ProviderState(id=1, uuid="r", amounts=amounts)
    child = ProviderState(id=2, uuid="c", parent_id=1, amounts={"VGPU": Amount(capacity=1, max_unit=1)},
                          traits=("CUSTOM_A",))
    assert candidates.first([root, child], request) is not None
    assert candidates.first([root], request) is None


def test_errors_tell_what_says_so_without_end():
    with pytest.raises(errors.server.ImpossibleRequirement) as caught:
        needs_of(flavor({"hw:numa_nodes": "x" * 10000}), {})
    assert len(caught.value.message) < 500


# -- [pci]alias

@pytest.mark.parametrize(("text", "request_"), [
    ('{"name": "a", "vendor_id": "8086", "product_id": "154C"}',
     PciRequest(count=1, alias="a", specs=(PciSpec(vendor_id="8086", product_id="154c"),))),
    ('{"name": "a", "device_type": "type-PF", "numa_policy": "required", "capability_type": "pci"}',
     PciRequest(count=1, alias="a", specs=(PciSpec(kind="type-PF"),), numa_policy="required")),
    ('{"name": "a", "resource_class": "gpu", "traits": "big,HW_NIC_SRIOV", "live_migratable": "yes"}',
     PciRequest(count=1, alias="a", specs=(PciSpec(resource_class="CUSTOM_GPU", live_migratable=True,
                                                   traits=("CUSTOM_BIG", "HW_NIC_SRIOV")),)))])
def test_alias_is_read(text, request_):
    assert pci_aliases.parse([text]) == {"a": request_}


def test_aliases_of_one_name_are_alternatives():
    found = pci_aliases.parse(['{"name": "a", "vendor_id": "8086"}', '{"name": "b"}',
                               '{"name": "a", "vendor_id": "10de"}'])
    assert [spec.vendor_id for spec in found["a"].specs] == ["8086", "10de"] and found["b"].specs == (PciSpec(),)


@pytest.mark.parametrize(("texts", "words"), [
    (["{"], "is not valid JSON"), (["[]"], "JSON object"), (['{"name": 1}'], "JSON object"),
    (["{}"], "requires a name"),
    (['{"name": "a:b"}'], "requires a name"), (['{"name": "a", "vendor": "8086"}'], "every key must be one of name"),
    (['{"name": "a", "vendor_id": "80861"}'], "vendor_id must be four hexadecimal digits"),
    (['{"name": "a", "device_type": "PF"}'], "device_type must be one of type-PCI"),
    (['{"name": "a", "numa_policy": "near"}'], "numa_policy must be one of required"),
    (['{"name": "a", "live_migratable": "maybe"}'], "live_migratable must be yes or no"),
    (['{"name": "a"}', '{"name": "a", "numa_policy": "required"}'], "differ in numa_policy"),
    (['{"name": "a"}', '{"name": "a", "device_type": "type-PF"}'], "differ in numa_policy or device_type")])
def test_alias_when_it_is_wrong_then_the_error_names_the_option(texts, words):
    with pytest.raises(errors.host.PciBadAlias, match=r"^\[pci\]alias ") as caught:
        pci_aliases.parse(texts)
    assert words in caught.value.message


@pytest.mark.parametrize(("specs", "image"), [
    (DEDICATED, {}), ({**MIXED, "hw:cpu_dedicated_mask": "^0"}, {}), ({**REAL, "hw:cpu_realtime_mask": "^0"}, {}),
    ({"hw:numa_nodes": "2147483647"}, {}), ({"hw:numa_nodes": "1"}, {}), ({"hw:mem_page_size": "large"}, {}),
    ({}, {"hw_cpu_policy": "dedicated"}), ({}, {"hw_numa_nodes": "1"})])
def test_needs_when_a_giant_flavors_processors_would_be_told_apart_then_it_is_refused_at_once(specs, image):
    started = timeit.default_timer()
    refusal = refused(specs, image, vcpus=2147483647, memory_mb=2147483647)
    assert isinstance(refusal, errors.server.ImpossibleRequirement) and "per-CPU settings" in refusal.message
    assert timeit.default_timer() - started < 1


def test_needs_when_there_are_more_groups_than_can_be_looked_for_then_it_is_refused():
    refusal = refused({f"resources_{number}:CUSTOM_A": "1" for number in range(1200)})
    assert isinstance(refusal, errors.server.ImpossibleRequirement) and "more than 200" in refusal.message


def test_needs_when_aliases_ask_for_more_devices_than_a_server_has_places_then_it_is_refused():
    assert isinstance(refused({"pci_passthrough:alias": "gpu:200,gpu:57"}), errors.host.PciTooManyDevices)
    found = requirements_of({"pci_passthrough:alias": "gpu:200,gpu:56"})
    assert sum(one.count for one in found.topology.devices) == 256
