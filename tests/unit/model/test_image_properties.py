"""Image properties: what is refused when a server is made."""

from __future__ import annotations

import pytest

from nova.model.image import image_properties


@pytest.mark.parametrize(("name", "value"), [
    ("hw_disk_bus", "floppy"), ("hw_boot_menu", "maybe"), ("hw_boot_menu", ""), ("hw_cpu_cores", "many"),
    ("hw_cpu_cores", "1.5"), ("hw_cpu_cores", "9" * 30), ("architecture", "z80"), ("vm_mode", "pvh"),
    ("hw_ephemeral_encryption_secret_uuid", "x"), ("img_block_device_mapping", "{}"), ("img_mappings", "[1]"),
    ("block_device_mapping", "no"), ("hw_numa_cpus.0", "x"), ("hw_numa_mem.1", "1GB"),
    ("hypervisor_version_requires", ">=x"), ("img_config_drive", "yes"), ("hw_tpm_version", "3"),
    ("hw_video_ram", "\N{SUPERSCRIPT TWO}"), ("hw_disk_bus", "VIRTIO")])
def test_property_when_its_value_is_wrong_then_it_is_named(name: str, value: str) -> None:
    wrong = image_properties.problem({"os_distro": "debian", name: value})
    assert wrong is not None and f"image property {name} has" in wrong


@pytest.mark.parametrize(("name", "value"), [
    ("hw_disk_bus", "virtio"), ("hw_boot_menu", "Yes"), ("hw_boot_menu", "0"), ("hw_cpu_cores", " 4 "),
    ("architecture", "AMD64"), ("hw_architecture", "x86_64"), ("hw_vif_model", "VirtualE1000"), ("vm_mode", "HVM"),
    ("hw_scsi_model", "paraVirtual"), ("os_type", "Linux"), ("img_mappings", '[{"virtual": "root"}]'),
    ("hw_numa_cpus.0", "0-3, ^2,7"), ("hw_numa_mem.1", "512"), ("hypervisor_version_requires", ">=2.6,<10"),
    ("img_signature_certificate_uuid", "5f3f2d54-9c4d-4c2d-8b9a-0a1b2c3d4e5f"), ("hw_machine_type", "anything"),
    ("hw_numa_cpus.x", "y"), ("my_own", "\n"), ("trait:HW_CPU_X86_AVX", "required")])
def test_property_when_its_value_fits_or_nobody_knows_it_then_it_is_taken(name: str, value: str) -> None:
    assert image_properties.problem({name: value}) is None


def test_long_value_is_cut_in_the_message() -> None:
    assert len(image_properties.problem({"hw_disk_bus": "x" * 10_000}) or "") < 400
