"""Extra specs: which keys and values are mistakes, and how they are told."""

from __future__ import annotations

import re
import time

import pytest

from nova.model.flavor import extra_specs
from nova.model.placement import traits


@pytest.mark.parametrize(("key", "value"), [
    ("hw:cpu_policy", "dedicated"), ("hw:numa_nodes", "2"), ("hw:numa_cpus.0", "0-3,^2,7"), ("hw:boot_menu", "Yes"),
    ("hw:mem_page_size", "2048"), ("hw:mem_page_size", "1GB"), ("quota:cpu_quota", "-1"), ("hw:tpm_version", "2.0"),
    ("pci_passthrough:alias", "nic:1, gpu:2"), ("aggregate_instance_extra_specs:ssd", "anything"),
    ("resources:VCPU", "0"), ("resources1:CUSTOM_GOLD", "3"), ("trait:HW_CPU_X86_AVX2", "required"),
    ("trait_net:CUSTOM_PHYSNET_1", "forbidden"), ("capabilities:vcpus", ">= 4"),
    ("capabilities:cpu_info:features", "<in> avx"), ("hide_hypervisor_id", "true"), ("group_policy", "none"),
    ("mine:anything", "at all"), ("no-namespace", ""), ("hw:pmem", "6GB,2GB"), ("hw:redirected_usb_ports", "15"),
    ("hw:maxphysaddr_mode", "passthrough"), ("hw:maxphysaddr_mode", "emulate"), ("hw:maxphysaddr_bits", "32"),
    ("hw:maxphysaddr_bits", "64"),
])
def test_problem_when_key_and_value_are_right_is_none(key: str, value: str) -> None:
    assert extra_specs.problem(key, value) is None


@pytest.mark.parametrize(("key", "value", "words"), [
    ("hw:cpu_policy", "sharred", "must be one of dedicated, shared, mixed"),
    ("hw:cpu_polcy", "shared", "did you mean hw:cpu_policy?"),
    ("hw:numa_nodes", "0", "at least 1"), ("hw:numa_nodes", "two", "an integer"),
    ("hw:numa_nodes", "1" * 19, "integer"), ("hw:numa_nodes", "1\n", "an integer"),
    ("hw:redirected_usb_ports", "16", "at most 15"), ("hw:boot_menu", "maybe", "a boolean"),
    ("hw:numa_cpus.0", "a", "the form"), ("hw:numa_cpus.x", "1", "unknown extra spec"),
    ("hw:", "1", "unknown extra spec"),
    ("hw:numa_nodes\n", "1", "unknown extra spec"), ("hw:cpu_dedicated_mask", "1\n", "form"),
    ("resources:VCPUS", "1", "did you mean resources:VCPU?"), ("resources:VCPU", "a lot", "an integer"),
    ("resources:CUSTOM_lower", "1", "unknown extra spec"), ("trait:HW_CPU_X86_AVX3", "required", "unknown extra spec"),
    ("trait:HW_CPU_X86_AVX2", "wanted", "required, forbidden"), ("capabilities:vcpu", "4", "capabilities:vcpus?"),
    ("hide_hypervisor_id", "maybe", "a boolean"), ("os:secure_boot", "optional", "disabled, required"),
    ("hw:maxphysaddr_mode", "host", "must be one of passthrough, emulate"),
    ("hw:maxphysaddr_bits", "31", "at least 32"), ("hw:maxphysaddr_bits", "65", "at most 64"),
    ("hw:maxphysaddr_bits", "many", "an integer"),
    ("accel:device_profil", "x", "did you mean accel:device_profile?"),
])
def test_problem_when_key_or_value_is_wrong_says_what_would_be_right(key: str, value: str, words: str) -> None:
    assert words in str(extra_specs.problem(key, value))


@pytest.mark.parametrize("key", ["hw:sound_mode_of_guest", "hw:cpu_pinning"])
def test_problem_when_no_name_is_near_then_none_is_proposed(key: str) -> None:
    assert extra_specs.problem(key, "x") == f"unknown extra spec {key}"


def test_placeholder_in_a_name_is_no_key() -> None:
    assert "unknown extra spec" in str(extra_specs.problem("hw:numa_cpus.{num}", "1"))


@pytest.mark.parametrize(("key", "value"), [("hw:cpu_dedicated_mask", "1" + ",1-1" * 62 + "x"),
                                            ("hw:pmem", "a" * 254 + "!"), ("hw:cpu_realtime_mask", "1-" * 127),
                                            ("pci_passthrough:alias", "a:1," * 62 + " " * 7)])
def test_problem_of_a_long_malformed_value_takes_no_time(key: str, value: str) -> None:
    begin = time.perf_counter()
    assert extra_specs.problem(key, value) is not None
    assert time.perf_counter() - begin < 0.1


#: The contract's patterns, which are ours up to the time they may take.
MASK, LABELS = r"\^?\d+((-\d+)?(,\^?\d+(-\d+)?)?)*", r"([a-zA-Z0-9_]+(,)?)+"


@pytest.mark.parametrize(("key", "pattern", "values"), [
    ("hw:cpu_dedicated_mask", MASK,
     ("1", "^1", "1-2", "1-2-3", "1,2", "1,^2-3", "1,,2", "1,", ",1", "-1", "^", "", "1 2")),
    ("hw:pmem", LABELS, ("a", "a,b", "a,", "a,,b", ",a", "", "a b", "a_1,B"))])
def test_rewritten_pattern_means_the_same(key: str, pattern: str, values: tuple[str, ...]) -> None:
    for value in values:
        assert (extra_specs.problem(key, value) is None) == bool(re.fullmatch(pattern, value)), value


def test_traits_are_whole_names() -> None:
    assert "HW_CPU_X86_AVX512VNNI" in traits.TRAITS
    assert traits.is_trait("CUSTOM_A") and not traits.is_trait("CUSTOM_") and not traits.is_trait("CUSTOM_a")
    assert traits.is_resource_class("PCPU") and not traits.is_resource_class("PCPUS")


def test_standard_names_are_the_libraries_and_none_is_custom() -> None:
    assert {"COMPUTE_NODE", "MISC_SHARES_VIA_AGGREGATE", "HW_PCI_ONE_TIME_USE"} <= traits.TRAITS
    assert {"VCPU", "MEMORY_MB", "DISK_GB", "PCPU", "VGPU"} <= traits.RESOURCE_CLASSES
    assert not any(name.startswith("CUSTOM_") for name in (*traits.TRAITS, *traits.RESOURCE_CLASSES))
