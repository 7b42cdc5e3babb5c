"""What image and flavor ask for together, without asking a host."""

from __future__ import annotations

import pytest

from nova import errors
from nova.model.flavor.extra_specs import SPECS
from nova.model.image.image_properties import problem
from nova.model.scheduling import image_flavor_conflicts
from nova.virt.libvirt import properties

CONTRADICTIONS = [
    ({"hw_tpm_version": "1.2"}, {"hw:tpm_version": "2.0"}, "hw_tpm_version", "the flavor has hw:tpm_version=2.0"),
    ({"hw_viommu_model": "virtio"}, {"hw:viommu_model": "intel"}, "hw_viommu_model", "the flavor has"),
    ({"hw_virtio_packed_ring": "yes"}, {"hw:virtio_packed_ring": "false"}, "hw_virtio_packed_ring", "the flavor has"),
    ({"hw_pmu": "off"}, {"hw:pmu": "1"}, "hw_pmu", "the flavor has hw:pmu=1"),
    ({"hw_maxphysaddr_mode": "emulate"}, {"hw:maxphysaddr_mode": "passthrough"}, "hw_maxphysaddr_mode",
     "the flavor has hw:maxphysaddr_mode=passthrough"),
    ({"os_secure_boot": "required"}, {"os:secure_boot": "disabled"}, "os_secure_boot", "the flavor has"),
    ({"os_secure_boot": "disabled"}, {"os:secure_boot": "required"}, "os_secure_boot", "the flavor has"),
    ({"hw_serial_port_count": "3"}, {"hw:serial_port_count": "2"}, "hw_serial_port_count", "the flavor allows 2"),
    ({"hw_cpu_threads": "4"}, {"hw:cpu_max_threads": "2"}, "hw_cpu_threads", "the flavor allows 2"),
    ({"hw_cpu_max_cores": "4"}, {"hw:cpu_max_cores": "2"}, "hw_cpu_max_cores", "the flavor allows 2"),
    ({"hw_video_ram": "64"}, {"hw_video:ram_max_mb": "32"}, "hw_video_ram", "the flavor allows 32"),
    ({"hw_video_ram": "64"}, {}, "hw_video_ram", "the flavor allows 0"),
    ({"hw_tpm_model": "tpm-crb"}, {}, "hw_tpm_model", "hw:tpm_version is required"),
    ({}, {"hw:tpm_model": "tpm-crb", "hw:tpm_version": "1.2"}, "hw:tpm_model", "requires the model tpm-tis"),
    ({"hw_tpm_model": "tpm-crb"}, {"hw:tpm_version": "1.2"}, "hw_tpm_model", "requires the model tpm-tis"),
]


@pytest.mark.parametrize(("image", "specs", "name", "reason"), CONTRADICTIONS)
def test_conflict_when_image_and_flavor_contradict_each_other_then_it_names_the_property(image, specs, name, reason):
    found = image_flavor_conflicts.conflict(image, specs)
    assert found is not None and found.name == name and reason in found.reason
    with pytest.raises(errors.image.WrongProperty, match=f"{name}={found.value} is not possible"):
        properties.requested_properties(image, specs)


@pytest.mark.parametrize(("image", "specs"), [
    ({}, {}), ({"hw_pmu": "yes"}, {"hw:pmu": "True"}), ({"hw_pmu": "yes"}, {}), ({}, {"hw:pmu": "no"}),
    ({"hw_serial_port_count": "2"}, {"hw:serial_port_count": "2"}), ({"hw_serial_port_count": "4"}, {}),
    ({"hw_tpm_version": "2.0", "hw_tpm_model": "tpm-crb"}, {"hw:tpm_version": "2.0"}),
    ({"os_secure_boot": "optional"}, {"os:secure_boot": "required"}),
    ({"hw_maxphysaddr_mode": "emulate", "hw_maxphysaddr_bits": "40"}, {"hw:maxphysaddr_bits": "46"}),
    ({"hw_video_ram": "32"}, {"hw_video:ram_max_mb": "32"}), ({"any": "thing"}, {"more": "things"})])
def test_conflict_when_they_agree_then_there_is_none(image, specs):
    assert image_flavor_conflicts.conflict(image, specs) is None


def test_tables_name_properties_and_extra_specs_that_there_are():
    tables = (image_flavor_conflicts.ALIKE, image_flavor_conflicts.LIMITS)
    pairs = [(name, spec) for table in tables for name, (spec, _) in table.items()]
    assert {spec for _, spec in pairs} <= set(SPECS)
    assert all(problem({name: "nothing of this kind"}) for name, _ in pairs)
