"""Run by ``test_actions_on_guests.py`` inside a room: what is done to guests that really run, and what they say."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import msgspec
import pytest

from nova import concurrency, errors
from nova.model.guest.orders import BuildOrder, Disk, Fence, RescueOrder, SnapshotOrder
from nova.model.image.images import Image
from nova.model.server.states import PowerState
from nova.virt.libvirt import LibvirtDriver, LibvirtSettings
from nova.virt.libvirt.xml import running
from tests import sampling
from tests.contract.driver_conformance import IMAGE_ID, build, eventually, make_order, unbuild
from tests.machine import hashes
from tests.machine.libvirt_cases import BRIDGE, GUEST, LibvirtRig, booting
from tests.machine.serial_line import Serial

concurrency.patch("threads")

AGENT = {"hw_qemu_guest_agent": "yes"}
FENCE = Fence(operation_id=7, epoch=3)
SNAPSHOT_ID = "1d0c2b9e-6a1f-4d55-8f2b-0c7e3f1a5b66"
SAVES = Path("/var/lib/libvirt/qemu/save")
STATE = Path("/run/nova")


@pytest.fixture(scope="session")
def rig():
    STATE.mkdir()
    made = LibvirtRig(STATE)
    made.driver.connect()
    if GUEST.exists():
        tiny = made.images.add("tiny", GUEST)
        make_rescue_image(tiny, tiny.with_name("rescue"))
    yield made
    made.driver.close()


def make_rescue_image(tiny: Path, rescue: Path) -> None:
    """The same system under another name: its root has another label, so that it is told apart on any bus."""
    subprocess.run(["qemu-img", "convert", "-O", "raw", str(tiny), str(rescue)], check=True)
    data = rescue.read_bytes()
    start = int.from_bytes(data[454:458], "little") * 512  # of the root partition
    assert b"root=LABEL=nova-guest" in data
    rescue.chmod(0o644)
    rescue.write_bytes(data.replace(b"root=LABEL=nova-guest", b"root=LABEL=nova-rescu"))
    subprocess.run(["tune2fs", "-L", "nova-rescu", f"{rescue}?offset={start}"], check=True, capture_output=True)


def guest_order(image_id: str = "tiny", **changes) -> BuildOrder:
    properties = changes.pop("properties", AGENT)
    image = Image(id=image_id, disk_format="qcow2", container_format="bare", properties=properties)
    order = make_order(BRIDGE, image=image, **{"disks": (Disk(kind="root", size_gb=1),), **changes})
    return msgspec.structs.replace(order, flavor=msgspec.structs.replace(order.flavor, memory_mb=128))


def agent_connected(order: BuildOrder) -> bool:
    xml = subprocess.run(["virsh", "dumpxml", order.server_uuid], capture_output=True, text=True, check=True).stdout
    return "state='connected'" in xml


def snapshot_order(order: BuildOrder, quiesce: bool = False) -> SnapshotOrder:
    return SnapshotOrder(server_uuid=order.server_uuid, instance_name=order.instance_name, fence=FENCE,
                         image_id=SNAPSHOT_ID, quiesce=quiesce, build=order)


# --- without a system in the guest: it only has to run

@pytest.fixture
def empty(rig):
    made = make_order(BRIDGE)
    build(rig, made)
    yield made
    rig.driver.snapshots.drop_snapshot(made.server_uuid, SNAPSHOT_ID)
    unbuild(rig, made)
    assert rig.left_over(made) == []


@pytest.mark.parametrize("spoil", [lambda path: path.write_bytes(path.read_bytes()[:-100_000]),
                                   lambda path: path.write_bytes(b"nonsense" * 1000),
                                   lambda path: path.write_bytes(b""),
                                   lambda path: path.unlink()], ids=["cut", "nonsense", "empty", "gone"])
def test_guest_whose_saved_memory_is_broken_is_started(rig, empty, spoil):
    assert rig.driver.suspending.suspend(empty.server_uuid) == PowerState.SHUTDOWN
    assert rig.driver.suspending.suspend(empty.server_uuid) == PowerState.SHUTDOWN
    (saved,) = SAVES.glob("*.save")
    spoil(saved)
    assert rig.driver.suspending.resume(empty) == PowerState.RUNNING
    assert list(SAVES.glob("*.save")) == []


def test_resume_that_the_host_cannot_give_keeps_the_saved_memory(rig, empty):
    rig.driver.suspending.suspend(empty.server_uuid)
    root = rig.instances / empty.server_uuid / "disk"
    root.rename(root.with_name("elsewhere"))
    with pytest.raises(errors.HostRefused):
        rig.driver.suspending.resume(empty)
    assert list(SAVES.glob("*.save"))
    root.with_name("elsewhere").rename(root)
    assert rig.driver.suspending.resume(empty) == PowerState.RUNNING


def test_suspended_guest_that_is_destroyed_leaves_no_saved_memory(rig, empty):
    rig.driver.suspending.suspend(empty.server_uuid)
    rig.driver.lifecycle.destroy(empty.server_uuid)
    assert list(SAVES.glob("*")) == []


def test_start_anew_of_a_suspended_guest_is_one_from_scratch(rig, empty):
    rig.driver.suspending.suspend(empty.server_uuid)
    assert rig.driver.lifecycle.start_new(empty) == PowerState.RUNNING
    assert list(SAVES.glob("*.save")) == []


@pytest.fixture
def large(rig):
    """A guest with 400 MB on its disk."""
    base = rig.images.folder / "large"
    base.write_bytes(os.urandom(400 << 20))
    base.chmod(0o644)
    order = guest_order("large", properties={})
    try:
        build(rig, order)
        yield order
    finally:
        unbuild(rig, order)
        base.unlink()


def test_copy_of_which_the_caller_died_is_stopped_by_the_repeat(rig, large):
    folder, hypervisor = rig.instances / large.server_uuid, rig.driver.tools.hypervisor
    part = folder / f"snapshot.{SNAPSHOT_ID}.qcow2.part"
    copy = running.copy_xml(hypervisor.definition(large.server_uuid), "vda", str(part), "qcow2")
    for call in (lambda: rig.driver.snapshots.take_snapshot(snapshot_order(large)),
                 lambda: rig.driver.snapshots.drop_snapshot(large.server_uuid, SNAPSHOT_ID)):
        rig.driver.snapshots.drop_snapshot(large.server_uuid, SNAPSHOT_ID)
        hypervisor.begin_copy(large.server_uuid, copy)
        assert hypervisor.copy_under_way(large.server_uuid) is not None  # and nobody waits for it
        call()
        assert not part.exists() and hypervisor.copy_under_way(large.server_uuid) is None
    assert list(folder.glob("snapshot*")) == []


def test_live_snapshot_of_a_large_disk_is_whole_and_its_time_is_told(rig, large, capsys):
    """(How long it may take is the bench's to say: ``python -m tests.bench.libvirt_actions``.)"""
    converted, began = convert_seconds(rig, large, "qcow2"), time.monotonic()
    snapshot = rig.driver.snapshots.take_snapshot(snapshot_order(large))
    seconds = time.monotonic() - began
    assert 0 < snapshot.size_bytes <= 2 * snapshot.virtual_size_bytes
    rig.driver.snapshots.drop_snapshot(large.server_uuid, SNAPSHOT_ID)
    with capsys.disabled():
        print(f"\nlive snapshot: {seconds / converted:.2f} times qemu-img convert")


def test_copy_that_finds_no_space_fails_and_leaves_nothing(rig, empty):
    folder = rig.instances / empty.server_uuid
    hypervisor = rig.driver.tools.hypervisor
    bad = running.copy_xml(hypervisor.definition(empty.server_uuid), "vda", "/proc/none/here", "qcow2")
    with pytest.raises(errors.HostRefused):
        hypervisor.begin_copy(empty.server_uuid, bad)
    assert rig.driver.lifecycle.power_state(empty.server_uuid) == PowerState.RUNNING
    assert sorted(path.name for path in folder.glob("snapshot*")) == []


def test_guest_without_an_agent_has_its_password_refused_and_no_quiet_snapshot(rig, empty):
    with pytest.raises(errors.Conflict, match="hw_qemu_guest_agent"):
        rig.driver.agent.set_password(empty.server_uuid, "root", "secret")
    with pytest.raises(errors.Conflict, match="hw_qemu_guest_agent"):
        rig.driver.snapshots.take_snapshot(snapshot_order(empty, quiesce=True))


def test_agent_that_does_not_answer_is_a_conflict_in_time(rig):
    order = make_order(BRIDGE, image=Image(id=IMAGE_ID, disk_format="raw", properties=AGENT))
    try:
        build(rig, order)
        began = time.monotonic()
        with pytest.raises(errors.Conflict, match="does not answer"):
            rig.driver.agent.set_password(order.server_uuid, "root", "secret")
        with pytest.raises(errors.Conflict, match="must be frozen"):
            rig.driver.snapshots.take_snapshot(snapshot_order(order, quiesce=True))
        assert rig.driver.snapshots.take_snapshot(snapshot_order(order)).format == "qcow2"
        assert time.monotonic() - began < 30
    finally:
        unbuild(rig, order)


# --- with a system in the guest

@pytest.fixture(scope="module")
def living(rig):
    """A guest with an agent, that boots once for many cases."""
    order = guest_order()
    build(rig, order)
    try:
        with Serial(order.server_uuid) as serial:
            serial.log_in()
        assert eventually(lambda: agent_connected(order), 30), "no agent in the guest"
        yield order
    finally:
        unbuild(rig, order)
        assert rig.left_over(order) == []


@pytest.fixture
def serial(living):
    with Serial(living.server_uuid) as line:
        line.log_in()
        yield line


@booting
def test_paused_guest_stands_still_and_goes_on(rig, living, serial):
    before = serial.uptime()
    assert rig.driver.pausing.pause(living.server_uuid) == PowerState.PAUSED
    assert rig.driver.pausing.pause(living.server_uuid) == PowerState.PAUSED
    time.sleep(3)
    assert rig.driver.pausing.unpause(living.server_uuid) == PowerState.RUNNING
    assert before < serial.uptime() < before + 3


@booting
def test_suspended_guest_goes_on_with_its_memory(rig, living, serial):
    serial.run("echo kept > /run/mark")
    boot, before = serial.boot_id(), serial.uptime()
    assert rig.driver.suspending.suspend(living.server_uuid) == PowerState.SHUTDOWN
    assert rig.driver.lifecycle.power_state(living.server_uuid) == PowerState.SHUTDOWN
    assert rig.driver.suspending.resume(living) == PowerState.RUNNING
    assert rig.driver.suspending.resume(living) == PowerState.RUNNING
    with Serial(living.server_uuid) as line:
        line.log_in()
        assert line.run("cat /run/mark") == "kept"
        assert line.boot_id() == boot and before < line.uptime() < before + 60
    assert eventually(lambda: agent_connected(living), 20)
    rig.driver.agent.set_password(living.server_uuid, "root", "after the resume")


@booting
def test_password_is_set_by_the_agent(rig, living, serial):
    rig.driver.agent.set_password(living.server_uuid, "root", "pa:ss wörd'\"$x")
    kept = serial.run("sed -n 's/^root:\\([^:]*\\):.*/\\1/p' /etc/shadow")
    assert hashes.crypt("pa:ss wörd'\"$x", kept) == kept
    with pytest.raises(errors.Conflict, match="could not set the password"):
        rig.driver.agent.set_password(living.server_uuid, "nobody-here", "secret")


@booting
def test_interrupt_arrives_in_the_guest(rig, living, serial):
    rig.driver.crash_dumps.crash(living.server_uuid)
    assert eventually(lambda: "NMI" in serial.run("dmesg | grep NMI | tail -n 3; true"), 20)


@booting
@pytest.mark.parametrize("image_format", sampling.drawn(["qcow2", "raw"], 1, every=10))
def test_live_snapshot_is_whole_and_boots_with_the_mark(rig, living, serial, image_format):
    serial.run(f"rm -f /root/after; echo live-{image_format} > /root/mark; sync")
    boot = serial.boot_id()
    driver = LibvirtDriver(LibvirtSettings(instances_path=rig.instances, state_path=STATE, virt_type="qemu",
                                           snapshot_format=image_format))
    driver.connect()
    try:
        made = driver.snapshots.take_snapshot(snapshot_order(living, quiesce=True))
        assert (made.format, made.virtual_size_bytes) == (image_format, 1 << 30)
        path = Path(str(driver.snapshots.snapshot_path(living.server_uuid, SNAPSHOT_ID)))
        assert driver.snapshots.take_snapshot(snapshot_order(living)) == made  # found again
        serial.run("echo after > /root/after; sync")  # thawed
        assert serial.boot_id() == boot
        assert "backing" not in info(path)
        assert path.stat().st_blocks * 512 < 300 << 20
        check_boots(rig, path, f"live-{image_format}")
        driver.snapshots.drop_snapshot(living.server_uuid, SNAPSHOT_ID)
        assert list(path.parent.glob("snapshot*")) == []
    finally:
        driver.snapshots.drop_snapshot(living.server_uuid, SNAPSHOT_ID)
        driver.close()


def convert_seconds(rig, order: BuildOrder, image_format: str) -> float:
    target = STATE / "converted"
    began = time.monotonic()
    subprocess.run(["qemu-img", "convert", "-U", "-f", "qcow2", "-O", image_format,
                    str(rig.instances / order.server_uuid / "disk"), str(target)], check=True)
    took = time.monotonic() - began
    target.unlink()
    return took


def info(path: Path) -> str:
    return subprocess.run(["qemu-img", "info", str(path)], capture_output=True, text=True, check=True).stdout


def check_boots(rig, snapshot: Path, mark: str) -> None:
    copy = rig.images.add("booted", snapshot)
    order = guest_order("booted")
    try:
        build(rig, order)
        with Serial(order.server_uuid) as line:
            line.log_in()
            assert line.run("cat /root/mark") == mark
            assert line.run("ls /root/after 2>/dev/null; true") == ""
    finally:
        unbuild(rig, order)
        copy.unlink()


@booting
def test_left_over_freeze_is_thawed_at_the_next_start(rig, living, serial):
    rig.driver.tools.hypervisor.freeze(living.server_uuid, 30)
    (rig.instances / living.server_uuid / "frozen").touch()
    rig.driver.agent.thaw_left_over()
    serial.run("echo thawed > /root/thawed; sync")
    assert not (rig.instances / living.server_uuid / "frozen").exists()


RESCUE = {"first": {}, "stable-virtio": {"hw_rescue_device": "disk"}, "stable-ide": {"hw_rescue_bus": "ide"},
          "stable-scsi": {"hw_rescue_device": "disk", "hw_rescue_bus": "scsi"}}
RESCUED_BY = ["first", *sampling.drawn([name for name in RESCUE if name != "first"], 1, every=10)]


@booting
def test_rescued_guest_sees_its_old_disk_and_boots_it_again(rig):
    order = guest_order()
    try:
        build(rig, order)
        with Serial(order.server_uuid) as line:
            line.log_in()
            line.run("echo own > /root/mark; sync")
        for name in RESCUED_BY:
            check_rescue(rig, order, name, RESCUE[name])
        assert rig.driver.rescuing.unrescue(order) == PowerState.RUNNING
        with Serial(order.server_uuid) as line:
            line.log_in()
            assert line.run("cat /root/mark") == "own"
        assert sorted(path.name for path in (rig.instances / order.server_uuid).glob("*rescue*")) == []
    finally:
        unbuild(rig, order)
    assert rig.left_over(order) == []


def check_rescue(rig, order: BuildOrder, name: str, properties: dict[str, str]) -> None:
    rig.driver.lifecycle.shut_down(order.server_uuid, 0)
    image = Image(id="rescue", disk_format="raw", container_format="bare", properties=properties)
    rescue = RescueOrder(server_uuid=order.server_uuid, instance_name=order.instance_name, fence=FENCE, image=image,
                         build=order)
    files = {"openstack/latest/meta_data.json": b"{}"}
    assert rig.driver.rescuing.rescue(rescue, rig.images, files) == PowerState.RUNNING
    assert rig.driver.rescuing.rescue(rescue, rig.images, None) == PowerState.RUNNING
    with Serial(order.server_uuid) as line:
        line.log_in()
        mounts = [row.split() for row in line.run("cat /proc/mounts").splitlines()]
        (root,) = [row[0] for row in mounts if row[1] == "/" and row[0].startswith("/dev/")]
        own = "/dev/vdb1" if name == "first" else "/dev/vda1"
        assert line.run("ls /root/mark 2>/dev/null; true") == "", name
        assert (root == "/dev/vda1") is (name == "first"), (name, root)
        line.run(f"mkdir -p /mnt/own && mount {own} /mnt/own")
        assert line.run("cat /mnt/own/root/mark") == "own"
        line.run("umount /mnt/own; sync")
    rig.driver.rescuing.unrescue(order)
    rig.driver.lifecycle.shut_down(order.server_uuid, 0)


@booting
@pytest.mark.parametrize("kept", sampling.drawn([True, False], 1, every=10),
                         ids=lambda kept: "kept" if kept else "all-new")
def test_rebuilt_guest_has_lost_its_mark_and_keeps_its_ephemeral_disk_if_it_is_to(rig, kept):
    order = guest_order(disks=(Disk(kind="root", size_gb=1), Disk(kind="ephemeral", size_gb=1)))
    try:
        build(rig, order)
        with Serial(order.server_uuid) as line:
            line.log_in()
            line.run("echo own > /root/mark; mkdir -p /mnt/e; mount /dev/vdb /mnt/e && echo data > /mnt/e/mark; sync")
        rig.driver.lifecycle.destroy(order.server_uuid)
        rig.driver.disks.remove_disks(order.server_uuid, frozenset({"ephemeral", "swap"}) if kept else frozenset())
        build(rig, order)
        with Serial(order.server_uuid) as line:
            line.log_in()
            assert line.run("ls /root/mark 2>/dev/null; true") == ""
            line.run("mkdir -p /mnt/e; mount /dev/vdb /mnt/e")
            assert line.run("cat /mnt/e/mark 2>/dev/null; true") == ("data" if kept else "")
    finally:
        unbuild(rig, order)
    assert rig.left_over(order) == []
