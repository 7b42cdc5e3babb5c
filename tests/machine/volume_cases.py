"""Run by ``test_volumes_libvirt.py`` inside a room: volumes on an export of NFS (a folder that is mounted where the
export would be) that a guest's system sees come, grow and go, and one that it boots from."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import uuid
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nova import concurrency, errors
from nova.migrationproxy import references
from nova.model.guest.orders import BuildOrder, Disk
from nova.model.image.images import Image
from nova.model.server.states import PowerState
from nova.model.volumes import LUKS, BlockDevice, VolumeConnection, VolumeDisk
from nova.privileged.mounts import Mounts
from nova.privileged.runner import SystemRunner
from nova.virt.libvirt import LibvirtDriver
from nova.virt.libvirt.disks import volume_files
from nova.virt.libvirt.disks.tpm import secret_xml
from tests.contract.driver_conformance import eventually, make_order
from tests.contract.driver_volume_cases import attach, detach, silent, snapshot_order, volume_order
from tests.machine.libvirt_cases import BRIDGE, GUEST, LibvirtRig, booting
from tests.machine.serial_line import Serial

concurrency.patch("threads")

STATE = Path("/run/nova")
EXPORT = "127.0.0.1:/volumes"
SHARE = STATE / "share"
MOUNT = STATE / "mnt" / hashlib.md5(EXPORT.encode()).hexdigest()
SERIALS = "cat /sys/block/vd*/serial; true"
MIB, SECTORS_OF_GIB = 1 << 20, 1 << 21
CEPH_SECRET = "457eb676-33da-42ec-9a8c-9293d545c337"
PASSPHRASE = "0badc0de" * 8


@pytest.fixture(scope="session")
def rig():
    STATE.mkdir()
    for folder in (SHARE, MOUNT):
        folder.mkdir(parents=True)
    subprocess.run(["mount", "--bind", str(SHARE), str(MOUNT)], check=True)
    made = LibvirtRig(STATE)
    made.driver.connect()
    if GUEST.exists():
        made.images.add("tiny", GUEST)
    yield made
    made.driver.close()


def on_nfs(**device: Any) -> VolumeDisk:
    """A new volume of 64 MiB on the export."""
    volume_id = str(uuid.uuid4())
    path = SHARE / f"volume-{volume_id}"
    with path.open("wb") as target:
        target.truncate(64 * MIB)
    path.chmod(0o666)
    data = {"export": EXPORT, "name": path.name, "format": "raw", "options": None, "access_mode": "rw"}
    return VolumeDisk(device=BlockDevice(volume_id=volume_id, **device),
                      connection=VolumeConnection(kind="nfs", data=data))


def encrypted(one: VolumeDisk) -> VolumeDisk:
    """The same, formatted as Cinder does it."""
    path = SHARE / f"volume-{one.device.volume_id}"
    subprocess.run(["qemu-img", "create", "-q", "-f", "luks", "--object", f"secret,id=key,data={PASSPHRASE}", "-o",
                    "key-secret=key,iter-time=10", str(path), "64M"], check=True)
    path.chmod(0o666)
    connection = msgspec.structs.replace(one.connection, encryption=LUKS, passphrase=PASSPHRASE)
    return msgspec.structs.replace(one, connection=connection)


def tiny(**changes: Any) -> BuildOrder:
    order = make_order(BRIDGE, config_drive=False, interfaces=(), **changes)
    flavor = msgspec.structs.replace(order.flavor, memory_mb=128, ephemeral_gb=0, swap_mb=0)
    return msgspec.structs.replace(order, flavor=flavor)


def unbuild(rig: LibvirtRig, order: BuildOrder) -> None:
    rig.driver.lifecycle.destroy(order.server_uuid)
    rig.driver.volumes.disconnect(order.server_uuid)
    rig.driver.disks.remove_disks(order.server_uuid)
    assert rig.left_over(order) == []


@pytest.fixture(scope="module")
def living(rig):
    """A guest that boots once for all cases."""
    order = tiny(image=Image(id="tiny", disk_format="qcow2", container_format="bare"),
                 disks=(Disk(kind="root", size_gb=1),))
    rig.driver.disks.create_disks(order, rig.images)
    rig.driver.lifecycle.start_new(order)
    with Serial(order.server_uuid) as line:
        line.log_in()
    yield order
    unbuild(rig, order)


@pytest.fixture
def serial(living):
    with Serial(living.server_uuid) as line:
        line.log_in()
        yield line


def seen(line: Serial, one: VolumeDisk) -> bool:
    """A virtio disk shows the first 20 characters of its serial."""
    return one.device.volume_id[:20] in line.run(SERIALS)


@booting
def test_volume_plugged_in_is_seen_by_its_serial_written_to_and_gone_after_it_was_taken_out(rig, living, serial):
    one = on_nfs()
    assert attach(rig.driver, living, one) == PowerState.RUNNING
    assert eventually(lambda: seen(serial, one), 60)
    name = serial.run(f"grep -l {one.device.volume_id[:20]} /sys/block/vd*/serial | cut -d / -f 4")
    serial.run(f"echo precious | dd of=/dev/{name} conv=fsync 2>/dev/null; sync")
    assert detach(rig.driver, living, one) == PowerState.RUNNING
    assert not seen(serial, one)
    assert (SHARE / f"volume-{one.device.volume_id}").read_bytes()[:8] == b"precious"
    assert not rig.driver.tools.folders.of(living.server_uuid).volumes()


@booting
def test_volume_that_has_grown_is_seen_with_its_new_size(rig, living, serial):
    one = on_nfs()
    attach(rig.driver, living, one)
    assert eventually(lambda: seen(serial, one), 60)
    name = serial.run(f"grep -l {one.device.volume_id[:20]} /sys/block/vd*/serial | cut -d / -f 4")
    with (SHARE / f"volume-{one.device.volume_id}").open("r+b") as target:
        target.truncate(1 << 30)
    larger = msgspec.structs.replace(one, device=msgspec.structs.replace(one.device, size_gb=1))
    rig.driver.volumes.extend_volume(volume_order(living, larger, True))
    assert eventually(lambda: int(serial.run(f"cat /sys/block/{name}/size")) == SECTORS_OF_GIB, 20)
    detach(rig.driver, living, one)


@booting
def test_encrypted_volume_is_deciphered_by_qemu_alone_grows_and_leaves_no_secret(rig, living, serial):
    one, hypervisor = encrypted(on_nfs()), rig.driver.tools.hypervisor
    path, volume_id = SHARE / f"volume-{one.device.volume_id}", one.device.volume_id
    assert attach(rig.driver, living, one) == PowerState.RUNNING
    assert eventually(lambda: seen(serial, one), 60)
    name = serial.run(f"grep -l {volume_id[:20]} /sys/block/vd*/serial | cut -d / -f 4")
    size = int(serial.run(f"cat /sys/block/{name}/size"))
    serial.run(f"echo precious | dd of=/dev/{name} conv=fsync 2>/dev/null; sync")
    assert b"precious" not in path.read_bytes() and size * 512 == 64 * MIB  # as large as it was sold, behind the header
    assert hypervisor.has_secret(volume_id)
    with pytest.raises(errors.host.LibvirtRefused, match="private"):
        hypervisor.secret(volume_id)
    told = rig.driver.live_moves.definer.arriving(msgspec.structs.replace(living, volumes=(one,)), ())
    ours, theirs = ({str(part) for part in references._references(references.parsed(text)) if volume_id in str(part)}
                    for text in (told, hypervisor.migratable_xml(living.server_uuid)))
    assert ours == theirs and "passphrase" in str(ours)  # what a gate would let in
    with path.open("r+b") as target:
        target.truncate(1 << 30)
    larger = msgspec.structs.replace(one, device=msgspec.structs.replace(one.device, size_gb=1))
    rig.driver.volumes.extend_volume(volume_order(living, larger, True))
    assert eventually(lambda: int(serial.run(f"cat /sys/block/{name}/size")) > size, 20)
    assert path.stat().st_size == 1 << 30  # no byte more than the volume has
    assert serial.run(f"head -c 8 /dev/{name}") == "precious"
    detach(rig.driver, living, one)
    assert not hypervisor.has_secret(volume_id)
    wrong = msgspec.structs.replace(one, connection=msgspec.structs.replace(one.connection, passphrase="wrong"))
    with pytest.raises(errors.HostRefused):
        attach(rig.driver, living, wrong)
    assert not hypervisor.has_secret(volume_id)


@booting
def test_volume_of_a_paused_guest_is_kept_until_it_goes_on(rig, living, serial):
    one = on_nfs()
    attach(rig.driver, living, one)
    assert eventually(lambda: seen(serial, one), 60)
    tools = rig.driver.tools
    quick = LibvirtDriver(replace(tools.settings, detach_attempts=2, detach_timeout_s=1.0), tools.hypervisor)
    rig.driver.pausing.pause(living.server_uuid)
    with pytest.raises(errors.guest.KeepsVolume, match=one.device.volume_id):
        detach(quick, living, one)
    assert [record.volume_id for record in tools.folders.of(living.server_uuid).volumes()] == [one.device.volume_id]
    rig.driver.pausing.unpause(living.server_uuid)
    assert eventually(lambda: not seen(serial, one), 60)  # it heard
    assert eventually(lambda: rig.driver.volumes.given_up(living.server_uuid) == {one.device.volume_id}, 60)
    assert detach(rig.driver, living, one) == PowerState.RUNNING
    assert not tools.folders.of(living.server_uuid).volumes()


@booting
def test_volume_that_becomes_another_one_keeps_its_data_its_name_and_what_is_written_meanwhile(rig, living, serial):
    one, other = on_nfs(), on_nfs()
    old, new = (SHARE / f"volume-{each.device.volume_id}" for each in (one, other))
    attach(rig.driver, living, one)
    assert eventually(lambda: seen(serial, one), 60)
    name = serial.run(f"grep -l {one.device.volume_id[:20]} /sys/block/vd*/serial | cut -d / -f 4")
    serial.run(f"echo precious | dd of=/dev/{name} conv=fsync 2>/dev/null; sync")
    order = msgspec.structs.replace(volume_order(living, one, True), successor=other)
    small = SHARE / "too-small"
    small.write_bytes(bytes(MIB))
    bad = msgspec.structs.replace(order, successor=msgspec.structs.replace(other, connection=VolumeConnection(
        kind="nfs", data={**other.connection.data, "name": small.name})))
    volumes, folder = rig.driver.volumes, rig.driver.tools.folders.of(living.server_uuid)
    with pytest.raises(errors.HostRefused):
        volumes.swap_volume(bad, lambda: False)
    assert [record.path for record in folder.volumes()] == [str(MOUNT / old.name)]
    for _ in range(2):
        assert volumes.swap_volume(order, lambda: False) == PowerState.RUNNING
    assert new.read_bytes()[:8] == b"precious" and seen(serial, one)
    serial.run(f"echo later | dd of=/dev/{name} conv=fsync 2>/dev/null; sync")
    assert new.read_bytes()[:5] == b"later" and old.read_bytes()[:8] == b"precious"
    [record] = folder.volumes()
    assert (record.volume_id, record.path) == (one.device.volume_id, str(MOUNT / new.name))
    for text in rig.driver.tools.hypervisor.definitions_of(living.server_uuid):
        disk = ET.fromstring(text).find(f"devices/disk/alias[@name='ua-{one.device.volume_id}']/..")
        assert disk.find("source").get("file") == record.path and disk.findtext("serial") == one.device.volume_id
    with pytest.raises(errors.guest.HasSuccessor):
        volumes.unswap_volume(order)
    detach(rig.driver, living, one)
    assert not folder.volumes()


def overlay(volume: VolumeDisk, name: str, base: str, base_format: str) -> Path:
    """A new file over one of the volume's, as Cinder makes it."""
    path = SHARE / f"volume-{volume.device.volume_id}.{name}"
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-b", str(SHARE / base), "-F", base_format, str(path)],
                   check=True)
    subprocess.run(["qemu-img", "rebase", "-u", "-f", "qcow2", "-F", base_format, "-b", base, str(path)], check=True)
    path.chmod(0o666)
    return path


@booting
def test_volume_that_is_a_file_gets_files_on_top_which_are_merged_whether_the_guest_runs_or_not(rig, living, serial):
    one = on_nfs()
    driver, base = rig.driver, f"volume-{one.device.volume_id}"
    attach(driver, living, one)
    assert eventually(lambda: seen(serial, one), 60)
    name = serial.run(f"grep -l {one.device.volume_id[:20]} /sys/block/vd*/serial | cut -d / -f 4")

    def write(number: int) -> None:
        serial.run(f"echo word-{number} | dd of=/dev/{name} bs=64k seek={number} conv=fsync 2>/dev/null; sync")

    def change(**words: str | None) -> None:
        for _ in range(2):
            made = snapshot_order(living, one, **words)
            if "new_file" in words:
                driver.volumes.snapshot_volume(made)
            else:
                driver.volumes.merge_volume_snapshot(made, lambda: False)

    def files() -> list[str]:
        [record] = driver.tools.folders.of(living.server_uuid).volumes()
        return [Path(each.path).name for each in volume_files.chain(record.path, record.format)]
    write(0)
    below, kind = base, "raw"
    for number in (1, 2, 3):
        change(new_file=overlay(one, f"s{number}", below, kind).name)
        write(number)
        below, kind = f"{base}.s{number}", "qcow2"
    assert files() == [f"{base}.s3", f"{base}.s2", f"{base}.s1", base]
    change(file_to_merge=f"{base}.s2", merge_target_file=f"{base}.s1")
    assert files() == [f"{base}.s3", f"{base}.s1", base]
    change(file_to_merge=base)
    assert files() == [f"{base}.s3", base]
    for text in driver.tools.hypervisor.definitions_of(living.server_uuid):
        disk = ET.fromstring(text).find(f"devices/disk/alias[@name='ua-{one.device.volume_id}']/..")
        assert disk.find("source").get("file") == str(MOUNT / f"{base}.s3")
    driver.lifecycle.shut_down(living.server_uuid, 0)
    change(new_file=overlay(one, "s4", f"{base}.s3", "qcow2").name)
    change(file_to_merge=base)
    assert files() == [f"{base}.s4", base]
    driver.lifecycle.start(living.server_uuid)
    with Serial(living.server_uuid) as line:
        line.log_in()
        name = line.run(f"grep -l {one.device.volume_id[:20]} /sys/block/vd*/serial | cut -d / -f 4")
        words = [line.run(f"dd if=/dev/{name} bs=64k skip={number} count=1 2>/dev/null | head -c 6")
                 for number in range(4)]
    assert words == [f"word-{number}" for number in range(4)]
    change(file_to_merge=None)
    assert files() == [f"{base}.s4"]
    detach(driver, living, one)


@booting
def test_guest_that_boots_from_a_volume_runs_and_does_again_by_what_is_kept(rig):
    root, data = on_nfs(boot_index=0), on_nfs()
    path = SHARE / f"volume-{root.device.volume_id}"
    subprocess.run(["qemu-img", "convert", "-f", "qcow2", "-O", "raw", str(GUEST), str(path)], check=True)
    order = tiny(image=Image(id="made-of", disk_format="qcow2", container_format="bare"), disks=(),
                 volumes=(root, data))
    driver = rig.driver
    driver.disks.create_disks(order, rig.images)
    driver.volumes.connect(order.server_uuid, order.volumes)
    assert driver.lifecycle.start_new(order) == PowerState.RUNNING
    with Serial(order.server_uuid) as line:
        line.log_in()
        assert seen(line, root) and seen(line, data)
    driver.lifecycle.destroy(order.server_uuid)  # a hard reboot
    driver.volumes.connect(order.server_uuid, silent(order).volumes)
    assert driver.lifecycle.start_new(silent(order)) == PowerState.RUNNING
    with Serial(order.server_uuid) as line:
        line.log_in()
    unbuild(rig, order)
    assert Mounts(SystemRunner()).has(str(MOUNT))  # it was there before


def test_mount_of_a_daemon_that_is_shielded_is_seen_by_all_and_so_is_its_end(tmp_path):
    code = ("import sys; from nova.privileged.mounts import Mounts; from nova.privileged.runner import SystemRunner; "
            "mounts = Mounts(SystemRunner()); "
            "mounts.mount('none', sys.argv[1], 'tmpfs') if sys.argv[2] == 'on' else mounts.unmount(sys.argv[1]); "
            "sys.exit(mounts.has(sys.argv[1]) != (sys.argv[2] == 'on'))")
    export = tmp_path / "export"
    for argv in (("--bind", tmp_path, tmp_path), ("--make-shared", tmp_path)):  # as systemd has a host's root
        subprocess.run(["mount", *argv], check=True)
    export.mkdir()
    for word in ("on", "off"):
        shielded = ["unshare", "--mount", "--propagation", "slave", sys.executable, "-c", code, str(export), word]
        subprocess.run(shielded, check=True)
        assert Mounts(SystemRunner()).has(str(export)) == (word == "on")


def test_volume_of_a_ceph_pool_is_taken_by_libvirt_as_it_is_told_and_stays_the_same_for_a_move(rig):
    order = tiny(disks=(Disk(kind="root", size_gb=1),))
    rig.driver.disks.create_disks(order, rig.images)
    data = {"name": "volumes/volume-1", "hosts": ["192.0.2.1", "192.0.2.2"], "ports": ["6789", "6789"],
            "auth_enabled": True, "auth_username": "cinder", "secret_uuid": CEPH_SECRET, "discard": True,
            "qos_specs": {"total_bytes_sec": "2097152"}, "access_mode": "ro", "logical_block_size": "4096"}
    one = VolumeDisk(device=BlockDevice(volume_id=str(uuid.uuid4()), multiattach=True),
                     connection=VolumeConnection(kind="rbd", data=data))
    hypervisor, driver = rig.driver.tools.hypervisor, rig.driver
    driver.lifecycle.define(order)
    with pytest.raises(errors.host.CephSecret, match="virsh secret-set-value"):
        attach(driver, order, one)
    usage = secret_xml(CEPH_SECRET).replace('type="vtpm"', 'type="ceph"')
    hypervisor.keep_secret(CEPH_SECRET, usage, b"key")
    attach(driver, order, one)
    plugged = hypervisor.definitions_of(order.server_uuid).kept
    whole = msgspec.structs.replace(order, volumes=(one,))
    driver.lifecycle.destroy(order.server_uuid)
    driver.lifecycle.define(whole)
    defined = hypervisor.definitions_of(order.server_uuid).kept
    for text in (plugged, defined):
        disk = ET.fromstring(text).find(f"devices/disk/alias[@name='ua-{one.device.volume_id}']/..")
        assert disk.findtext("serial") == one.device.volume_id and disk.find("shareable") is not None
        references.check(text, text)
    told = rig.driver.live_moves.definer.arriving(whole, ())
    ours = {str(one) for one in references._references(references.parsed(told)) if "rbd" in str(one)}
    assert ours & {str(one) for one in references._references(references.parsed(defined))} == ours and ours
    unbuild(rig, order)
    hypervisor.drop_secret(CEPH_SECRET)
