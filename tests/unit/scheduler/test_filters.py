"""Each filter by table: what it refuses, and in which words."""

from __future__ import annotations

import pytest

from nova.scheduler import operators
from nova.scheduler.filters import Filter, all_filters
from nova.scheduler.filters.all_hosts import AllHostsFilter
from nova.scheduler.filters.always import (
    AvailabilityZoneFilter,
    CapacityFilter,
    ComputeFilter,
    CoreFilter,
    DiskFilter,
    RamFilter,
)
from nova.scheduler.filters.compute_capabilities import ComputeCapabilitiesFilter
from nova.scheduler.filters.image_properties import ImagePropertiesFilter
from tests.fakes.scheduling import filter_options, host_view, placement_request


def refusal(filter_: Filter, host: dict, request: dict) -> str | None:
    asked = placement_request(**request)
    return filter_.refuses(host_view(**host), asked) if filter_.wanted(asked) else None


@pytest.mark.parametrize(("host", "request_", "expected"), [
    ({}, {}, None),
    ({"enabled": False, "disabled_reason": "repair"}, {}, "disabled"),
    ({"up": False}, {}, "down"),
    ({"up": False, "enabled": False}, {}, "down"),
    ({"forced_down": True}, {}, "forced down"),
    ({"enabled": False}, {"force": True}, None),
    ({"up": False}, {"force": True}, "down"),
])
def test_compute_filter(host, request_, expected):
    assert refusal(ComputeFilter(), host, request_) == expected


@pytest.mark.parametrize(("host", "request_", "expected"), [
    ({"zone": "a"}, {}, None),
    ({"zone": "a"}, {"availability_zone": "a"}, None),
    ({"zone": "a"}, {"availability_zone": "b"}, "not in zone b"),
    ({"zone": "a"}, {"availability_zone": "b", "force": True}, None),
])
def test_availability_zone_filter(host, request_, expected):
    assert refusal(AvailabilityZoneFilter(), host, request_) == expected


@pytest.mark.parametrize(("host", "request_", "expected"), [
    ({}, {"vcpus": 16, "memory_mb": 16384, "disk_gb": 100}, None),
    ({}, {"vcpus": 17}, "not enough vcpus"),
    ({"memory_mb_used": 1}, {"memory_mb": 16384}, "not enough memory"),
    ({"disk_gb_used": 100}, {"disk_gb": 1}, "not enough disk"),
    ({"disk_gb_used": 150}, {"disk_gb": 0}, None),  # boots from a volume: an overcommitted disk doesn't matter
    ({}, {"vcpus": 99, "memory_mb": 99999}, "not enough vcpus, memory"),
    ({"vcpus_used": 16}, {"force": True}, "not enough vcpus"),
])
def test_capacity_filter(host, request_, expected):
    assert refusal(CapacityFilter(), host, request_) == expected


@pytest.mark.parametrize(("filter_", "request_", "expected"), [
    (RamFilter(), {"memory_mb": 99999, "vcpus": 99}, "not enough memory"),
    (CoreFilter(), {"memory_mb": 99999, "vcpus": 99}, "not enough vcpus"),
    (DiskFilter(), {"memory_mb": 99999}, None),
])
def test_old_capacity_names_look_at_their_own_amount(filter_, request_, expected):
    assert refusal(filter_, {}, request_) == expected


def test_all_hosts_filter_refuses_nothing():
    assert refusal(AllHostsFilter(), {"up": False}, {"vcpus": 999}) is None


CAPABILITIES = {"cpu_info": '{"vendor": "AMD", "topology": {"cores": 8}}', "gpu": "true", "flags": "aes sse avx"}


@pytest.mark.parametrize(("specs", "expected"), [
    ({}, None),
    ({"hw:cpu_policy": "dedicated", "trait:CUSTOM_X": "required"}, None),  # other filters' business
    ({"capabilities:gpu": "true"}, None),
    ({"gpu": "true"}, None),
    ({"gpu": "false"}, "gpu is not false"),
    ({"capabilities:tpu": "true"}, "no capability tpu"),
    ({"capabilities:hypervisor_type": "s== QEMU"}, None),
    ({"capabilities:hypervisor_type": "xen"}, "hypervisor_type is not xen"),
    ({"capabilities:hypervisor_version": ">= 7000000"}, None),
    ({"capabilities:hypervisor_version": "<= 7000000"}, "hypervisor_version is not <= 7000000"),
    ({"capabilities:free_ram_mb": ">= 16384"}, None),
    ({"capabilities:free_ram_mb": ">= 16385"}, "free_ram_mb is not >= 16385"),
    ({"capabilities:cpu_info:vendor": "<or> Intel <or> AMD"}, None),
    ({"capabilities:cpu_info:topology:cores": ">= 16"}, "cpu_info:topology:cores is not >= 16"),
    ({"capabilities:cpu_info:model": "x"}, "no capability cpu_info:model"),
    ({"capabilities:gpu:model": "x"}, "no capability gpu:model"),
    ({"capabilities:flags": "<all-in> aes avx"}, None),
    ({"capabilities:flags": "<all-in> aes vmx"}, "flags is not <all-in> aes vmx"),
    ({"capabilities:host": "cn1", "gpu": "maybe"}, "gpu is not maybe"),
    ({"note": "of an operator", "hw:cpu_policy": "dedicated"}, None),
])
def test_compute_capabilities_filter(specs, expected):
    assert refusal(ComputeCapabilitiesFilter(), {"capabilities": CAPABILITIES}, {"extra_specs": specs}) == expected


@pytest.mark.parametrize(("specs", "expected"), [
    ({"capabilities:gpu": "true"}, True),
    ({"capabilities:cpu_info:vendor": "AMD"}, True),
    ({"capabilities:gpu": "true", "capabilities:free_ram_mb": ">= 1"}, False),
    ({"vcpus_used": "<= 1"}, False),
])
def test_compute_capabilities_filter_by_facts_only_when_the_fact_is_not_the_hosts_own(specs, expected):
    assert ComputeCapabilitiesFilter().by_facts(placement_request(extra_specs=specs)) is expected


@pytest.mark.parametrize(("value", "wanted", "expected"), [
    ("12", "= 10", True), ("9", "= 10", False),
    ("10", "== 10.0", True), ("10", "!= 10", False), ("11", ">= 10", True), ("11", "<= 10", False),
    ("a", "== 10", False), ("10", ">= many", False), ("10", ">=", False),
    ("abc", "s== abc", True), ("abc", "s!= abc", False), ("abc", "s< abd", True), ("abc", "s<= abc", True),
    ("abc", "s> abb", True), ("abc", "s>= abd", False),
    ("an avx host", "<in> avx", True), ("host", "<in> avx", False), ("host", "<in>", False),
    (["aes", "avx"], "<all-in> aes avx", True), (["aes", "avx"], "<all-in> av", False), ("x", "<all-in>", False),
    ("b", "<or> a <or> b", True), ("c", "<or> a <or> b", False), ("two words", "<or> a <or> two words", True),
    ("text", "text", True), ("text", "other", False), (8, "8", True), ("", "", True), ("= 1 2", "= 1 2", True),
])
def test_operators_meet(value, wanted, expected):
    assert operators.meets(value, wanted) is expected


@pytest.mark.parametrize(("properties", "expected"), [
    ({}, None),
    ({"os_distro": "debian"}, None),
    ({"hw_architecture": "x86_64"}, None),
    ({"architecture": "amd64"}, None),
    ({"hw_architecture": "i386", "hw_vm_mode": "hvm", "img_hv_type": "qemu"}, None),
    ({"hw_architecture": "aarch64"}, "cannot run aarch64 guests"),
    ({"img_hv_type": "QEMU"}, None),
    ({"hypervisor_type": "xen"}, "cannot run xen guests"),
    ({"vm_mode": "exe"}, "cannot run exe guests"),
    ({"hw_architecture": "x86_64", "vm_mode": "xen"}, "cannot run x86_64 xen guests"),
    ({"img_hv_requested_version": ">=6.0, <8"}, None),
    ({"img_hv_requested_version": "7.2"}, None),
    ({"hypervisor_version_requires": "!=7.2.0"}, "hypervisor version is not !=7.2.0"),
    ({"img_hv_requested_version": ">7.2.0"}, "hypervisor version is not >7.2.0"),
    ({"img_hv_requested_version": "9" * 5000}, f"the image's version condition '{'9' * 100}' is invalid"),
    ({"img_hv_requested_version": "new"}, "the image's version condition 'new' is invalid"),
])
def test_image_properties_filter(properties, expected):
    assert refusal(ImagePropertiesFilter(filter_options()), {}, {"image_properties": properties}) == expected


@pytest.mark.parametrize(("properties", "expected"), [
    ({}, "cannot run aarch64 guests"), ({"hw_architecture": "x86_64"}, None)])
def test_image_properties_filter_when_a_default_architecture_is_set_then_it_is_for_images_without(properties, expected):
    options = filter_options(image_properties_default_architecture="aarch64")
    assert refusal(ImagePropertiesFilter(options), {}, {"image_properties": properties}) == expected


def test_image_properties_filter_when_the_host_reports_nothing_then_it_refuses_what_asks_for_something():
    assert refusal(ImagePropertiesFilter(), {"supported": ()}, {"image_properties": {"hw_vm_mode": "hvm"}})
    assert refusal(ImagePropertiesFilter(), {"supported": ()}, {}) is None


def test_all_filters_know_every_name_that_is_enabled_by_default_and_the_old_ones():
    names = {cls.__name__ for cls in all_filters()}
    assert names >= {*filter_options().enabled_filters, "AllHostsFilter", "AvailabilityZoneFilter", "RamFilter",
                     "CoreFilter", "DiskFilter"}


def test_capacity_when_the_server_is_bigger_than_the_host_itself_then_overcommit_does_not_help():
    host = {"vcpus_capacity": 64, "vcpus_total": 16}
    assert refusal(CapacityFilter(), host, {"vcpus": 17}) == "not enough vcpus"
    assert refusal(CapacityFilter(), host, {"vcpus": 16}) is None
