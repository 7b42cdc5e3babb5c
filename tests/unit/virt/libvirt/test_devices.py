"""Devices and firmware: what images and flavors ask for, in libvirt's words; and what is refused, and how."""

from __future__ import annotations

import os
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import msgspec
import pytest

from nova import errors
from nova.model.image.images import Image
from nova.model.placement.traits import TRAITS
from nova.virt.libvirt.guest.definition import guest_spec
from nova.virt.libvirt.host import host_traits
from nova.virt.libvirt.host.machines import has_stateless
from nova.virt.libvirt.host.processors import FEATURES, address_modes, guest_features, traits_of
from nova.virt.libvirt.xml.domain import domain_xml
from tests.unit.virt.libvirt.orders import DISKS, FOLDER, UUID, abilities, able, flavor, image, order, settings

GOLDEN = Path(__file__).parent / "golden"
UEFI, SECURE = {"hw_firmware_type": "uefi"}, {"hw_firmware_type": "uefi", "os_secure_boot": "required"}
TPM = {"hw:tpm_version": "2.0", "hw:tpm_model": "tpm-crb", "hw:tpm_secret_security": "host"}
Q35 = {"hw_machine_type": "q35"}
KERNEL = Image(id="k", disk_format="aki")

KEPT = {store: tuple(msgspec.structs.replace(disk, store=store, place=f"guests/{UUID}_{disk.name}", format="raw",
                                             backing=None, backing_format=None) for disk in DISKS[:2])
        for store in ("lvm", "rbd")}


def xml_of(properties=None, specs=None, *, host=None, settings_=None, disks=DISKS[:1], **changes) -> str:
    asked = order(image=image(**properties or {}), flavor=flavor(extra_specs=specs or {}), **changes)
    return domain_xml(guest_spec(asked, disks, FOLDER, host or able(), settings_ or settings()))


def tree_of(*args, **kwargs) -> ET.Element:
    return ET.fromstring(xml_of(*args, **kwargs))


#: golden file -> (image properties, extra specs, other arguments of xml_of)
CASES: dict[str, tuple[dict[str, str], dict[str, str], dict]] = {
    "machine-pc": ({"hw_machine_type": "pc"}, {}, {}),
    "machine-q35-cd": (Q35, {}, {"disks": DISKS}),
    "uefi": (UEFI, {}, {}),
    "uefi-kernel": (UEFI | Q35, {}, {"kernel": KERNEL}),
    "uefi-stateless": (UEFI | {"hw_firmware_stateless": "yes"}, {}, {}),
    "secure-boot": (SECURE, {}, {}),
    "secure-boot-by-flavor": (Q35, {"os:secure_boot": "required"}, {}),
    "tpm-2.0": ({}, TPM, {}),
    "tpm-1.2": ({"hw_tpm_version": "1.2"}, {}, {}),
    "video-vga-ram": ({"hw_video_model": "vga", "hw_video_ram": "32"}, {"hw_video:ram_max_mb": "64"}, {}),
    "video-none": ({"hw_video_model": "none"}, {}, {}),
    "sound": ({}, {"hw:sound_model": "ich9"}, {}),
    "rng-rate": ({}, {"hw_rng:allowed": "true", "hw_rng:rate_bytes": "1024", "hw_rng:rate_period": "500"}, {}),
    "watchdog": ({"hw_watchdog_action": "poweroff"}, {}, {}),
    "serial-none": ({}, {"hw:serial_port_count": "0"}, {}),
    "serial-four": ({}, {"hw:serial_port_count": "4"}, {}),
    "packed-ring": ({}, {"hw:virtio_packed_ring": "true"}, {"disks": DISKS}),
    "scsi": ({"hw_disk_bus": "scsi", "hw_scsi_model": "virtio-scsi"}, {}, {"disks": DISKS[:3]}),
    "sata": (Q35 | {"hw_disk_bus": "sata"}, {}, {"disks": DISKS}),
    "multiqueue": ({}, {"hw:vif_multiqueue_enabled": "true"}, {"host": able(virt_type="kvm"), "settings_": settings(
        rx_queue_size=512, tx_queue_size=256)}),
    "iommu-intel": (Q35, {"hw:viommu_model": "intel"}, {"host": able(virt_type="kvm")}),
    "iommu-auto": ({"hw_viommu_model": "auto"}, {}, {}),
    "hidden": ({}, {"hw:hide_hypervisor_id": "true"}, {"host": able(virt_type="kvm")}),
    "cpu-custom": ({}, {}, {"settings_": settings(cpu_mode="custom", cpu_models=("EPYC-Rome", "Haswell"),
                                                  cpu_flags=("+pcid", "-mtrr", "vmx"))}),
    "cpu-topology": ({"hw_cpu_threads": "2", "hw_cpu_max_sockets": "1"}, {"hw:cpu_max_cores": "4"}, {}),
    "cpu-address-bits": ({"hw_maxphysaddr_mode": "emulate", "hw_maxphysaddr_bits": "42"}, {},
                         {"host": able(virt_type="kvm")}),
    "cpu-address-bits-of-the-flavor": (
        {"hw_maxphysaddr_mode": "emulate", "hw_maxphysaddr_bits": "42"}, {"hw:maxphysaddr_bits": "46"},
        {"host": able(virt_type="kvm")}),
    "cpu-address-passthrough": ({"hw_maxphysaddr_mode": "passthrough"}, {}, {
        "host": able(virt_type="kvm"), "settings_": settings(cpu_mode="host-passthrough")}),
    "quotas": ({}, {"quota:cpu_shares": "512", "quota:cpu_period": "20000", "quota:cpu_quota": "10000",
                    "quota:disk_total_bytes_sec": "1048576", "quota:disk_write_iops_sec": "100",
                    "quota:vif_inbound_average": "1000", "quota:vif_inbound_peak": "2000",
                    "quota:vif_outbound_average": "500"}, {}),
    "input-virtio-menu": ({"hw_input_bus": "virtio", "hw_boot_menu": "yes"}, {}, {}),
    "usb-xhci": ({"hw_usb_model": "qemu-xhci", "hw_pointer_model": "usbtablet"}, {}, {}),
    "agent": ({"hw_qemu_guest_agent": "yes"}, {}, {}),
    "disk-lvm": ({}, {}, {"disks": KEPT["lvm"], "settings_": settings(discard="unmap")}),
    "disk-rbd": ({"hw_disk_bus": "scsi"}, {}, {"disks": KEPT["rbd"], "settings_": settings(
        network_cache_mode="writeback", rbd_user="nova", rbd_conf="/etc/ceph/ceph.conf",
        rbd_secret="5b67d3ff-54e2-4a4e-8a49-8b6c8f9e1e55")}),
    "disk-preallocated": ({}, {}, {"settings_": settings(cow=False, preallocate=True), "disks": tuple(
        msgspec.structs.replace(disk, format="raw", backing=None, backing_format=None) for disk in DISKS[:3])}),
    "writeback": ({}, {}, {"settings_": settings(discard="unmap", balloon_period_s=0),
                           "host": able(cache_mode="writeback")}),
}


@pytest.mark.parametrize("name", CASES)
def test_case_becomes_the_golden_xml(name):
    properties, specs, others = CASES[name]
    made, path = xml_of(properties, specs, **others), GOLDEN / f"device-{name}.xml"
    if os.environ.get("NOVA_WRITE_GOLDEN"):
        path.write_text(made)
    assert made == path.read_text()


def test_no_golden_file_is_without_its_case():
    assert {path.name for path in GOLDEN.glob("device-*.xml")} == {f"device-{name}.xml" for name in CASES}


@pytest.mark.skipif(not shutil.which("virt-xml-validate") or not shutil.which("xmllint"),
                    reason="needs virt-xml-validate and xmllint (packages libvirt-clients, libxml2-utils)")
@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.xml")), ids=lambda path: path.stem)
def test_golden_xml_passes_libvirts_own_schema(path):
    done = subprocess.run(["virt-xml-validate", str(path), "domain"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# --- firmware

def test_guest_with_secure_boot_gets_a_machine_that_has_it():
    tree = tree_of(SECURE)
    assert tree.find("os/type").get("machine") == "q35" and tree.find("features/smm").get("state") == "on"


def test_variables_of_secure_boot_and_of_none_are_not_the_same_file():
    assert tree_of(UEFI).findtext("os/nvram") == str(FOLDER / "nvram.fd")
    assert tree_of(SECURE).findtext("os/nvram") == str(FOLDER / "nvram.secure.fd")


@pytest.mark.parametrize(("properties", "secure"), [
    (UEFI | Q35 | {"os_secure_boot": "optional"}, "yes"), (UEFI | {"os_secure_boot": "optional"}, "no"),
    (Q35 | {"os_secure_boot": "optional"}, None)])
def test_secure_boot_that_is_optional_is_there_where_the_machine_can(properties, secure):
    feature = tree_of(properties).find("os/firmware/feature[@name='secure-boot']")
    assert (None if feature is None else feature.get("enabled")) == secure


def test_operators_machine_type_gives_way_to_the_images_alone():
    assert tree_of({}, settings_=settings(machine_types={"x86_64": "q35"})).find("os/type").get("machine") == "q35"
    assert tree_of({"hw_machine_type": "pc"},
                   settings_=settings(machine_types={"x86_64": "q35"})).find("os/type").get("machine") == "pc"


@pytest.mark.parametrize(("text", "expected"), [
    ('{"mapping": {"device": "flash", "mode": "stateless"}}', True), ('{"mapping": {"device": "flash"}}', False),
    ('{"mapping": []}', False), ("[]", False), ("{", False)])
def test_stateless_firmware_is_known_by_its_description(tmp_path, text, expected):
    (tmp_path / "10-x.json").write_text(text)
    assert has_stateless((tmp_path, tmp_path / "missing")) is expected


# --- what is refused: (image properties, extra specs, host, what the message says)

IMPOSSIBLE = [
    (SECURE | {"hw_firmware_type": "bios"}, {}, "os_secure_boot=required .* bios"),
    (SECURE | {"hw_machine_type": "pc"}, {}, "os_secure_boot=required .* q35"),
    ({"hw_firmware_stateless": "yes"}, {}, "hw_firmware_stateless"),
    ({"os_secure_boot": "required"}, {"os:secure_boot": "disabled"}, "the flavor has os:secure_boot=disabled"),
    ({"hw_tpm_version": "1.2", "hw_tpm_model": "tpm-crb"}, {}, "hw_tpm_model=tpm-crb"),
    ({"hw_tpm_model": "tpm-crb"}, {}, "hw:tpm_version is required"),
    ({"hw_tpm_version": "1.2"}, {"hw:tpm_version": "2.0"}, "the flavor has hw:tpm_version=2.0"),
    ({"hw_viommu_model": "intel", "hw_machine_type": "pc"}, {}, "hw_viommu_model=intel .* q35"),
    ({"hw_viommu_model": "virtio"}, {"hw:viommu_model": "intel"}, "the flavor has hw:viommu_model=intel"),
    ({"hw_maxphysaddr_bits": "42"}, {}, "hw_maxphysaddr_bits=42 .* hw:maxphysaddr_mode"),
    ({}, {"hw:maxphysaddr_bits": "42"}, "hw:maxphysaddr_bits=42 .* hw:maxphysaddr_mode"),
    ({"hw_maxphysaddr_mode": "emulate"}, {"hw:maxphysaddr_bits": "99"}, "hw:maxphysaddr_bits=99 .* from 32 to 64"),
    ({"hw_maxphysaddr_mode": "emulate"}, {"hw:maxphysaddr_mode": "passthrough"},
     "hw_maxphysaddr_mode=emulate .* the flavor has hw:maxphysaddr_mode=passthrough"),
    ({"hw_serial_port_count": "3"}, {"hw:serial_port_count": "2"}, "the flavor allows 2"),
    ({"hw_cpu_max_cores": "4"}, {"hw:cpu_max_cores": "2"}, "the flavor allows 2"),
    ({"hw_cpu_threads": "4"}, {"hw:cpu_max_threads": "2"}, "the flavor allows 2"),
    ({"hw_pmu": "yes"}, {"hw:pmu": "no"}, "the flavor has hw:pmu"),
    ({"hw_video_ram": "64"}, {"hw_video:ram_max_mb": "32"}, "the flavor allows 32"),
    ({}, {"quota:cpu_period": "5"}, "from 1000 to"), ({}, {"quota:cpu_shares": "many"}, "not a number"),
]


@pytest.mark.parametrize(("properties", "specs", "message"), IMPOSSIBLE, ids=lambda value: str(value)[:40])
def test_what_no_host_can_give_is_invalid_and_says_why(properties, specs, message):
    with pytest.raises(errors.image.WrongProperty, match=message):
        xml_of(properties, specs)


NO_TPM = able(tpm=False)
OLD_TPM = able(abilities=lambda machine: abilities(machine, tpm_versions=("2.0",), tpm_models=("tpm-tis",)))
POOR = able(stateless_firmware=False, abilities=lambda machine: abilities(
    machine, efi=False, secure_boot=False, video_models=("vga",), disk_buses=("virtio",)))
PC = settings(machine_types={"x86_64": "pc"})
ELSEWHERE = [
    (UEFI, {}, {"host": POOR}, "hw_firmware_type=uefi.*ovmf"),
    (SECURE, {}, {"host": POOR}, "os_secure_boot=required"),
    (SECURE, {}, {"settings_": PC}, "os_secure_boot=required"),
    ({"hw_machine_type": "pc-q35-99"}, {}, {}, "hw_machine_type=pc-q35-99"),
    (UEFI | {"hw_firmware_stateless": "yes"}, {}, {"host": able(stateless_firmware=False)}, "hw_firmware_stateless"),
    ({}, TPM, {"host": NO_TPM}, "hw:tpm_version=2.0.*swtpm_enabled"),
    ({"hw_tpm_version": "1.2"}, {}, {"host": OLD_TPM}, "hw_tpm_version=1.2"),
    ({}, TPM, {"host": OLD_TPM}, "hw:tpm_model=tpm-crb"),
    ({}, TPM | {"hw:tpm_secret_security": "user"}, {}, "hw:tpm_secret_security=user.*key manager"),
    ({}, TPM | {"hw:tpm_secret_security": "deployment"}, {}, "hw:tpm_secret_security=deployment"),
    ({"hw_viommu_model": "smmuv3"}, {}, {}, "hw_viommu_model=smmuv3"),
    ({"hw_viommu_model": "intel"}, {}, {"settings_": PC}, "hw_viommu_model=intel"),
    ({"hw_maxphysaddr_mode": "emulate", "hw_maxphysaddr_bits": "42"}, {}, {}, "hw_maxphysaddr_mode"),
    ({"hw_maxphysaddr_mode": "passthrough"}, {}, {"host": able(virt_type="kvm")}, "host-passthrough"),
    ({}, {"hw:maxphysaddr_mode": "emulate"}, {"host": able(virt_type="kvm", address_bits=0)}, "from 8.7 on"),
    ({"hw_machine_type": "virt"}, {"hw:maxphysaddr_mode": "emulate"}, {"host": able(
        virt_type="kvm", arch="aarch64", machines=frozenset({"virt"}))}, "only on x86 processors"),
    ({}, {"hw:maxphysaddr_mode": "emulate", "hw:maxphysaddr_bits": "52"}, {"host": able(virt_type="kvm")},
     "hw:maxphysaddr_bits=52.*48 bits"),
    ({"hw_disk_bus": "scsi"}, {}, {"host": POOR}, "hw_disk_bus=scsi"),
    ({"hw_disk_bus": "ide"} | Q35, {}, {}, "hw_disk_bus=ide.*pc-q35-7.2"),
    ({"hw_disk_bus": "xen"}, {}, {}, "hw_disk_bus=xen"), ({"hw_vm_mode": "xen"}, {}, {}, "hw_vm_mode=xen"),
    ({"hw_cdrom_bus": "ide"} | Q35, {}, {}, "hw_cdrom_bus=ide"),
    ({"hw_scsi_model": "buslogic"}, {}, {}, "hw_scsi_model=buslogic"),
    ({"hw_video_model": "qxl"}, {}, {"host": POOR}, "hw_video_model=qxl"),
    ({"hw_video_model": "gop"}, {}, {}, "hw_video_model=gop"), ({"hw_vif_model": "sriov"}, {}, {}, "hw_vif_model"),
    ({"hw_vif_model": "igb"}, {}, {}, "QEMU 8.0"), ({}, {"hw:sound_model": "virtio"}, {}, "hw:sound_model=virtio"),
    ({"hw_redirected_usb_ports": "2"}, {}, {}, "USB devices are not redirected"),
    ({}, {"hw:pmem": "a"}, {}, "persistent memory"),
    ({"hw_mem_encryption": "yes"}, {}, {}, "hw_mem_encryption=yes.*SEV"),
    ({"hw_architecture": "aarch64"}, {}, {}, "x86_64"),
]


@pytest.mark.parametrize(("properties", "specs", "others", "message"), ELSEWHERE, ids=lambda value: str(value)[:40])
def test_what_this_host_cannot_give_is_refused_by_name(properties, specs, others, message):
    with pytest.raises(errors.host.NoSuchGuest, match=message):
        xml_of(properties, specs, **others)


def test_image_may_choose_below_the_flavors_limit():
    assert len(tree_of({"hw_serial_port_count": "1"}, {"hw:serial_port_count": "3"}).findall("devices/serial")) == 1


def test_loose_spellings_of_values_are_read():
    assert tree_of({"hw_architecture": "AMD64"}).find("os/type").get("arch") == "x86_64"


# --- processors

MAP = {"Nehalem": frozenset({"sse4.2"}), "Haswell": frozenset({"sse4.2", "avx2"})}
TWO = settings(cpu_mode="custom", cpu_models=("Nehalem", "Haswell"))


@pytest.mark.parametrize(("trait", "model"), [(None, "Nehalem"), ("HW_CPU_X86_SSE42", "Nehalem"),
                                              ("HW_CPU_X86_AVX2", "Haswell")])
@pytest.mark.parametrize("by", ["flavor", "image"])
def test_first_model_with_the_required_features_is_taken(trait, model, by):
    asked = {f"trait:{trait}": "required"} if trait else {}
    tree = tree_of(asked if by == "image" else {}, asked if by == "flavor" else {},
                   host=able(cpu_features=MAP), settings_=TWO)
    assert tree.findtext("cpu/model") == model


def test_flag_that_is_added_counts_and_one_that_is_taken_away_does_not():
    added = settings(cpu_mode="custom", cpu_models=("Nehalem",), cpu_flags=("+avx2",))
    assert tree_of({}, {"trait:HW_CPU_X86_AVX2": "required"}, host=able(cpu_features=MAP),
                   settings_=added).findtext("cpu/model") == "Nehalem"
    removed = settings(cpu_mode="custom", cpu_models=("Haswell",), cpu_flags=("-avx2",))
    with pytest.raises(errors.host.NoSuchGuest, match="avx2"):
        xml_of({}, {"trait:HW_CPU_X86_AVX2": "required"}, host=able(cpu_features=MAP), settings_=removed)


def test_models_that_the_host_cannot_be_are_passed_over():
    models = settings(cpu_mode="custom", cpu_models=("EPYC-Rome",))
    with pytest.raises(errors.host.NoSuchGuest, match="cpu_models=EPYC-Rome"):
        xml_of(settings_=models)
    assert tree_of(settings_=models, host=able(abilities=lambda machine: abilities(machine, cpu_models=()))).findtext(
        "cpu/model") == "EPYC-Rome"


def test_forbidden_traits_ask_for_no_feature():
    assert tree_of({}, {"trait:HW_CPU_X86_AVX2": "forbidden"}, host=able(cpu_features=MAP),
                   settings_=TWO).findtext("cpu/model") == "Nehalem"


# --- traits

def test_traits_are_standard_ones():
    everything = able(virt_type="kvm", version=9_000_000)
    found = set(host_traits.traits(everything, FEATURES.values(), [abilities(None), abilities("q35")]))
    assert found <= TRAITS
    assert {"COMPUTE_SECURITY_UEFI_SECURE_BOOT", "COMPUTE_FIRMWARE_UEFI", "COMPUTE_FIRMWARE_BIOS",
            "COMPUTE_SECURITY_TPM_2_0", "COMPUTE_SECURITY_TPM_1_2", "COMPUTE_SECURITY_TPM_TIS",
            "COMPUTE_SECURITY_TPM_CRB", "COMPUTE_SECURITY_TPM_SECRET_SECURITY_HOST", "COMPUTE_VIOMMU_MODEL_INTEL",
            "COMPUTE_VIOMMU_MODEL_VIRTIO", "COMPUTE_VIOMMU_MODEL_AUTO", "COMPUTE_SECURITY_STATELESS_FIRMWARE",
            "COMPUTE_STORAGE_BUS_IDE", "COMPUTE_STORAGE_BUS_SATA", "COMPUTE_NET_VIF_MODEL_IGB",
            "COMPUTE_SOUND_MODEL_VIRTIO", "HW_CPU_X86_AVX2"} <= found


def test_traits_of_what_the_host_has_not_are_not_told():
    found = set(host_traits.traits(able(tpm=False, stateless_firmware=False), (), [abilities(
        None, efi=False, disk_buses=("virtio",))]))
    assert not {trait for trait in found if trait.startswith(("COMPUTE_SECURITY", "COMPUTE_VIOMMU", "HW_CPU"))}
    assert not found & {"COMPUTE_FIRMWARE_UEFI", "COMPUTE_STORAGE_BUS_IDE", "COMPUTE_NET_VIF_MODEL_IGB"}


PASSING = settings(cpu_mode="host-passthrough")


@pytest.mark.parametrize(("host", "settings_", "expected"), [
    (able(virt_type="kvm"), settings(), {"emulate"}), (able(virt_type="kvm"), PASSING, {"emulate", "passthrough"}),
    (able(), PASSING, set()), (able(virt_type="kvm", address_bits=0), PASSING, set()),
    (able(virt_type="kvm", arch="aarch64"), PASSING, set())])
def test_address_modes_when_the_host_can_set_bits_then_passthrough_takes_its_own_processor(host, settings_, expected):
    assert address_modes(settings_, host) == expected


def test_passthrough_when_a_number_of_bits_is_asked_for_then_libvirt_is_not_told_of_it():
    made = tree_of({}, {"hw:maxphysaddr_mode": "passthrough", "hw:maxphysaddr_bits": "46"}, settings_=PASSING,
                   host=able(virt_type="kvm"))
    assert made.find("cpu/maxphysaddr").attrib == {"mode": "passthrough"}


def test_emulation_when_no_number_of_bits_is_asked_for_then_libvirt_chooses():
    made = tree_of({}, {"hw:maxphysaddr_mode": "emulate"}, host=able(virt_type="kvm"))
    assert made.find("cpu/maxphysaddr").attrib == {"mode": "emulate"}


@pytest.mark.parametrize(("changes", "virt_type", "expected"), [
    ({}, "kvm", {"aes", "avx2"}), ({}, "qemu", set()), ({"cpu_mode": "none"}, "kvm", set()),
    ({"cpu_mode": "host-passthrough", "cpu_flags": ("-avx2", "+pcid")}, "kvm", {"aes", "pcid"}),
    ({"cpu_mode": "custom", "cpu_models": ("Nehalem", "Haswell", "EPYC-Rome")}, "qemu", {"sse4.2", "avx2"})])
def test_features_that_guests_can_have_follow_from_the_cpu_mode(changes, virt_type, expected):
    host = able(virt_type=virt_type, cpu_features=MAP | {"EPYC-Rome": frozenset({"sha-ni"})})
    assert guest_features(settings(**changes), host, frozenset({"aes", "avx2"}), abilities(None)) == expected


def test_processor_traits_follow_libvirts_names():
    assert traits_of(["sse4.2", "aes", "pclmuldq", "nonsense"]) == {"HW_CPU_X86_SSE42", "HW_CPU_X86_AESNI",
                                                                   "HW_CPU_X86_CLMUL"}


@pytest.mark.skipif(not Path("/usr/share/libvirt/cpu_map").exists(), reason="needs libvirt's CPU map (libvirt0)")
def test_every_feature_of_a_trait_is_one_that_libvirt_knows():
    known = {feature.get("name") for feature in
             ET.parse("/usr/share/libvirt/cpu_map/x86_features.xml").iter("feature")}
    assert set(FEATURES.values()) - known == set()
