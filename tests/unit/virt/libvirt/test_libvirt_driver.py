"""The driver on a fake hypervisor: all of it but libvirt itself, with real files and real image tools."""

from __future__ import annotations

import dataclasses
import errno
import json
import shutil
import subprocess
import threading
import time
import uuid
from pathlib import Path

import msgspec
import pytest
from oslo_config import cfg

from nova import conf as nova_conf
from nova import errors
from nova.concurrency import Clock
from nova.model.guest.orders import BuildOrder, Disk
from nova.model.image.images import Image
from nova.model.server.states import PowerState
from nova.privileged import disk_exports, kvm, qemu_img
from nova.virt.libvirt import LibvirtDriver, from_conf
from nova.virt.libvirt.disks.folders import Folder
from nova.virt.libvirt.settings import settings_of
from nova.virt.libvirt.vifs import bridge
from tests.contract.driver_conformance import IMAGE_ID, DriverConformance, build, eventually, make_order, unbuild
from tests.fakes.clocks import QuickClock
from tests.fakes.hypervisor import FakeHypervisor
from tests.unit.virt.libvirt.orders import settings

pytestmark = [
    pytest.mark.one_in(3),  # programs of QEMU for each case
    pytest.mark.skipif(not all(map(shutil.which, ("qemu-img", "xorrisofs", "qemu-storage-daemon"))),
                       reason="needs qemu-img, qemu-storage-daemon and xorrisofs")]


def sparse(path: Path, size_bytes: int) -> None:
    with path.open("wb") as target:
        target.truncate(size_bytes)


class FakeLinks:
    """Devices of a host, by name; the real module needs root."""

    LinkError = errors.host.Link

    def __init__(self) -> None:
        self.devices: set[str] = set()

    def exists(self, device: str) -> bool:
        return device in self.devices

    def ensure_bridge(self, name: str, interface: str | None = None, mtu: int | None = None) -> None:
        if interface == "missing0":
            raise self.LinkError(device=interface, reason="there is no such device")
        self.devices.add(name)

    def delete(self, device: str) -> None:
        self.devices.discard(device)


class Rig:
    bridge, timeout_s = "br100", 2.0

    def __init__(self, tmp_path, links: FakeLinks, clock: Clock | None = None, **changes) -> None:
        self.hypervisor, self.links, self.root = FakeHypervisor(), links, tmp_path / "instances"
        self.driver = LibvirtDriver(settings(tmp_path, shutdown_retry_s=1, **changes), self.hypervisor, clock=clock)
        self.clock = clock
        self.base = tmp_path / "base"
        sparse(self.base, 1 << 20)  # as qemu-img makes a raw one, and each rig has one
        self.images = self

    def close(self) -> None:
        for folder in self.driver.tools.folders.all():
            disk_exports.withdraw(folder.path)  # what is offered outlives us
        self.driver.close()

    def path(self, image_id: str) -> str:
        return {IMAGE_ID: str(self.base)}[image_id]

    def left_over(self, order: BuildOrder) -> list[str]:
        found = [path.name for path in self.root.glob(f"{order.server_uuid}*")]
        found += ["domain"] if order.server_uuid in self.hypervisor.power else []
        return found + [one.id for one in order.interfaces if bridge.tap_name(one) in self.links.devices]


@pytest.fixture
def links(monkeypatch):
    fake = FakeLinks()  # netlink needs root and changes the machine: see tests/machine for the real one
    monkeypatch.setattr(bridge, "links", fake)
    return fake


@pytest.fixture
def rig(tmp_path, links):
    made = Rig(tmp_path, links)
    made.driver.connect()
    yield made
    made.driver.close()


@pytest.fixture
def order(rig):
    return make_order(rig.bridge)


class TestLibvirtDriverOnAFake(DriverConformance):
    pass


class TestLibvirtDriverOnRawFiles(DriverConformance):
    @pytest.fixture
    def rig(self, tmp_path, links):
        made = Rig(tmp_path, links, cow=False)
        made.driver.connect()
        yield made
        made.driver.close()


def test_driver_has_the_protocols_it_is_to_have(rig):
    assert rig.driver.consoles is not None and rig.driver.host_uptime is not None
    assert rig.driver.needs_images is True


def test_order_beside_the_guest_has_no_secrets_and_is_private(rig, order):
    order = msgspec.structs.replace(order, admin_password="p4ssw0rd", user_data="c2VjcmV0", files={"/x": "c2VjcmV0"})
    build(rig, order)
    kept = rig.root / order.server_uuid / "order.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert "p4ssw0rd" not in kept.read_text() and "c2VjcmV0" not in kept.read_text()
    assert json.loads(kept.read_text())["fence"]["epoch"] == 3


def test_disk_format_comes_from_the_record_whatever_the_settings_say_later(tmp_path, links, rig, order):
    build(rig, order)
    rig.driver.lifecycle.destroy(order.server_uuid)
    raw = LibvirtDriver(settings(tmp_path, cow=False), rig.hypervisor)
    raw.lifecycle.start_new(order)
    assert "type=\"qcow2\"" in rig.hypervisor.xml[order.server_uuid]


@pytest.mark.parametrize("gone", [
    ["disk"], ["disk.swap"], ["disks.json"], ["disk", "disk.swap", "disks.json"]], ids=str)
def test_guest_whose_disks_are_gone_is_never_defined_without_them(rig, order, gone):
    order = msgspec.structs.replace(order, disks=(Disk(kind="root", size_gb=1), Disk(kind="swap", size_mb=8)))
    build(rig, order)
    rig.driver.lifecycle.destroy(order.server_uuid)
    for name in gone:
        (rig.root / order.server_uuid / name).unlink()
    for make in (rig.driver.lifecycle.start_new, rig.driver.lifecycle.define):
        with pytest.raises(errors.Conflict, match="are missing: disk"):
            make(order)
    assert rig.driver.lifecycle.power_state(order.server_uuid) is None


def test_image_that_is_larger_than_the_flavors_disk_is_refused(rig, order):
    subprocess.run(["qemu-img", "create", "-q", "-f", "raw", str(rig.base), "2G"], check=True)
    with pytest.raises(errors.Invalid) as caught:
        rig.driver.disks.create_disks(order, rig.images)
    assert caught.value.code == "image.too_big"


def test_image_whose_min_disk_is_larger_than_the_flavors_is_refused(rig, order):
    with pytest.raises(errors.Invalid, match="needs a disk of 5 GB"):
        rig.driver.disks.create_disks(
            msgspec.structs.replace(order, image=Image(id=IMAGE_ID, disk_format="raw", min_disk_gb=5)), rig.images)


def test_image_that_left_the_cache_refuses_the_host(rig, order):
    with pytest.raises(errors.HostRefused, match="not in this host's image cache"):
        rig.driver.disks.create_disks(
            msgspec.structs.replace(order, image=Image(id="gone", disk_format="raw")), rig.images)


def test_kernel_and_ramdisk_lie_beside_the_guest(rig, order):
    order = msgspec.structs.replace(order, kernel=Image(id=IMAGE_ID, disk_format="aki"),
                                    ramdisk=Image(id=IMAGE_ID, disk_format="ari"))
    build(rig, order)
    xml = rig.hypervisor.xml[order.server_uuid]
    assert f"<kernel>{rig.root}/{order.server_uuid}/kernel</kernel>" in xml and "/ramdisk</initrd>" in xml
    assert "<cmdline>root=/dev/vda console=tty0 console=ttyS0</cmdline>" in xml
    rig.base.unlink()
    rig.driver.lifecycle.destroy(order.server_uuid)
    assert rig.driver.lifecycle.start_new(order) == PowerState.RUNNING


def test_full_disk_while_disks_are_made_refuses_the_host(rig, order, monkeypatch):
    def full(*_args, **_kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(qemu_img.QemuImg, "create_overlay", full)  # a disk of ours that is really full needs root
    with pytest.raises(errors.HostRefused, match="no space left"):
        rig.driver.disks.create_disks(order, rig.images)
    rig.driver.disks.remove_disks(order.server_uuid)
    assert rig.left_over(order) == []


def test_console_of_a_guest_without_a_log_is_a_conflict(rig, order):
    build(rig, order)
    assert rig.driver.consoles.console_output(order.server_uuid, 1) == "booting\n"
    (rig.root / order.server_uuid / "console.log").unlink()
    with pytest.raises(errors.Conflict):
        rig.driver.consoles.console_output(order.server_uuid, 1)


def test_start_that_libvirt_refuses_can_be_undone(rig, order):
    rig.hypervisor.refuse = "Cannot get interface MTU on 'br100': No such device"
    with pytest.raises(errors.HostRefused, match="Cannot get interface MTU"):
        build(rig, order)
    unbuild(rig, order)
    assert rig.left_over(order) == []


def test_bridge_that_is_not_there_and_not_ours_to_make_refuses_the_host(rig, order):
    (vif,) = order.interfaces
    foreign = msgspec.structs.replace(order, interfaces=(msgspec.structs.replace(vif, should_create_bridge=False),))
    with pytest.raises(errors.host.NoBridge):
        rig.driver.interfaces.plug(foreign)
    flat = msgspec.structs.replace(order, interfaces=(msgspec.structs.replace(vif, bridge_interface="missing0"),))
    with pytest.raises(errors.HostRefused, match="missing0"):
        rig.driver.interfaces.plug(flat)


def test_interface_of_another_type_refuses_the_host(rig, order):
    (vif,) = order.interfaces
    with pytest.raises(errors.HostRefused, match="ovs"):
        rig.driver.interfaces.plug(
            msgspec.structs.replace(order, interfaces=(msgspec.structs.replace(vif, type="ovs"),)))


def test_tap_that_libvirt_left_is_removed_and_the_bridge_stays(rig, order, links):
    build(rig, order)
    tap = bridge.tap_name(order.interfaces[0])
    links.devices.add(tap)
    unbuild(rig, order, known=False)
    assert links.devices == {"br100"}


@pytest.fixture
def patient(tmp_path, links):
    """A rig that waits by a clock of its own, whose time is over at once."""
    made = Rig(tmp_path, links, clock=QuickClock())
    made.driver.connect()
    yield made
    made.driver.close()


def test_shut_down_of_a_deaf_guest_asks_again_and_powers_off(patient, order):
    build(patient, order)
    patient.hypervisor.guests_obey = False
    assert patient.driver.lifecycle.shut_down(order.server_uuid, 60) == PowerState.SHUTDOWN
    assert len(patient.hypervisor.asked) == 60 and sum(patient.clock.slept) == pytest.approx(60)  # shutdown_retry_s=1


def test_shut_down_at_once_asks_nobody(rig, order):
    build(rig, order)
    rig.driver.lifecycle.shut_down(order.server_uuid, 0)
    assert rig.hypervisor.asked == []


def test_shut_down_of_a_guest_that_is_taken_away_meanwhile_ends(rig, order):
    build(rig, order)
    rig.hypervisor.guests_obey = False
    threading.Timer(0.3, rig.driver.lifecycle.destroy, [order.server_uuid]).start()
    with pytest.raises(errors.NotFound):
        rig.driver.lifecycle.shut_down(order.server_uuid, 30)


def test_reboot_of_an_obedient_guest_starts_it_again(rig, order):
    build(rig, order)
    assert rig.driver.lifecycle.reboot(order.server_uuid, 5) is True
    assert rig.driver.lifecycle.power_state(order.server_uuid) == PowerState.RUNNING


def test_reboot_of_a_deaf_guest_is_false_and_leaves_it_running(patient, order):
    build(patient, order)
    patient.hypervisor.guests_obey = False
    assert patient.driver.lifecycle.reboot(order.server_uuid, 60) is False
    assert sum(patient.clock.slept) == pytest.approx(60)
    assert patient.driver.lifecycle.power_state(order.server_uuid) == PowerState.RUNNING


def test_guests_are_domains_of_ours_and_folders(rig, order):
    build(rig, order)
    rig.hypervisor.power[foreign := str(uuid.uuid4())] = PowerState.RUNNING
    leftover = str(uuid.uuid4())
    (rig.root / leftover).mkdir()
    (rig.root / "_base").mkdir()
    noted = str(uuid.uuid4())
    rig.hypervisor.power[noted] = PowerState.RUNNING
    rig.hypervisor.xml[noted] = rig.hypervisor.xml[order.server_uuid]
    found = {guest.server_uuid: (guest.power_state, guest.epoch) for guest in rig.driver.guests()}
    assert found == {order.server_uuid: (PowerState.RUNNING, 3), leftover: (PowerState.NOSTATE, 0),
                     noted: (PowerState.RUNNING, 0)} and foreign not in found


def test_events_of_foreign_domains_are_not_told(rig, order):
    reported = []
    rig.driver.on_power_change(reported.append)
    rig.hypervisor.turn(str(uuid.uuid4()), PowerState.RUNNING)
    build(rig, order)
    assert eventually(lambda: len(reported) == 1, 2) and reported[0].server_uuid == order.server_uuid


def test_lost_connection_is_made_anew_and_all_guests_are_told(rig, order):
    build(rig, order)
    reported = []
    rig.driver.on_power_change(reported.append)
    rig.hypervisor.down = True
    rig.hypervisor.lose()
    time.sleep(0.2)
    rig.hypervisor.power[order.server_uuid] = PowerState.CRASHED
    rig.hypervisor.down = False
    assert eventually(lambda: [state.power_state for state in reported][-1:] == [PowerState.CRASHED], 5)
    assert rig.hypervisor.reopened == 1


def test_listener_that_fails_does_not_stop_the_next_event(rig, order):
    reported = []

    def listener(state):
        reported.append(state)
        raise RuntimeError("no")
    rig.driver.on_power_change(listener)
    build(rig, order)
    rig.driver.lifecycle.shut_down(order.server_uuid, 0)
    assert eventually(lambda: len(reported) == 2, 2)


def test_libvirt_that_is_down_is_unavailable(rig, order):
    rig.hypervisor.down = True
    with pytest.raises(errors.Unavailable, match="Is libvirtd running"):
        rig.driver.lifecycle.power_state(order.server_uuid)


def test_connect_without_the_wanted_virtualization_is_unavailable(tmp_path, links, monkeypatch):
    hypervisor = FakeHypervisor()
    monkeypatch.setattr(hypervisor, "capabilities", lambda: "<capabilities><host><cpu><arch>x86_64</arch></cpu></host>"
                                                            "</capabilities>")
    with pytest.raises(errors.Unavailable, match="qemu-system"):
        LibvirtDriver(settings(tmp_path), hypervisor).connect()


def test_node_says_what_the_host_has(rig):
    (node,) = rig.driver.nodes()
    assert (node.name, node.hypervisor_type, node.hypervisor_version, node.vcpus, node.memory_mb) == (
        "host1", "QEMU", 7_002_022, 4, 8192)
    assert node.supported == (("x86_64", "qemu", "hvm"),)
    assert json.loads(node.cpu_info) == {
        "arch": "x86_64", "model": "EPYC", "vendor": "AMD", "features": ["aes", "ssse3"],
        "topology": {"cells": 1, "sockets": 1, "cores": 2, "threads": 2}}
    assert "COMPUTE_STORAGE_BUS_VIRTIO" in node.traits and "COMPUTE_IMAGE_TYPE_QCOW2" in node.traits


def test_node_when_libvirt_tells_the_bits_of_addresses_then_they_are_in_cpu_info_and_guests_can_have_them(
        tmp_path, links, monkeypatch):
    hypervisor = FakeHypervisor()
    hypervisor.capabilities_xml = hypervisor.capabilities_xml.replace(
        "</arch>", "</arch><maxphysaddr mode='emulate' bits='46'/>", 1)
    monkeypatch.setattr(kvm, "choose", lambda *args: "kvm")
    driver = LibvirtDriver(settings(tmp_path), hypervisor)
    driver.connect()
    (node,) = driver.nodes()
    driver.close()
    assert json.loads(node.cpu_info)["maxphysaddr"] == {"mode": "emulate", "bits": 46}
    assert [trait for trait in node.traits if "ADDRESS_SPACE" in trait] == ["COMPUTE_ADDRESS_SPACE_EMULATED"]


def test_node_uuid_is_the_same_after_a_restart(tmp_path, links, rig):
    again = LibvirtDriver(settings(tmp_path), FakeHypervisor())
    again.connect()
    assert again.nodes()[0].uuid == rig.driver.nodes()[0].uuid
    again.close()


def test_node_uuid_when_a_tool_has_put_one_beside_nova_conf_then_it_is_that_one(tmp_path, links):
    """As devstack's NOVA_CPU_UUID does; kolla-ansible and others write it into the state folder."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/compute_id").write_text("d2d1e3f6-7f43-4f6e-8d9c-0d3ad8a4b7c1")
    given = LibvirtDriver(dataclasses.replace(settings(tmp_path), config_folders=(tmp_path / "etc",)), FakeHypervisor())
    given.connect()
    assert given.nodes()[0].uuid == "d2d1e3f6-7f43-4f6e-8d9c-0d3ad8a4b7c1"
    assert not (tmp_path / "compute_id").exists()
    given.close()


def test_node_uuid_that_is_damaged_is_said(tmp_path, links, rig):
    (tmp_path / "compute_id").write_text("nonsense")
    with pytest.raises(errors.Invalid, match="compute_id"):
        rig.driver.nodes()


def test_disk_space_that_guests_may_still_take_is_not_offered(rig, order):
    before = rig.driver.nodes()[0].disk_available_least_gb
    rig.driver.disks.create_disks(msgspec.structs.replace(order, disks=(Disk(kind="root", size_gb=50),)), rig.images)
    assert before - 51 <= rig.driver.nodes()[0].disk_available_least_gb <= before - 49


def test_bases_are_what_the_disks_lie_over(rig, order):
    assert rig.driver.image_users.bases(order.server_uuid) == frozenset()
    build(rig, order)
    assert rig.driver.image_users.bases(order.server_uuid) == {str(rig.base)}


def test_images_in_use_are_those_of_the_guests(rig, order):
    assert rig.driver.image_users.images_in_use() == frozenset()
    build(rig, msgspec.structs.replace(order, kernel=Image(id=IMAGE_ID), ramdisk=None))
    assert rig.driver.image_users.images_in_use() == {IMAGE_ID}
    unbuild(rig, order)
    assert rig.driver.image_users.images_in_use() == frozenset()


def test_images_in_use_are_those_of_other_hosts_that_share_the_directory_too(rig, order):
    root = rig.driver.tools.folders.root
    for suffix, image in (("", "theirs"), ("_resize", "put-aside")):
        other = Folder(root / f"{order.server_uuid}{suffix}", "another-host")
        other.make()
        other.keep_order(msgspec.structs.replace(order, image=Image(id=image), kernel=None, ramdisk=None))
    assert rig.driver.image_users.images_in_use() == {"theirs", "put-aside"}


@pytest.mark.parametrize("bad", ["../../etc", "x", "", "5F1C2D0A-58c4-4c55-9f0e-1d0f7d1f9a11"])
def test_folder_of_what_is_no_uuid_is_refused(rig, bad):
    with pytest.raises(ValueError):
        rig.driver.disks.remove_disks(bad)


# --- settings

def conf_of(tmp_path, text: str) -> cfg.ConfigOpts:
    path = tmp_path / "nova.conf"
    path.write_text(f"[DEFAULT]\nstate_path = {tmp_path}\n{text}")
    conf = nova_conf.register(cfg.ConfigOpts())
    conf(["--config-file", str(path)], project="nova")
    return conf


def read(tmp_path, text: str):
    conf = conf_of(tmp_path, text)
    return settings_of(conf, conf.libvirt, conf.vnc, conf.compute)


def test_settings_of_an_empty_file_are_the_defaults(tmp_path):
    found = read(tmp_path, "")
    assert (found.virt_type, found.uri, found.cow, found.vnc_listen, found.sysinfo_serial) == (
        "auto", "qemu:///system", True, "127.0.0.1", "unique")
    assert found.instances_path == tmp_path / "instances"


def test_settings_of_volumes_follow_the_file(tmp_path):
    assert read(tmp_path, "").mount_base == tmp_path / "mnt"
    found = read(tmp_path, "[libvirt]\nnfs_mount_point_base = /srv/mnt\nnfs_mount_options = vers=4.1,nosuid\n"
                           "use_default_aio_mode_for_volumes = true\ndevice_detach_attempts = 2\n"
                           "device_detach_timeout = 3\n")
    assert (found.mount_base, found.mount_options, found.default_volume_io) == (
        Path("/srv/mnt"), "vers=4.1,nosuid", True)
    assert (found.detach_attempts, found.detach_timeout_s) == (2, 3)


def test_settings_follow_the_file(tmp_path):
    found = read(tmp_path, "use_cow_images = False\npreallocate_images = space\nvnc_enabled = False\n[libvirt]\n"
                           "hw_machine_type = x86_64=q35,aarch64=virt\ndisk_cachemodes = file=writethrough\n"
                           "cpu_mode = custom\ncpu_model = Haswell,Nehalem\n[compute]\nshutdown_retry_interval = 3\n")
    assert (found.cow, found.preallocate, found.vnc_listen, found.shutdown_retry_s) == (False, True, None, 3)
    assert (found.machine_types, found.cache_mode, found.cpu_models) == (
        {"x86_64": "q35", "aarch64": "virt"}, "writethrough", ("Haswell", "Nehalem"))


@pytest.mark.parametrize("text", ["[libvirt]\ncpu_mode = custom\n",
                                  "[libvirt]\ncpu_models = Haswell\n", "[libvirt]\nhw_machine_type = q35\n"])
def test_settings_that_cannot_be_are_said(tmp_path, text):
    with pytest.raises(errors.config.Libvirt):
        read(tmp_path, text)


@pytest.mark.parametrize(("images_type", "use_cow", "cow"), [("default", "True", True), ("default", "False", False),
                                                            ("raw", "True", False), ("flat", "True", False),
                                                            ("qcow2", "False", True)])
def test_images_type_stands_above_use_cow_images(tmp_path, images_type, use_cow, cow):
    text = f"use_cow_images = {use_cow}\n[libvirt]\nimages_type = {images_type}\n"
    assert read(tmp_path, text).cow is cow


def test_driver_from_a_file_reaches_for_its_libvirt(tmp_path):
    driver = from_conf(conf_of(tmp_path, "[libvirt]\nconnection_uri = test:///default\n"), "host1")
    assert isinstance(driver, LibvirtDriver)


# --- TPMs, with the driver as a whole

def test_guest_with_a_tpm_keeps_its_secret_over_hard_reboots_and_loses_it_with_its_disks(tmp_path, links, monkeypatch):
    monkeypatch.setattr("nova.virt.libvirt.disks.tpm.installed", lambda: True)  # the programs need not be here
    made = Rig(tmp_path, links, swtpm=True, tpm_path=tmp_path / "swtpm")
    made.driver.connect()
    order = make_order(made.bridge)
    order = msgspec.structs.replace(order, flavor=msgspec.structs.replace(
        order.flavor, extra_specs={"hw:tpm_version": "2.0"}))
    build(made, order)
    kept = dict(made.hypervisor.secrets)
    made.driver.lifecycle.destroy(order.server_uuid)
    made.driver.lifecycle.start_new(order)
    assert made.hypervisor.secrets == kept and set(kept) == {order.server_uuid}
    assert "COMPUTE_SECURITY_TPM_2_0" in made.driver.nodes()[0].traits
    unbuild(made, order)
    assert made.hypervisor.secrets == {} and made.left_over(order) == []
    made.driver.close()


def test_processor_models_that_this_host_cannot_be_stop_the_start(tmp_path, links):
    with pytest.raises(errors.config.Libvirt, match="cpu_models"):
        LibvirtDriver(settings(tmp_path, cpu_mode="custom", cpu_models=("EPYC-Rome",)), FakeHypervisor()).connect()


# --- where disks are kept

@pytest.mark.parametrize(("text", "expected"), [
    ("", ("file", "", True)), ("images_type = lvm\nimages_volume_group = guests\n", ("lvm", "guests", False)),
    ("images_type = rbd\n", ("rbd", "rbd", False)),
    ("images_type = rbd\nimages_rbd_pool = vms\nrbd_user = nova\nrbd_secret_uuid = s\n", ("rbd", "vms", False))])
def test_settings_say_where_disks_are_kept(tmp_path, text, expected):
    found = read(tmp_path, f"[libvirt]\n{text}")
    assert (found.store, found.place, found.cow) == expected


def test_settings_of_cache_modes_are_by_what_a_disk_is(tmp_path):
    found = read(tmp_path, "[libvirt]\ndisk_cachemodes = file=none,block=directsync,network=writeback,mount=none\n")
    assert (found.cache_mode, found.block_cache_mode, found.network_cache_mode) == ("none", "directsync", "writeback")


@pytest.mark.parametrize("text", ["images_type = lvm\n", "images_type = rbd\nrbd_user = nova\n",
                                  "disk_cachemodes = file=sometimes\n", "disk_cachemodes = tape=none\n"])
def test_settings_of_disks_that_cannot_be_are_said(tmp_path, text):
    with pytest.raises(errors.config.Libvirt):
        read(tmp_path, f"[libvirt]\n{text}")
