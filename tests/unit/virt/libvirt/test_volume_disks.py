"""Volumes of libvirt's guests: as libvirt is told of them, plugged in and out, and taken along by moves."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
import xml.etree.ElementTree as ET
from pathlib import Path

import msgspec
import pytest

from nova import errors
from nova.model.guest.orders import LiveOrder, RescueOrder
from nova.model.server.states import PowerState
from nova.model.volumes import BlockDevice, VolumeConnection, VolumeCounts, VolumeDisk
from nova.virt.libvirt.disks.records import DiskRecord, VolumeRecord
from nova.virt.libvirt.guest.definition import guest_spec
from nova.virt.libvirt.xml import disks as disk_xml
from nova.virt.libvirt.xml.arrival import ArrivalPaths, arrival_xml, copied_disks, has_direct_volumes
from nova.virt.libvirt.xml.domain import domain_xml
from tests.contract.driver_conformance import build, make_order, unbuild
from tests.contract.driver_move_cases import move_order
from tests.contract.driver_volume_cases import attach, detach, of_file, silent, snapshot_order, volume_order
from tests.fakes.clocks import QuickClock
from tests.unit.virt.libvirt.orders import DISKS, FOLDER, able, image, order, settings
from tests.unit.virt.libvirt.test_libvirt_driver import Rig
from tests.unit.virt.libvirt.test_libvirt_moves import MoveRig, two

pytestmark = pytest.mark.one_in(2)  # one of two runs has each

GOLDEN = Path(__file__).parent / "golden"
SECRET = "457eb676-33da-42ec-9a8c-9293d545c337"
ROOT, DATA = "11111111-8a3f-4f0e-9f0c-2b7d0f8f3a01", "22222222-8a3f-4f0e-9f0c-2b7d0f8f3a02"

RBD = VolumeRecord(volume_id=DATA, kind="rbd", store="rbd", path=f"volumes/volume-{DATA}", user="cinder", secret=SECRET,
                   hosts=(("10.0.0.1", "6789"), ("fd00::2", "6789")), discard=True)
NFS = VolumeRecord(volume_id=DATA, kind="nfs", path=f"/var/lib/nova/mnt/9f3a/volume-{DATA}",
                   throttle=(("total_bytes_sec", 2097152),), readonly=True, blocks=(512, 4096))
BLOCK = VolumeRecord(volume_id=DATA, kind="local", store="block", path="/dev/disk/by-id/one")
FILE_ROOT = msgspec.structs.replace(NFS, volume_id=ROOT, path="/mnt/root", format="raw", throttle=(), readonly=False,
                                    blocks=(None, None))


def device(volume_id: str = DATA, **changes) -> BlockDevice:
    return BlockDevice(volume_id=volume_id, **changes)


def xml_of(*pairs: tuple[BlockDevice, VolumeRecord], disks=DISKS, settings_=None, **changes) -> str:
    made = order(volumes=tuple(VolumeDisk(device=one) for one, _ in pairs), **changes)
    return domain_xml(guest_spec(made, disks, FOLDER, able(), settings_ or settings(),
                                 tuple(record for _, record in pairs)))


def disk_of(volume_id: str, *args, **kwargs) -> ET.Element:
    found = disk_xml.find(xml_of(*args, **kwargs), volume_id)
    assert found is not None
    return found


GOLDENS = {
    "volume-rbd.xml": lambda: xml_of((device(), RBD), disks=DISKS[:1]),
    "volume-nfs-limits.xml": lambda: xml_of((device(), NFS), disks=DISKS[:1]),
    "volume-shared-scsi.xml": lambda: xml_of((device(multiattach=True, bus="scsi"), RBD), disks=DISKS[:1],
                                             settings_=settings(network_cache_mode="writeback")),
    "volume-luks.xml": lambda: xml_of((device(), msgspec.structs.replace(RBD, encrypted=True)),
                                      (device(ROOT), msgspec.structs.replace(FILE_ROOT, encrypted=True)),
                                      disks=DISKS[:1]),
    "volume-root.xml": lambda: xml_of((device(ROOT, boot_index=0), FILE_ROOT), (device(boot_index=1), BLOCK),
                                      disks=DISKS[1:]),
}


@pytest.mark.parametrize("name", GOLDENS)
def test_guest_with_volumes_becomes_the_golden_xml(name):
    made = GOLDENS[name]()
    if os.environ.get("NOVA_WRITE_GOLDEN"):
        (GOLDEN / name).write_text(made)
    assert made == (GOLDEN / name).read_text()


@pytest.mark.parametrize(("record", "changes", "cache", "io"), [
    (NFS, {}, "none", "native"), (BLOCK, {}, "none", "native"), (RBD, {}, "none", None),
    (NFS, {"cache_mode": "writeback"}, "writeback", None), (BLOCK, {"block_cache_mode": "directsync"}, "directsync",
                                                            "native"),
    (RBD, {"network_cache_mode": "writeback"}, "writeback", None), (NFS, {"default_volume_io": True}, "none", None)])
def test_volume_when_operators_choose_cache_modes_then_it_has_its_kinds(record, changes, cache, io):
    driver = disk_of(DATA, (device(), record), settings_=settings(**changes)).find("driver")
    assert (driver.get("cache"), driver.get("io")) == (cache, io)


@pytest.mark.parametrize(("changes", "properties", "bus", "name"), [
    ({}, {}, "virtio", "vdd"), ({"bus": "sata"}, {}, "sata", "sda"), ({}, {"hw_disk_bus": "scsi"}, "scsi", "sdd"),
    ({"device_type": "cdrom"}, {}, "ide", "hdb"), ({"device_name": "/dev/vdk"}, {}, "virtio", "vdk"),
    ({"device_name": "/dev/vda"}, {}, "virtio", "vdd"), ({"device_name": "/dev/sdb"}, {}, "virtio", "vdd")])
def test_volume_when_its_bus_and_name_are_chosen_then_they_are_free_and_as_asked_where_they_can_be(
        changes, properties, bus, name):
    target = disk_of(DATA, (device(**changes), RBD), image=image(**properties)).find("target")
    assert (target.get("bus"), target.get("dev")) == (bus, name)


def test_volume_in_qcow2_when_it_is_defined_then_libvirt_looks_for_what_lies_under_it():
    """Cinder's snapshots of such volumes are files under them."""
    disk = disk_of(DATA, (device(), msgspec.structs.replace(NFS, format="qcow2")))
    assert disk.find("driver").get("type") == "qcow2" and disk.find("backingStore") is None


@pytest.mark.parametrize("changes", [{"device_type": "lun"}, {"bus": "xen"}])
def test_volume_when_it_cannot_be_such_a_device_then_the_host_refuses_it(changes):
    with pytest.raises(errors.host.VolumeData):
        xml_of((device(**changes), RBD))


def test_volumes_when_one_has_a_name_then_the_others_leave_it_to_it():
    named = msgspec.structs.replace(BLOCK, volume_id=ROOT, target="vdd")
    text = xml_of((device(), RBD), (device(ROOT), named))
    assert disk_xml.volume_targets(text) == {DATA: "vde", ROOT: "vdd"}


def test_rescued_guest_when_its_root_is_a_volume_then_that_keeps_its_place_and_the_rescue_disk_is_booted_from():
    rescue = DiskRecord(kind="rescue", name="disk.rescue", format="raw", size_bytes=1 << 20)
    tree = ET.fromstring(xml_of((device(ROOT, boot_index=0), FILE_ROOT), disks=(rescue,)))
    names = {one.find("target").get("dev"): one.find("boot") is not None for one in tree.iterfind("devices/disk")}
    assert names == {"vda": False, "vdb": True} and disk_xml.volume_targets(ET.tostring(tree).decode()) == {ROOT: "vda"}


# --- while guests run

@pytest.fixture
def quick(tmp_path, links):
    """A rig whose guests have little time to give up a device."""
    made = Rig(tmp_path, links, clock=QuickClock(), detach_attempts=3, detach_timeout_s=20)
    made.driver.connect()
    yield made
    made.driver.close()


@pytest.fixture
def guest(quick):
    made = make_order(quick.bridge)
    build(quick, made)
    yield made
    quick.driver.volumes.disconnect(made.server_uuid)
    unbuild(quick, made)


@pytest.fixture
def one(tmp_path):
    return of_file(tmp_path / "volume", size_gb=2)


def has(rig, guest, one) -> tuple[bool, bool, bool]:
    """Whether the guest has it as it runs, and as it starts next, and whether the host has it connected."""
    found = rig.hypervisor.definitions_of(guest.server_uuid)
    records = rig.driver.tools.folders.of(guest.server_uuid).volumes()
    return (*(disk_xml.find(text, one.device.volume_id) is not None for text in found),
            one.device.volume_id in [record.volume_id for record in records])


ALL, NONE = (True, True, True), (False, False, False)


def test_detach_when_the_guest_does_not_hear_at_first_then_it_is_asked_again(quick, guest, one):
    attach(quick.driver, guest, one)
    quick.hypervisor.why_not_receiving = 2
    detach(quick.driver, guest, one)
    assert quick.hypervisor.asked_for == 3 and has(quick, guest, one) == NONE


def test_detach_when_the_guest_never_gives_it_up_then_it_keeps_all_of_it_until_a_later_detach(quick, guest, one):
    attach(quick.driver, guest, one)
    quick.hypervisor.why_not_receiving = 99
    with pytest.raises(errors.guest.KeepsVolume, match=f"{one.device.volume_id} within 60 s"):
        detach(quick.driver, guest, one)
    assert has(quick, guest, one) == ALL
    quick.hypervisor.why_not_receiving = 0
    detach(quick.driver, guest, one)
    assert has(quick, guest, one) == NONE


def test_detach_when_the_guest_gave_it_up_late_then_the_next_does_the_rest_without_asking(quick, guest, one):
    attach(quick.driver, guest, one)
    quick.hypervisor.why_not_receiving = 99
    with pytest.raises(errors.Conflict):
        detach(quick.driver, guest, one)
    quick.hypervisor.why_not_receiving, asked = 0, quick.hypervisor.asked_for
    running = quick.hypervisor.definitions_of(guest.server_uuid).running
    late = ET.tostring(disk_xml.find(running, one.device.volume_id), encoding="unicode")
    quick.hypervisor.detach_device(guest.server_uuid, late, True)
    assert has(quick, guest, one) == (False, True, True)
    detach(quick.driver, guest, one)
    assert has(quick, guest, one) == NONE and quick.hypervisor.asked_for == asked + 1


def test_volume_when_its_guest_gave_it_up_late_then_the_host_sees_that_while_the_guest_runs(quick, guest, one):
    uuid = guest.server_uuid
    attach(quick.driver, guest, one)
    assert quick.driver.volumes.given_up(uuid) == frozenset() == quick.driver.volumes.given_up(one.device.volume_id)
    running = quick.hypervisor.definitions_of(uuid).running
    late = ET.tostring(disk_xml.find(running, one.device.volume_id), encoding="unicode")
    quick.hypervisor.detach_device(uuid, late, True)
    assert quick.driver.volumes.given_up(uuid) == {one.device.volume_id}
    quick.driver.lifecycle.shut_down(uuid, 0)
    assert quick.driver.volumes.given_up(uuid) == frozenset()


def test_detach_when_a_newer_order_comes_then_it_is_given_up(quick, guest, one):
    attach(quick.driver, guest, one)
    quick.hypervisor.why_not_receiving = 99
    with pytest.raises(errors.guest.KeepsVolumeStopped):
        quick.driver.volumes.detach_volume(volume_order(guest, one, False), lambda: True)
    assert has(quick, guest, one) == ALL


def test_attach_when_the_hypervisor_refuses_then_nothing_of_it_is_left_and_it_can_be_tried_again(quick, guest, one):
    quick.hypervisor.plug_fails = "no more PCI slots"
    with pytest.raises(errors.HostRefused, match="no more PCI slots"):
        attach(quick.driver, guest, one)
    assert has(quick, guest, one) == NONE
    attach(quick.driver, guest, one)
    assert has(quick, guest, one) == ALL


def test_attach_when_half_of_it_was_done_then_its_repetition_does_the_rest_by_the_same_name(quick, guest, one):
    attach(quick.driver, guest, one)
    running, kept = quick.hypervisor.definitions_of(guest.server_uuid)
    before = disk_xml.volume_targets(kept)
    quick.hypervisor.detach_device(guest.server_uuid, ET.tostring(disk_xml.find(running, one.device.volume_id),
                                                                  encoding="unicode"), True)
    attach(quick.driver, guest, one)
    running, kept = quick.hypervisor.definitions_of(guest.server_uuid)
    assert disk_xml.volume_targets(running) == disk_xml.volume_targets(kept) == before


def test_names_when_volumes_come_and_go_then_each_keeps_its_own_over_a_hard_reboot(quick, guest, one, tmp_path):
    other = of_file(tmp_path / "other")
    attach(quick.driver, guest, one)
    attach(quick.driver, msgspec.structs.replace(guest, volumes=(one,)), other)
    names = disk_xml.volume_targets(quick.hypervisor.definitions_of(guest.server_uuid).kept)
    assert names == {one.device.volume_id: "vdd", other.device.volume_id: "vde"}
    detach(quick.driver, msgspec.structs.replace(guest, volumes=(one, other)), one)
    quick.driver.lifecycle.destroy(guest.server_uuid)
    quick.driver.lifecycle.start_new(silent(msgspec.structs.replace(guest, volumes=(other,))))
    names = disk_xml.volume_targets(quick.hypervisor.definitions_of(guest.server_uuid).kept)
    assert names == {other.device.volume_id: "vde"}


@pytest.mark.parametrize("runs", [True, False])
def test_extend_when_the_volume_has_grown_then_a_running_guest_is_told(quick, guest, one, runs):
    attach(quick.driver, guest, one)
    if not runs:
        quick.driver.lifecycle.shut_down(guest.server_uuid, 0)
    quick.driver.volumes.extend_volume(volume_order(guest, one, True))
    assert quick.hypervisor.disk_sizes == ({(guest.server_uuid, "vdd"): 2 << 30} if runs else {})


def test_counts_when_the_guest_runs_then_they_are_its_volumes_by_their_ids(quick, guest, one, monkeypatch):
    attach(quick.driver, guest, one)
    text = quick.hypervisor.definitions_of(guest.server_uuid).running
    name, uuid = disk_xml.volume_targets(text)[one.device.volume_id], guest.server_uuid
    stats = {"block.count": 2, "block.0.name": "vda", "block.0.rd.reqs": 9, "block.1.name": name,
             "block.1.rd.reqs": 3, "block.1.rd.bytes": 1536, "block.1.wr.reqs": 2, "block.1.wr.bytes": 1024}
    monkeypatch.setattr(quick.hypervisor, "stats", lambda _: stats)
    assert quick.driver.volumes.volume_counts(uuid) == (VolumeCounts(
        server_uuid=uuid, volume_id=one.device.volume_id, reads=3, read_bytes=1536, writes=2, write_bytes=1024),)
    quick.driver.lifecycle.shut_down(uuid, 0)
    assert quick.driver.volumes.volume_counts(uuid) == ()


def test_rescue_when_the_root_is_a_volume_then_the_guest_needs_no_disk_of_the_hosts(quick, one):
    root = msgspec.structs.replace(one, device=msgspec.structs.replace(one.device, boot_index=0))
    made = make_order(quick.bridge, disks=(), volumes=(root,), config_drive=False)
    flavor = msgspec.structs.replace(made.flavor, ephemeral_gb=0, swap_mb=0)
    made = msgspec.structs.replace(made, flavor=flavor)
    quick.driver.disks.create_disks(made, quick.images)
    quick.driver.volumes.connect(made.server_uuid, made.volumes)
    quick.driver.lifecycle.start_new(made)
    rescue = RescueOrder(server_uuid=made.server_uuid, instance_name=made.instance_name, fence=made.fence,
                         image=made.image, build=made)
    quick.driver.lifecycle.shut_down(made.server_uuid, 0)
    assert quick.driver.rescuing.rescue(rescue, quick.images, None) == PowerState.RUNNING
    assert quick.driver.rescuing.unrescue(made) == PowerState.RUNNING
    quick.driver.volumes.disconnect(made.server_uuid)
    unbuild(quick, made)
    assert quick.left_over(made) == []


def test_secret_of_a_connection_when_the_guest_is_made_then_no_file_of_the_host_and_no_definition_has_it(
        quick, tmp_path, caplog):
    caplog.set_level("DEBUG")
    quick.hypervisor.secrets[SECRET] = b"key"
    data = {"name": "volumes/v", "hosts": ["10.0.0.1"], "ports": ["6789"], "auth_enabled": True, "keyring": "S3CRETKEY",
            "auth_username": "cinder", "secret_uuid": SECRET, "auth_password": "S3CRETKEY"}
    one = VolumeDisk(device=BlockDevice(volume_id=str(uuid.uuid4())),
                     connection=VolumeConnection(kind="rbd", data=data))
    made = make_order(quick.bridge, volumes=(one,))
    quick.driver.volumes.connect(made.server_uuid, made.volumes)
    build(quick, made)
    attach(quick.driver, made, msgspec.structs.replace(one, device=device(str(uuid.uuid4()))))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name == "volumes.json" for path in files)
    assert not [path for path in files if b"S3CRETKEY" in path.read_bytes()]
    assert "S3CRETKEY" not in caplog.text + repr(made) + quick.hypervisor.xml[made.server_uuid]
    quick.driver.volumes.disconnect(made.server_uuid)
    unbuild(quick, made)


# --- moves

def test_arrival_when_the_destination_reaches_a_volume_otherwise_then_the_disk_is_the_same_and_not_copied():
    text = xml_of((device(), RBD), disks=DISKS[:1])
    there = replace_hosts(text)
    arrived = arrival_xml(text, str(FOLDER), ArrivalPaths(folder=str(FOLDER), volumes=there))
    disk = disk_xml.find(arrived, DATA)
    assert [one.get("name") for one in disk.iterfind("source/host")] == ["10.9.9.9"]
    assert disk.find("auth/secret").get("uuid") == SECRET and disk_xml.target_of(disk) == "vdb"
    assert len(disk.findall("source")) == len(disk.findall("auth")) == 1
    assert copied_disks(text) == ("vda",)


@pytest.mark.parametrize(("records", "changes", "direct"), [
    ((), {}, False), ((RBD,), {}, False), ((NFS,), {}, True), ((NFS, RBD), {}, True),
    ((NFS,), {"cache_mode": "writeback"}, False)])
def test_files_of_volumes_when_their_host_caches_nothing_then_alone_they_are_safe_to_move(records, changes, direct):
    """Else libvirt must know the file system as a shared one."""
    found = [(device(ROOT if number else DATA), msgspec.structs.replace(one, volume_id=ROOT if number else DATA))
             for number, one in enumerate(records)]
    assert has_direct_volumes(xml_of(*found, disks=DISKS[:1], settings_=settings(**changes))) is direct


def replace_hosts(text: str) -> dict[str, str]:
    changed = xml_of((device(), msgspec.structs.replace(RBD, hosts=(("10.9.9.9", "3300"),))), disks=DISKS[:1])
    assert set(disk_xml.remote_sources(changed)) == set(disk_xml.remote_sources(text)) == {DATA}
    return disk_xml.remote_sources(changed)


def test_arrival_when_the_destination_does_not_tell_of_a_volume_then_nothing_is_sent():
    with pytest.raises(errors.move.BadDestination, match=DATA):
        arrival_xml(xml_of((device(), RBD)), str(FOLDER), ArrivalPaths(folder=str(FOLDER)))


def here_and_there(one: VolumeDisk, tmp_path: Path) -> tuple[VolumeDisk, VolumeDisk]:
    """The same volume, which the second host reaches by another name."""
    path = tmp_path / "as-the-other-host-sees-it"
    path.symlink_to(one.connection.data["device_path"])
    return one, msgspec.structs.replace(one, connection=VolumeConnection(kind="local", data={"device_path": str(path)}))


@pytest.mark.parametrize("shared", [False, True])
def test_live_migration_when_a_volume_was_plugged_in_then_it_goes_by_its_name_and_is_reached_as_there(
        tmp_path, links, shared):
    folder = tmp_path / "shared" if shared else None
    rig = two(MoveRig(tmp_path / "a", links, folder), MoveRig(tmp_path / "b", links, folder))
    gone, (here, there) = of_file(tmp_path / "gone"), here_and_there(of_file(tmp_path / "stays"), tmp_path)
    made = make_order(rig.bridge)
    uuid, other = made.server_uuid, rig.other.driver
    try:
        build(rig, made)
        attach(rig.driver, made, gone)  # so that the one that stays has not the first free name
        attach(rig.driver, msgspec.structs.replace(made, volumes=(gone,)), here)
        detach(rig.driver, msgspec.structs.replace(made, volumes=(gone, here)), gone)
        source = rig.driver.live_moves.describe(uuid)
        move = move_order(msgspec.structs.replace(made, volumes=(there,)), source)
        arrival = other.live_moves.prepare_arrival(move, rig.other.images)
        live = LiveOrder(server_uuid=uuid, instance_name=made.instance_name, arrival=arrival, fence=made.fence)
        rig.driver.live_moves.migrate(live, lambda percent, amounts: None, lambda: False)
        assert "vde" not in rig.hypervisor.departures[0].disks
        rig.driver.volumes.disconnect(uuid)
        assert other.live_moves.finish_arrival(move) == PowerState.RUNNING
        for text in rig.other.hypervisor.definitions_of(uuid):
            disk = disk_xml.find(text, there.device.volume_id)
            assert disk_xml.target_of(disk) == "vde"
            assert disk.find("source").get("file") == there.connection.data["device_path"]
        assert [one.path for one in other.tools.folders.of(uuid).volumes()] == [there.connection.data["device_path"]]
    finally:
        for host in (rig.other, rig):
            host.driver.volumes.disconnect(uuid)
            unbuild(host, made)
            host.close()


def test_live_migration_when_a_volume_has_snapshots_then_the_destination_says_what_lies_under_it(tmp_path, links):
    rig = two(MoveRig(tmp_path / "a", links), MoveRig(tmp_path / "b", links))
    made, one = make_order(rig.bridge), of_file(tmp_path / "base")
    for name, below, kind in (("s1", "base", "raw"), ("s2", "s1", "qcow2")):
        subprocess.run(["qemu-img", "create", "-q", "-u", "-f", "qcow2", "-b", below, "-F", kind, str(tmp_path / name),
                        "1M"], check=True)
    there = msgspec.structs.replace(one, connection=VolumeConnection(kind="local", data={
        "device_path": str(tmp_path / "s2")}))
    try:
        build(rig, made)
        attach(rig.driver, made, one)
        for name in ("s1", "s2"):
            rig.driver.volumes.snapshot_volume(snapshot_order(made, one, new_file=name))
        source = rig.driver.live_moves.describe(made.server_uuid)
        rig.other.driver.volumes.connect(made.server_uuid, (there,))
        folder = rig.other.driver.tools.folders.of(made.server_uuid)
        folder.keep_volumes(tuple(msgspec.structs.replace(it, format="qcow2") for it in folder.volumes()))
        move = move_order(silent(msgspec.structs.replace(made, volumes=(there,))), source)
        arrival = rig.other.driver.live_moves.prepare_arrival(move, rig.other.images)
        text = json.loads(arrival.facts["volumes"])[one.device.volume_id]
        disk, found = ET.fromstring(text), []
        while (below := disk.find("backingStore")) is not None and len(below):
            found.append((Path(below.find("source").get("file")).name, below.find("format").get("type")))
            disk = below
        assert found == [("s1", "qcow2"), ("base", "raw")] and below is not None  # its end is said, too
        (tmp_path / "s1").unlink()
        with pytest.raises(errors.guest.DiskUnsafe, match="cannot be read"):
            rig.other.driver.live_moves.prepare_arrival(move, rig.other.images)
    finally:
        rig.other.driver.volumes.disconnect(made.server_uuid)
        rig.driver.lifecycle.destroy(made.server_uuid)
        rig.driver.volumes.disconnect(made.server_uuid)
        unbuild(rig, made)
        for host in (rig.other, rig):
            host.close()


def test_arrival_when_its_volume_cannot_be_reached_there_then_nothing_of_it_is_left(tmp_path, links, one):
    rig = two(MoveRig(tmp_path / "a", links), MoveRig(tmp_path / "b", links))
    made = make_order(rig.bridge, volumes=(one,))
    try:
        rig.driver.volumes.connect(made.server_uuid, made.volumes)
        build(rig, made)
        missing = msgspec.structs.replace(one, connection=VolumeConnection(kind="local", data={"device_path": "/none"}))
        move = move_order(msgspec.structs.replace(made, volumes=(missing,)),
                          rig.driver.live_moves.describe(made.server_uuid))
        with pytest.raises(errors.HostRefused, match="/none"):
            rig.other.driver.live_moves.prepare_arrival(move, rig.other.images)
        assert rig.other.left_over(made) == []
    finally:
        rig.driver.volumes.disconnect(made.server_uuid)
        unbuild(rig, made)
        for host in (rig.other, rig):
            host.close()
