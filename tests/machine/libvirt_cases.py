"""Run by ``test_libvirt_driver.py`` inside a room: the real driver, libvirtd and QEMU."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from nova import concurrency
from nova.model.guest.orders import BuildOrder, Disk
from nova.model.image.images import Image
from nova.model.server.states import PowerState
from nova.privileged import links
from nova.virt.libvirt import LibvirtDriver, LibvirtSettings
from nova.virt.libvirt.host.report import cache_mode
from tests.contract.driver_conformance import IMAGE_ID, DriverConformance, build, eventually, make_order, unbuild

pytestmark = pytest.mark.one_in(2)  # one of two runs has each

concurrency.patch("threads")  # NOVA_CONCURRENCY=eventlet runs the same cases on green threads

BRIDGE = "br-room"


class CachedImages:
    """The images in ``folder``, as in nova-compute's cache: a qcow2 file has the suffix .qcow2, a raw file has none."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, image_id: str, source: Path) -> Path:
        """Copy ``source`` into the cache, where QEMU's user may read it."""
        target = self.folder / f"{image_id}{'.qcow2' if source.suffix == '.qcow2' else ''}"
        shutil.copyfile(source, target)
        target.chmod(0o644)
        return target

    def path(self, image_id: str) -> str:
        (found,) = (path for path in (self.folder / image_id, self.folder / f"{image_id}.qcow2") if path.exists())
        return str(found)


class LibvirtRig:
    bridge, timeout_s, gives_up = BRIDGE, 5.0, False  # its guests have no system

    def __init__(self, state: Path) -> None:
        self.instances, self.volume_folder = state / "instances", state / "volumes"
        self.volume_folder.mkdir()
        self.driver = LibvirtDriver(LibvirtSettings(
            instances_path=self.instances, state_path=state, virt_type="qemu", shutdown_retry_s=2,
            cache_mode=cache_mode(state), mount_base=state / "mnt"))
        self.images = CachedImages(self.instances / "_base")
        self.images.folder.mkdir(parents=True)
        for folder in (self.instances, self.images.folder):
            folder.chmod(0o711)
        subprocess.run(["qemu-img", "create", "-q", "-f", "raw", str(self.images.folder / IMAGE_ID), "64M"], check=True)

    def left_over(self, order: BuildOrder) -> list[str]:
        found = [str(path) for path in self.instances.glob(f"{order.server_uuid}*")]
        domains = subprocess.run(["virsh", "list", "--all", "--uuid"], capture_output=True, text=True, check=True)
        found += [f"domain {order.instance_name}"] if order.server_uuid in domains.stdout else []
        found += [f"tap of {one.id}" for one in order.interfaces if links.exists(f"tap{one.id[:11]}")]
        found += [str(path) for path in Path("/var/lib/libvirt/qemu").rglob(f"*{order.instance_name}*")]
        processes = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        found += [line for line in processes.splitlines() if order.server_uuid in line]
        return found


@pytest.fixture(scope="session")
def rig():
    state = Path("/run/nova")  # the room's own; QEMU has a user of its own here, as on Debian, and must get through
    state.mkdir()
    made = LibvirtRig(state)
    made.driver.connect()
    yield made
    made.driver.close()


class TestLibvirtDriver(DriverConformance):
    pass


def xml_of(order: BuildOrder) -> str:
    return subprocess.run(["virsh", "dumpxml", order.server_uuid], capture_output=True, text=True, check=True).stdout


@pytest.fixture
def order(rig):
    made = make_order(rig.bridge)
    yield made
    unbuild(rig, made)


def test_guest_has_its_disks_tap_and_serial_number(rig, order):
    build(rig, order)
    xml = xml_of(order)
    assert f"<uuid>{order.server_uuid}</uuid>" in xml and f"<entry name='serial'>{order.server_uuid}</entry>" in xml
    assert "<entry name='product'>OpenStack Nova</entry>" in xml
    assert all(f"dev='{name}'" in xml for name in ("vda", "vdb", "vdc", "hda"))
    assert links.ports(BRIDGE) == (f"tap{order.interfaces[0].id[:11]}",)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (rig.instances / order.server_uuid).glob("*.json")}
    assert set(modes) == {"order.json", "disks.json", "plugged.json"} and set(modes.values()) == {0o600}


def test_ephemeral_and_swap_disks_are_formatted_with_a_label(rig, order, tmp_path):
    build(rig, order)
    rig.driver.lifecycle.shut_down(order.server_uuid, 0)
    for name, kind, label in (("disk.eph0", "ext4", "ephemeral0"), ("disk.swap", "swap", "swap")):
        raw = tmp_path / name
        subprocess.run(["qemu-img", "convert", "-f", "qcow2", "-O", "raw",
                        str(rig.instances / order.server_uuid / name), str(raw)], check=True)
        found = subprocess.run(["blkid", "-p", "-o", "export", str(raw)], capture_output=True, text=True, check=True)
        assert f"TYPE={kind}" in found.stdout and f"LABEL={label}" in found.stdout


def test_guest_whose_qemu_dies_is_told_and_shown_as_crashed(rig, order):
    reported = []
    rig.driver.on_power_change(reported.append)
    build(rig, order)
    pids = subprocess.run(["pgrep", "-f", order.server_uuid], capture_output=True, text=True, check=True).stdout.split()
    for pid in pids:
        os.kill(int(pid), 9)
    assert eventually(lambda: PowerState.CRASHED in [state.power_state for state in reported], 10)
    assert rig.driver.lifecycle.power_state(order.server_uuid) == PowerState.CRASHED
    assert rig.driver.lifecycle.start(order.server_uuid) == PowerState.RUNNING


def test_libvirtd_that_restarts_is_found_again_and_missed_events_are_told(rig, order):
    reported = []
    build(rig, order)
    rig.driver.on_power_change(reported.append)
    (pid,) = subprocess.run(["pgrep", "-x", "libvirtd"], capture_output=True, text=True, check=True).stdout.split()
    os.kill(int(pid), 15)
    assert eventually(lambda: not Path(f"/proc/{pid}/exe").exists(), 20)
    guest = subprocess.run(["pgrep", "-f", f"uuid {order.server_uuid}"], capture_output=True, text=True, check=True)
    os.kill(int(guest.stdout.split()[0]), 9)  # while nobody looks
    with open("/run/libvirtd-2.log", "w") as log:
        subprocess.Popen(["libvirtd"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    assert eventually(lambda: any(state.server_uuid == order.server_uuid
                                  and state.power_state in (PowerState.SHUTDOWN, PowerState.CRASHED)
                                  for state in reported), 20), reported
    assert rig.driver.lifecycle.start(order.server_uuid) == PowerState.RUNNING
    count = len(reported)
    rig.driver.lifecycle.shut_down(order.server_uuid, 0)
    assert eventually(lambda: len(reported) > count, 5)


def test_directory_without_a_domain_is_reported_as_having_no_state(rig, order):
    rig.driver.disks.create_disks(order, rig.images)
    (found,) = [guest for guest in rig.driver.guests() if guest.server_uuid == order.server_uuid]
    assert (found.power_state, found.epoch) == (PowerState.NOSTATE, 3)


def test_foreign_domain_is_not_ours(rig):
    foreign = "<domain type='qemu'><name>foreign</name><memory>65536</memory><os><type>hvm</type></os></domain>"
    before = rig.driver.guests()
    path = Path("/run/foreign.xml")
    path.write_text(foreign)
    subprocess.run(["virsh", "define", str(path)], check=True, capture_output=True)
    try:
        assert rig.driver.guests() == before
    finally:
        subprocess.run(["virsh", "undefine", "foreign"], check=True, capture_output=True)


@pytest.mark.parametrize("properties", [
    {"hw_machine_type": "q35", "hw_disk_bus": "sata", "hw_vif_model": "e1000e", "hw_video_model": "vga"},
    {"hw_disk_bus": "scsi", "hw_scsi_model": "virtio-scsi", "hw_cdrom_bus": "scsi", "hw_rng_model": "virtio"},
    {"hw_disk_bus": "ide", "hw_vif_model": "rtl8139", "hw_watchdog_action": "reset", "hw_video_model": "cirrus"},
    {"hw_disk_bus": "usb", "hw_usb_model": "qemu-xhci", "hw_qemu_guest_agent": "yes", "hw_boot_menu": "true"},
    {"hw_serial_port_count": "2", "hw_time_hpet": "yes", "hw_input_bus": "virtio", "hw_sound_model": "ich6"},
    {"hw_cpu_threads": "2", "hw_cpu_cores": "1", "os_type": "windows", "hw_vif_multiqueue_enabled": "yes"},
], ids=lambda properties: "-".join(properties.values()))
def test_guest_with_image_properties_starts(rig, properties):
    order = make_order(rig.bridge, image=Image(id=IMAGE_ID, disk_format="raw", properties=properties),
                       disks=(Disk(kind="root", size_gb=1), Disk(kind="swap", size_mb=8)))
    order = msgspec.structs.replace(order, flavor=msgspec.structs.replace(order.flavor, vcpus=2))
    try:
        assert build(rig, order) == PowerState.RUNNING
    finally:
        unbuild(rig, order)
    assert rig.left_over(order) == []


def test_raw_disks_are_copies_without_a_backing_file(rig):
    state = Path("/run/nova-raw")
    state.mkdir()
    driver = LibvirtDriver(LibvirtSettings(instances_path=state / "instances", state_path=state, virt_type="qemu",
                                           cow=False,
                                           config_drive_format="vfat", preallocate=True))
    driver.connect()
    order = make_order(rig.bridge, disks=(Disk(kind="root", size_gb=1), Disk(kind="swap", size_mb=8)))
    try:
        driver.disks.create_disks(order, rig.images)
        driver.interfaces.plug(order)
        driver.disks.write_config_drive(order, {"openstack/latest/meta_data.json": b"{}"})
        assert driver.lifecycle.start_new(order) == PowerState.RUNNING
        root = state / "instances" / order.server_uuid / "disk"
        assert root.stat().st_size == 1 << 30 and root.stat().st_blocks * 512 >= 1 << 30
        assert "backingStore type" not in xml_of(order)
    finally:
        driver.lifecycle.destroy(order.server_uuid)
        driver.interfaces.unplug(order.server_uuid, None)
        driver.disks.remove_disks(order.server_uuid)
        driver.close()


# --- with a guest that boots

GUEST = Path(os.environ.get("NOVA_TEST_GUEST", "/root/.cache/nova/tiny.qcow2"))
booting = pytest.mark.skipif(not GUEST.exists(), reason=f"no guest image at {GUEST} (bin/build-guest makes it)")


@contextlib.contextmanager
def booted(rig, sources: dict[str, Path], **changes) -> Iterator[BuildOrder]:
    """A guest of the images ``sources`` (id -> file), started."""
    for name, source in sources.items():
        rig.images.add(name, source)
    order = make_order(rig.bridge, disks=(Disk(kind="root", size_gb=1),), **changes)
    order = msgspec.structs.replace(order, flavor=msgspec.structs.replace(order.flavor, memory_mb=128))
    try:
        build(rig, order)
        yield order
    finally:
        unbuild(rig, order)


def said(rig, order: BuildOrder, text: str) -> bool:
    return text in rig.driver.consoles.console_output(order.server_uuid, None)


@booting
def test_guest_boots_shows_its_console_and_answers_the_power_button(rig):
    image = Image(id="guest", disk_format="qcow2", container_format="bare")
    with booted(rig, {"guest": GUEST}, image=image) as order:
        assert eventually(lambda: said(rig, order, "login:"), 90), \
            rig.driver.consoles.console_output(order.server_uuid, None)
        assert rig.driver.consoles.console_output(order.server_uuid, 1).count("\n") <= 1
        assert rig.driver.lifecycle.reboot(order.server_uuid, 60) is True
        assert rig.driver.lifecycle.power_state(order.server_uuid) == PowerState.RUNNING
        assert eventually(lambda: said(rig, order, "login:"), 90)
        begin = time.monotonic()
        assert rig.driver.lifecycle.shut_down(order.server_uuid, 60) == PowerState.SHUTDOWN
        assert time.monotonic() - begin < 55  # it went down by itself


PARTS = {"kernel": GUEST.with_name("tiny-vmlinuz"), "ramdisk": GUEST.with_name("tiny-initrd"),
         "root": GUEST.with_name("tiny-root.qcow2")}


@pytest.mark.long  # test_devices.py and test_user_path.py boot such guests, too
@pytest.mark.skipif(not all(part.exists() for part in PARTS.values()), reason="bin/build-guest has not made the parts")
def test_guest_with_a_kernel_and_a_ramdisk_of_its_own_boots(rig):
    images = {"image": Image(id="root", disk_format="qcow2"), "kernel": Image(id="kernel", disk_format="aki"),
              "ramdisk": Image(id="ramdisk", disk_format="ari")}
    with booted(rig, PARTS, **images) as order:
        assert eventually(lambda: said(rig, order, "login:"), 90), \
            rig.driver.consoles.console_output(order.server_uuid, None)
        assert "console=tty0 console=ttyS0" in xml_of(order)
