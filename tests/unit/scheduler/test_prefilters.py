"""What is looked at before all filters: rules that options switch on, and rules that a request brings with it."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from nova.model.placement.traits import TRAITS
from nova.scheduler import prefilters
from nova.scheduler.pipeline import Pipeline
from tests.fakes.scheduling import filter_options, host_state, placement_request, snapshot_of


def refusal(request: dict[str, Any], host: dict[str, Any] | None = None, **switches: Any) -> str | None:
    """What keeps the request from a host; None: nothing."""
    pipeline = Pipeline(filter_options(scheduler=switches))
    found = pipeline.decide(snapshot_of(host_state("cn1", **host or {})), placement_request(**request))[0]
    return None if found.hosts else found.details


def metadata(**values: str) -> dict[str, Any]:
    return {"aggregate_metadata": {key.replace("__", ":"): (value,) for key, value in values.items()}}


@pytest.mark.parametrize(("request_", "trait"), [
    ({"extra_specs": {"accel:device_profile": "gpu"}}, "COMPUTE_ACCELERATORS"),
    ({"extra_specs": {"hw:virtio_packed_ring": "True"}}, "COMPUTE_NET_VIRTIO_PACKED"),
    ({"image_properties": {"hw_virtio_packed_ring": "yes"}}, "COMPUTE_NET_VIRTIO_PACKED"),
    ({"extra_specs": {"hw:ephemeral_encryption": "true"}}, "COMPUTE_EPHEMERAL_ENCRYPTION"),
    ({"image_properties": {"hw_sound_model": "virtio"}}, "COMPUTE_SOUND_MODEL_VIRTIO"),
    ({"extra_specs": {"hw:tpm_version": "2.0", "hw:tpm_secret_security": "user"}},
     "COMPUTE_SECURITY_TPM_SECRET_SECURITY_USER"),
])
def test_what_a_request_implies_is_asked_of_the_host_whatever_the_options(request_, trait):
    said = refusal(request_)
    assert said is not None and trait in said
    assert refusal(request_, {"traits": (trait,)}) is None
    assert refusal(request_, {"own_traits": (trait,)}) is None  # given by Placement's API
    assert refusal({**request_, "force": True}) is None


@pytest.mark.parametrize("request_", [
    {}, {"extra_specs": {"accel:device_profile": ""}}, {"extra_specs": {"hw:virtio_packed_ring": "false"}},
    {"extra_specs": {"hw:virtio_packed_ring": "no"}, "image_properties": {"hw_virtio_packed_ring": "no"}},
    {"extra_specs": {"hw:sound_model": "ich9"}}, {"extra_specs": {"hw:tpm_secret_security": "user"}},
    {"extra_specs": {"hw:tpm_version": "2.0", "hw:tpm_secret_security": "nobody's"}},
    {"image_disk_format": "qcow2", "image_properties": {"hw_disk_bus": "scsi"}},
])
def test_request_that_implies_nothing_is_asked_nothing(request_):
    assert refusal(request_) is None
    asked = placement_request(**request_)
    assert not any(one.wanted(asked) for one in prefilters.load(filter_options()))


def test_ephemeral_encryption_asks_for_its_format_too():
    asked = {"extra_specs": {"hw:ephemeral_encryption": "1", "hw:ephemeral_encryption_format": "luks"}}
    said = refusal(asked, {"traits": ("COMPUTE_EPHEMERAL_ENCRYPTION",)})
    assert said is not None and "no COMPUTE_EPHEMERAL_ENCRYPTION_LUKS" in said


FORTY_SIX = {"capabilities": {"cpu_info": '{"maxphysaddr": {"mode": "emulate", "bits": 46}}'}}
EMULATE = {"hw:maxphysaddr_mode": "emulate"}


@pytest.mark.parametrize(("specs", "image", "host", "refused"), [
    ({"hw:maxphysaddr_bits": "46"}, {}, FORTY_SIX, False), ({"hw:maxphysaddr_bits": "47"}, {}, FORTY_SIX, True),
    ({}, {"hw_maxphysaddr_bits": "47"}, FORTY_SIX, True), ({}, {"hw_maxphysaddr_bits": "32"}, FORTY_SIX, False),
    ({"hw:maxphysaddr_bits": "40"}, {"hw_maxphysaddr_bits": "52"}, FORTY_SIX, False),
    ({"hw:maxphysaddr_bits": "40"}, {}, {}, True), (EMULATE, {}, {}, False),
    ({"hw:maxphysaddr_bits": "x"}, {}, {}, False),
    ({"hw:maxphysaddr_bits": "40"}, {}, {"capabilities": {"cpu_info": "?"}}, True),
])
def test_address_bits_when_they_are_asked_for_then_the_host_has_at_least_as_many(specs, image, host, refused):
    request = {"extra_specs": specs, "image_properties": image}
    said = refusal(request, host)
    assert (said is not None) is refused and (said is None or "bits of physical addresses" in said)
    assert refusal({**request, "force": True}, host) is None
    assert (refusal({**request, "rebuild": True}, host) is not None) is refused


@pytest.mark.parametrize(("disk_format", "traits", "refused"), [
    ("qcow2", ("COMPUTE_IMAGE_TYPE_QCOW2",), False), ("vmdk", ("COMPUTE_IMAGE_TYPE_QCOW2",), True),
    ("", (), False), ("novel", (), False)])
def test_image_type_when_it_is_switched_on_then_the_host_must_have_its_trait(disk_format, traits, refused):
    said = refusal({"image_disk_format": disk_format}, {"traits": traits}, query_placement_for_image_type_support=True)
    assert (said is not None) is refused


@pytest.mark.parametrize(("properties", "wanted"), [
    ({"hw_disk_bus": "scsi", "hw_vif_model": "e1000"}, {"COMPUTE_STORAGE_BUS_SCSI", "COMPUTE_NET_VIF_MODEL_E1000"}),
    ({"hw_vif_model": "spapr-vlan"}, {"COMPUTE_NET_VIF_MODEL_SPAPR_VLAN"}),
    ({"architecture": "x86_64"}, {"HW_ARCH_X86_64"}),  # by its old name
    ({"hw_architecture": "armv7l"}, {"HW_ARCH_ARMV7"}),
    ({"hw_architecture": "x86_64", "hw_emulation_architecture": "aarch64"}, {"COMPUTE_ARCH_AARCH64"}),
    ({"hw_video_model": "none", "hw_firmware_type": "uefi"}, {"COMPUTE_GRAPHICS_MODEL_NONE", "COMPUTE_FIRMWARE_UEFI"}),
    ({"hw_disk_bus": "", "os_distro": "debian", "hw_vif_model": "no such"}, set()),
])
def test_image_metadata_are_turned_into_traits(properties, wanted):
    asked = placement_request(image_properties=properties)
    assert prefilters.transform_image_metadata(asked) == wanted
    said = refusal({"image_properties": properties, "force": False}, {"traits": tuple(sorted(wanted)[1:]),
                "supported": ()}, image_metadata_prefilter=True)
    assert not wanted or said is not None


def test_families_begin_standard_traits():
    for family in prefilters.FAMILIES.values():
        assert any(trait.startswith(f"{family}_") for trait in TRAITS)


@pytest.mark.parametrize(("host", "request_", "refused"), [
    ({}, {}, False),
    (metadata(trait__CUSTOM_A="required"), {}, True),
    (metadata(trait__CUSTOM_A="forbidden", ssd="true"), {}, False),
    (metadata(trait__CUSTOM_A="required"), {"extra_specs": {"trait:CUSTOM_A": "required"}}, False),
    (metadata(trait__CUSTOM_A="required"), {"extra_specs": {"trait1:CUSTOM_A": "required"}}, False),
    (metadata(trait__CUSTOM_A="required"), {"extra_specs": {"trait:CUSTOM_A": "forbidden"}}, True),
    (metadata(trait__CUSTOM_A="required"), {"image_properties": {"trait:CUSTOM_A": "required"}}, False),
    (metadata(trait__CUSTOM_A="required", trait__CUSTOM_B="required"),
     {"extra_specs": {"trait:CUSTOM_A": "required"}}, True),
])
def test_isolated_aggregates_when_it_is_switched_on_then_they_take_only_who_asks_for_their_traits(
        host, request_, refused):
    assert (refusal(request_, host, enable_isolated_aggregate_filtering=True) is not None) is refused
    assert refusal(request_, host) is None


@pytest.mark.parametrize(("host", "has_some", "required", "refused"), [
    (metadata(filter_tenant_id="demo"), True, False, False),
    (metadata(filter_tenant_id_2="x, demo"), True, True, False),
    (metadata(filter_tenant_id="other"), True, False, True),
    ({}, True, False, True), ({}, False, False, False), ({}, False, True, True),
])
def test_tenants_aggregates(host, has_some, required, refused):
    said = refusal({"project_id": "demo", "tenant_aggregates": has_some}, host,
                   limit_tenants_to_placement_aggregate=True,
                   placement_aggregate_required_for_tenants=required)
    assert (said is not None) is refused
    assert refusal({"project_id": "demo"}, host, placement_aggregate_required_for_tenants=required) is None


def test_host_with_the_trait_that_disables_it_takes_nothing_but_what_is_forced():
    host = {"own_traits": ("COMPUTE_STATUS_DISABLED",)}
    said = refusal({}, host)
    assert said is not None and "disabled" in said
    assert refusal({"force": True}, host) is None


def test_rebuild_when_the_image_cannot_run_here_then_it_is_refused_and_other_rules_are_not_asked():
    switched = {"query_placement_for_image_type_support": True}
    asked = {"rebuild": True, "host": "cn1", "image_disk_format": "vmdk", "vcpus": 0, "memory_mb": 0, "disk_gb": 0}
    assert refusal(asked, {}, **switched) is not None
    assert refusal({**asked, "image_disk_format": "",
                    "extra_specs": {"accel:device_profile": "x", "no": "such"}}) is None
    said = refusal({**asked, "image_disk_format": "", "image_properties": {"hw_vm_mode": "xen"}})
    assert said is not None and "cannot run xen guests" in said


def test_switch_without_anything_behind_it_says_so(caplog):
    with caplog.at_level(logging.WARNING):
        prefilters.load(filter_options(scheduler={"query_placement_for_routed_network_aggregates": True}))
    assert "query_placement_for_routed_network_aggregates has no effect" in caplog.text


def test_every_rule_does_something_or_says_who_does():
    for rule in prefilters.RULES:
        assert sum(map(bool, (rule.implies, rule.filter, rule.met))) == 1, rule.name
