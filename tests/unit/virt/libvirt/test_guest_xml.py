from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from nova import errors
from nova.distribution import Distribution
from nova.model.image.images import Image
from nova.virt.libvirt.guest.definition import guest_spec
from nova.virt.libvirt.properties import FLAVOR, IMAGE, REFUSED
from nova.virt.libvirt.xml.domain import domain_xml
from tests.unit.virt.libvirt.orders import DISKS, FOLDER, able, facts, flavor, image, order, settings

GOLDEN = Path(__file__).parent / "golden"


def xml_of(order_=None, host=None, settings_=None, disks=DISKS) -> str:
    return domain_xml(guest_spec(order_ or order(), disks, FOLDER, host or facts(), settings_ or settings()))


def tree_of(*args, **kwargs) -> ET.Element:
    return ET.fromstring(xml_of(*args, **kwargs))


GOLDENS = {
    "plain-qemu.xml": {},
    "plain-kvm.xml": {"host": facts(virt_type="kvm")},
    "windows-q35.xml": {
        "order_": order(image=image(os_type="windows", hw_machine_type="q35", hw_disk_bus="scsi", hw_vif_model="e1000e",
                                    hw_cpu_sockets="1", img_hide_hypervisor_id="yes", hw_time_hpet="true")),
        "host": facts(virt_type="kvm"), "settings_": settings(pcie_ports=2)},
    "kernel.xml": {
        "order_": order(kernel=Image(id="k", disk_format="aki"), ramdisk=Image(id="r", disk_format="ari"),
                        image=image(os_command_line="quiet console=ttyS0")), "disks": DISKS[:1]},
    "headless.xml": {"settings_": settings(vnc_listen=None, balloon_period_s=0), "disks": DISKS[:1],
                     "order_": order(flavor=flavor(extra_specs={"hw_rng:allowed": "False"}), interfaces=())},
    "throttled.xml": {
        "order_": order(flavor=flavor(extra_specs={
            "quota:cpu_shares": "2048", "quota:disk_read_iops_sec": "100", "quota:vif_inbound_average": "1000",
            "quota:vif_inbound_burst": "2000", "hw_rng:rate_bytes": "512", "hw_rng:rate_period": "1000"}))},
}


@pytest.mark.parametrize("name", GOLDENS)
def test_guest_becomes_the_golden_xml(name):
    made = xml_of(**GOLDENS[name])
    if os.environ.get("NOVA_WRITE_GOLDEN"):
        (GOLDEN / name).write_text(made)
    assert made == (GOLDEN / name).read_text()


def test_guest_of_the_same_order_becomes_the_same_xml():
    assert xml_of() == xml_of()


def test_names_with_markup_or_control_characters_stay_one_text():
    tree = tree_of(order(name="</name><evil/>\x00\x1b"))
    assert tree.find(".//evil") is None
    assert tree.findtext("metadata/*/{http://openstack.org/xmlns/libvirt/nova/1.1}name") == "</name><evil/>"


def test_serial_number_is_the_servers_uuid():
    tree = tree_of()
    assert tree.findtext("sysinfo/system/entry[@name='serial']") == tree.findtext("uuid")
    assert tree.find("os/smbios").get("mode") == "sysinfo"


def test_guest_when_a_distribution_packaged_the_software_then_its_tables_name_it():
    told = tree_of(settings_=settings(distribution=Distribution("The RDO Project", "Cloud", "34.0.0-1.el9")))
    entries = {entry.get("name"): entry.text for entry in told.findall("sysinfo/system/entry")}
    assert (entries["manufacturer"], entries["product"], entries["version"]) == (
        "The RDO Project", "Cloud", "34.0.0-1.el9")


# property -> (where in the XML, attribute or None for text, what is there)
SHOWS = {
    ("hw_disk_bus", "sata"): ("devices/disk/target[@dev='sda']", "bus", "sata"),
    ("hw_disk_bus", "ide"): ("devices/disk/target[@dev='hda']", "bus", "ide"),
    ("hw_cdrom_bus", "sata"): ("devices/disk[@device='cdrom']/target", "bus", "sata"),
    ("hw_scsi_model", "lsilogic"): None,  # shows where a disk is on that bus: see below
    ("hw_vif_model", "e1000"): ("devices/interface/model", "type", "e1000"),
    ("hw_vif_multiqueue_enabled", "yes"): ("devices/interface/driver", "queues", "2"),
    ("hw_virtio_packed_ring", "on"): ("devices/disk/driver", "packed", "on"),
    ("hw_video_model", "qxl"): ("devices/video/model", "type", "qxl"),
    ("hw_pointer_model", "usbtablet"): ("devices/input", "bus", "usb"),
    ("hw_input_bus", "virtio"): ("devices/input", "bus", "virtio"),
    ("hw_rng_model", "virtio"): ("devices/rng", "model", "virtio"),
    ("hw_watchdog_action", "poweroff"): ("devices/watchdog", "action", "poweroff"),
    ("hw_sound_model", "ich6"): ("devices/sound", "model", "ich6"),
    ("hw_usb_model", "qemu-xhci"): ("devices/controller[@type='usb']", "model", "qemu-xhci"),
    ("hw_qemu_guest_agent", "yes"): ("devices/channel/target", "name", "org.qemu.guest_agent.0"),
    ("hw_serial_port_count", "2"): ("devices/serial[2]/target", "port", "1"),
    ("hw_boot_menu", "true"): ("os/bootmenu", "enable", "yes"),
    ("hw_time_hpet", "yes"): ("clock/timer[@name='hpet']", "present", "yes"),
    ("hw_pmu", "no"): ("features/pmu", "state", "off"),
    ("hw_machine_type", "q35"): ("os/type", "machine", "q35"),
    ("hw_architecture", "i686"): ("os/type", "arch", "i686"),
    ("architecture", "i686"): ("os/type", "arch", "i686"),
    ("hw_cpu_cores", "2"): ("cpu/topology", "cores", "2"),
    ("hw_cpu_threads", "2"): ("cpu/topology", "threads", "2"),
    ("hw_cpu_sockets", "1"): ("cpu/topology", "sockets", "1"),
    ("hw_cpu_max_sockets", "1"): ("cpu/topology", "sockets", "1"),
    ("hw_cpu_max_cores", "1"): ("cpu/topology", "cores", "1"),
    ("hw_cpu_max_threads", "1"): ("cpu/topology", "threads", "1"),
    ("img_hide_hypervisor_id", "yes"): ("features/kvm/hidden", "state", "on"),
    ("os_type", "windows"): ("clock", "offset", "localtime"),
    ("hw_firmware_type", "bios"): ("os", "firmware", None),
    ("hw_vm_mode", "hvm"): ("os/type", None, "hvm"),
    ("hw_video_ram", "16"): None,  # needs the flavor's leave: see below
    **dict.fromkeys([("hw_firmware_stateless", "no"), ("os_secure_boot", "disabled"), ("hw_tpm_version", "2.0"),
                     ("hw_tpm_model", "tpm-tis"), ("hw_viommu_model", "auto"), ("hw_maxphysaddr_mode", "emulate"),
                     ("hw_maxphysaddr_bits", "42")]),  # of test_devices.py
    **dict.fromkeys([("os_admin_user", "root"), ("os_require_quiesce", "yes")]),  # nothing of the machine
    ("os_command_line", "quiet"): None,  # shows with a kernel: see the golden kernel.xml
}


@pytest.mark.parametrize(("name", "value"), [key for key, shown in SHOWS.items() if shown])
def test_image_property_shows_in_the_xml(name, value):
    where, attribute, expected = SHOWS[name, value]
    found = tree_of(order(image=image(**{name: value}))).find(where)
    assert found is not None and (found.get(attribute) if attribute else found.text) == expected


def test_every_image_property_of_the_table_has_a_case():
    assert set(IMAGE) - {name for name, _value in SHOWS} == set()


@pytest.mark.parametrize(("specs", "properties", "where", "attribute", "expected"), [
    ({"hw:watchdog_action": "reset"}, {"hw_watchdog_action": "pause"}, "devices/watchdog", "action", "reset"),
    ({"hw:cpu_threads": "2"}, {"hw_cpu_threads": "1"}, "cpu/topology", "threads", "2"),
    ({"hw_video:ram_max_mb": "32"}, {"hw_video_ram": "16"}, "devices/video/model", "vram", "16384"),
    ({}, {"hw_disk_bus": "scsi", "hw_scsi_model": "lsilogic"}, "devices/controller[@type='scsi']", "model", "lsilogic"),
    ({"hide_hypervisor_id": "true"}, {}, "features/kvm/hidden", "state", "on"),
])
def test_flavor_stands_above_its_image(specs, properties, where, attribute, expected):
    tree = tree_of(order(image=image(**properties), flavor=flavor(extra_specs=specs)))
    assert tree.find(where).get(attribute) == expected


@pytest.mark.parametrize(("name", "value"), [
    ("hw_disk_bus", "warp"), ("hw_disk_bus", ""), ("hw_video_model", "voodoo"), ("hw_boot_menu", "perhaps"),
    ("hw_cpu_cores", "0"), ("hw_cpu_cores", "two"), ("hw_serial_port_count", "9"), ("hw_vm_mode", "zen"),
    ("hw_video_ram", "16"), ("os_type", "beos"), ("hw_firmware_type", "coreboot"),
])
def test_image_property_with_a_wrong_value_is_invalid(name, value):
    with pytest.raises(errors.image.WrongProperty, match=name):
        xml_of(order(image=image(**{name: value})))


@pytest.mark.parametrize("name", REFUSED)
def test_promise_that_is_not_kept_is_refused(name):
    table = {"extra": {name: "required"}} if ":" in name else {"image": {name: "required"}}
    with pytest.raises(errors.host.NoSuchGuest, match=name):
        xml_of(order(image=image(**table.get("image", {})), flavor=flavor(extra_specs=table.get("extra", {}))))


@pytest.mark.parametrize(("name", "value"), [("hw_cpu_policy", "shared"), ("hw_mem_page_size", "small"),
                                             ("os_secure_boot", "optional"), ("hw_locked_memory", "no")])
def test_promise_that_asks_for_nothing_is_no_hindrance(name, value):
    assert xml_of(order(image=image(**{name: value}))) == xml_of()


def test_unknown_properties_mean_nothing():
    assert xml_of(order(image=image(my_own="1", hw_unknown="2"))) == xml_of()


def test_uefi_without_firmware_is_refused_and_with_it_is_given():
    wants = order(image=image(hw_firmware_type="uefi"))
    with pytest.raises(errors.HostRefused, match="UEFI"):
        xml_of(wants)
    assert tree_of(wants, able()).find("os").get("firmware") == "efi"


def test_foreign_architecture_is_refused():
    with pytest.raises(errors.HostRefused, match="aarch64"):
        xml_of(order(image=image(hw_architecture="aarch64")))


def test_disks_on_ide_beyond_its_four_are_refused():
    with pytest.raises(errors.image.WrongProperty, match="more disks"):
        xml_of(order(image=image(hw_disk_bus="ide")), disks=(*DISKS[:3], DISKS[1], DISKS[1]))


def test_overlay_names_its_backing_file_and_format_so_that_nothing_is_guessed():
    for disk in tree_of().iter("disk"):
        assert disk.find("driver").get("type") in ("raw", "qcow2")
        if disk.find("driver").get("type") == "qcow2":
            assert disk.find("backingStore") is not None
    root = tree_of().find("devices/disk")
    assert root.find("backingStore/format").get("type") == "raw"
    assert root.find("backingStore/backingStore") is not None and len(root.find("backingStore/backingStore")) == 0


@pytest.mark.parametrize(("changes", "virt_type", "mode", "model"), [
    ({}, "qemu", None, None), ({}, "kvm", "host-model", None), ({"cpu_mode": "host-passthrough"}, "kvm",
                                                                "host-passthrough", None),
    ({"cpu_mode": "host-passthrough"}, "qemu", None, None), ({"cpu_mode": "none"}, "kvm", None, None),
    ({"cpu_mode": "custom", "cpu_models": ("Haswell",), "cpu_flags": ("pcid", "-mtrr")}, "kvm", "custom", "Haswell"),
])
def test_cpu_mode_is_as_configured_or_fits_the_host(changes, virt_type, mode, model):
    cpu = tree_of(host=facts(virt_type=virt_type), settings_=settings(**changes)).find("cpu")
    assert (cpu.get("mode"), cpu.findtext("model")) == (mode, model)
    flags = [(feature.get("policy"), feature.get("name")) for feature in cpu.findall("feature")]
    assert flags == ([("require", "pcid"), ("disable", "mtrr")] if "cpu_flags" in changes else [])


def test_every_flavor_spec_of_the_table_sets_a_field_of_requested_properties():
    from nova.virt.libvirt.properties import RequestedProperties
    assert {row.field for row in (*FLAVOR.values(),
                                  *IMAGE.values())} - {""} <= set(RequestedProperties.__dataclass_fields__)
