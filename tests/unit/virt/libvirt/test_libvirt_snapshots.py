"""Snapshots: on a fake hypervisor, with real files and real image tools."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from nova import errors
from nova.model.guest.orders import BuildOrder, SnapshotOrder
from nova.virt.libvirt import LibvirtDriver
from nova.virt.libvirt.guest import agent, snapshots
from nova.virt.libvirt.xml import running
from tests.contract.driver_conformance import build, make_order
from tests.unit.virt.libvirt.acting import (
    AGENT,
    FENCE,
    SHUTDOWN,
    SNAPSHOT_ID,
    folder,
    tools,
    with_properties,
)
from tests.unit.virt.libvirt.orders import settings
from tests.unit.virt.libvirt.test_libvirt_driver import Rig, read

pytestmark = [pytest.mark.one_in(2), tools]


def snapshot_order(order: BuildOrder, image_id: str = SNAPSHOT_ID, quiesce: bool = False) -> SnapshotOrder:
    return SnapshotOrder(server_uuid=order.server_uuid, instance_name=order.instance_name, fence=FENCE,
                         image_id=image_id, quiesce=quiesce, build=order)


def write(rig, order: BuildOrder, text: bytes = b"mark") -> None:
    disk = folder(rig, order) / "disk"
    subprocess.run(["qemu-io", "-f", "qcow2", "-c", f"write -P 0x{text[0]:x} 0 4096", str(disk)], check=True,
                   capture_output=True)


def facts(path: str) -> dict:
    done = subprocess.run(["qemu-img", "info", "--output=json", path], check=True, capture_output=True)
    return json.loads(done.stdout)


def prepare(rig, order: BuildOrder, state: str) -> None:
    if state == "stopped":
        rig.driver.lifecycle.shut_down(order.server_uuid, 0)
    elif state == "paused":
        rig.driver.pausing.pause(order.server_uuid)
    elif state == "suspended":
        rig.driver.suspending.suspend(order.server_uuid)


@pytest.mark.parametrize("state", ["running", "paused", "stopped", "suspended"])
def test_snapshot_is_a_whole_file_and_leaves_the_guest_as_it_was(rig, order, state):
    prepare(rig, order, state)
    before, saved = rig.driver.lifecycle.power_state(order.server_uuid), set(rig.hypervisor.saved)
    made = rig.driver.snapshots.take_snapshot(snapshot_order(order))
    path = rig.driver.snapshots.snapshot_path(order.server_uuid, SNAPSHOT_ID)
    assert (made.format, made.virtual_size_bytes, made.size_bytes) == ("qcow2", 1 << 30, Path(path).stat().st_size)
    assert facts(path)["format"] == "qcow2" and "backing-filename" not in facts(path)
    assert Path(path).stat().st_mode & 0o777 == 0o600
    assert (rig.driver.lifecycle.power_state(order.server_uuid), rig.hypervisor.saved) == (before, saved)
    rig.driver.snapshots.drop_snapshot(order.server_uuid, SNAPSHOT_ID)
    rig.driver.snapshots.drop_snapshot(order.server_uuid, SNAPSHOT_ID)
    assert rig.driver.snapshots.snapshot_path(order.server_uuid, SNAPSHOT_ID) is None
    assert list(folder(rig, order).glob("snapshot*")) == []


@pytest.mark.parametrize("wanted", ["raw", "qcow2", "vmdk", "vdi"])
@pytest.mark.parametrize("state", ["running", "stopped"])
def test_snapshot_has_the_format_that_is_set(tmp_path, links, wanted, state):
    rig = Rig(tmp_path, links, snapshot_format=wanted)
    order = make_order(rig.bridge)
    build(rig, order)
    prepare(rig, order, state)
    assert rig.driver.snapshots.take_snapshot(snapshot_order(order)).format == wanted
    assert facts(rig.driver.snapshots.snapshot_path(order.server_uuid, SNAPSHOT_ID))["format"] == wanted
    assert len(list(folder(rig, order).glob("snapshot*"))) == 1


def test_snapshot_of_a_raw_disk_is_raw(raw_rig):
    order = make_order(raw_rig.bridge)
    build(raw_rig, order)
    assert raw_rig.driver.snapshots.take_snapshot(snapshot_order(order)).format == "raw"


def test_snapshot_that_was_taken_is_found_again(rig, order):
    made = rig.driver.snapshots.take_snapshot(snapshot_order(order))
    assert rig.driver.snapshots.take_snapshot(snapshot_order(order)) == made
    assert rig.hypervisor.calls == ["copy"]


def test_guest_with_an_agent_is_frozen_for_the_moment_of_the_copy_alone(rig):
    order = with_properties(rig, **AGENT)
    rig.driver.snapshots.take_snapshot(snapshot_order(order))
    assert rig.hypervisor.calls == ["freeze", "copy", "thaw"]
    assert not (folder(rig, order) / agent.FROZEN).exists()


@pytest.mark.parametrize("why", ["no agent", "silent", "paused", "by its image"])
def test_guest_that_must_be_quiet_and_cannot_is_a_conflict_and_not_copied(rig, why):
    order = with_properties(rig, **({} if why == "no agent" else AGENT),
                            **({"os_require_quiesce": "yes"} if why == "by its image" else {}))
    rig.hypervisor.agent = why not in ("silent", "by its image")
    prepare(rig, order, why)
    with pytest.raises(errors.Conflict, match="must be frozen"):
        rig.driver.snapshots.take_snapshot(snapshot_order(order, quiesce=why != "by its image"))
    assert "copy" not in rig.hypervisor.calls and list(folder(rig, order).glob("snapshot*")) == []


def test_guest_that_is_off_is_quiet(rig, order):
    rig.driver.lifecycle.shut_down(order.server_uuid, 0)
    assert rig.driver.snapshots.take_snapshot(snapshot_order(order, quiesce=True)).format == "qcow2"


def test_silent_agent_does_not_keep_a_guest_from_its_snapshot(rig):
    order = with_properties(rig, **AGENT)
    rig.hypervisor.agent = False
    assert rig.driver.snapshots.take_snapshot(snapshot_order(order)).format == "qcow2"


def test_guest_is_thawed_when_its_copy_fails(rig):
    order = with_properties(rig, **AGENT)
    rig.hypervisor.copy_fails = "No space left on device"
    with pytest.raises(errors.HostRefused, match="No space left"):
        rig.driver.snapshots.take_snapshot(snapshot_order(order))
    assert rig.hypervisor.frozen == set() and list(folder(rig, order).glob("snapshot*")) == []


def test_guest_that_was_left_frozen_is_thawed_at_the_next_start_and_by_the_repeat(tmp_path, links, rig):
    order = with_properties(rig, **AGENT)
    for thaw in (lambda: LibvirtDriver(settings(tmp_path), rig.hypervisor).agent.thaw_left_over(),
                 lambda: rig.driver.snapshots.drop_snapshot(order.server_uuid, SNAPSHOT_ID)):
        rig.hypervisor.freeze(order.server_uuid, 1)
        (folder(rig, order) / agent.FROZEN).touch()
        thaw()
        assert rig.hypervisor.frozen == set() and not (folder(rig, order) / agent.FROZEN).exists()


def test_guest_that_cannot_be_thawed_now_stays_marked(rig):
    order = with_properties(rig, **AGENT)
    (folder(rig, order) / agent.FROZEN).touch()
    rig.hypervisor.agent = False
    rig.driver.agent.thaw_left_over()
    assert (folder(rig, order) / agent.FROZEN).exists()
    rig.driver.lifecycle.shut_down(order.server_uuid, 0)
    rig.driver.agent.thaw_left_over()
    assert not (folder(rig, order) / agent.FROZEN).exists()


def begin_and_die(rig, order: BuildOrder) -> Path:
    """As if the process had died while the hypervisor copied."""
    part = folder(rig, order) / f"snapshot.{SNAPSHOT_ID}.qcow2.part"
    rig.hypervisor.copy_hangs = True
    rig.hypervisor.begin_copy(order.server_uuid, running.copy_xml(rig.hypervisor.xml[order.server_uuid], "vda",
                                                                  str(part), "qcow2"))
    rig.hypervisor.copy_hangs = False
    return part


def test_copy_that_nobody_waits_for_is_stopped_by_the_repeat_and_by_the_drop(rig, order):
    for call in (lambda: rig.driver.snapshots.take_snapshot(snapshot_order(order)),
                 lambda: rig.driver.snapshots.drop_snapshot(order.server_uuid, SNAPSHOT_ID)):
        rig.driver.snapshots.drop_snapshot(order.server_uuid, SNAPSHOT_ID)
        part = begin_and_die(rig, order)
        call()
        assert not part.exists() and rig.hypervisor.copying == {}


def test_copy_of_somebody_else_is_left_alone(rig, order):
    begin_and_die(rig, order)
    other = "2d0c2b9e-6a1f-4d55-8f2b-0c7e3f1a5b67"
    with pytest.raises(errors.HostRefused):
        rig.driver.snapshots.take_snapshot(snapshot_order(order, other))
    rig.driver.snapshots.drop_snapshot(order.server_uuid, other)
    assert order.server_uuid in rig.hypervisor.copying


def test_copy_that_does_not_get_on_is_given_up(rig, order, monkeypatch):
    monkeypatch.setattr(snapshots, "STALLED_S", 0.1)  # minutes otherwise
    rig.hypervisor.copy_hangs = True
    with pytest.raises(errors.server.SnapshotStalled):
        rig.driver.snapshots.take_snapshot(snapshot_order(order))
    assert rig.hypervisor.copying == {} and list(folder(rig, order).glob("snapshot*")) == []


def test_guest_that_stops_while_it_is_copied_is_copied_as_it_lies(rig, order):
    begin = rig.hypervisor.begin_copy

    def stop_then(server_uuid: str, xml: str) -> None:
        begin(server_uuid, xml)
        rig.hypervisor.power_off(server_uuid)
    rig.hypervisor.begin_copy = stop_then
    assert rig.driver.snapshots.take_snapshot(snapshot_order(order)).format == "qcow2"
    assert rig.driver.lifecycle.power_state(order.server_uuid) == SHUTDOWN


def test_snapshot_without_space_refuses_the_host(rig, order, monkeypatch):
    monkeypatch.setattr(snapshots, "SPARE_BYTES", 1 << 60)  # a file system that is really full needs root
    with pytest.raises(errors.HostRefused, match="no space left for a snapshot"):
        rig.driver.snapshots.take_snapshot(snapshot_order(order))


@pytest.mark.parametrize("image_id", ["../../etc/passwd", "a/b", "", "x" * 65, "*"])
def test_image_id_that_would_be_a_path_is_refused(rig, order, image_id):
    for call in (lambda: rig.driver.snapshots.take_snapshot(snapshot_order(order, image_id)),
                 lambda: rig.driver.snapshots.snapshot_path(order.server_uuid, image_id),
                 lambda: rig.driver.snapshots.drop_snapshot(order.server_uuid, image_id)):
        with pytest.raises(errors.Invalid):
            call()


def test_snapshot_of_a_guest_without_disks_is_a_conflict(rig):
    with pytest.raises(errors.Conflict):
        rig.driver.snapshots.take_snapshot(snapshot_order(make_order(rig.bridge)))


def test_snapshot_of_a_stopped_guest_has_what_was_written(rig, order):
    rig.driver.lifecycle.shut_down(order.server_uuid, 0)
    write(rig, order)
    rig.driver.snapshots.take_snapshot(snapshot_order(order))
    path = rig.driver.snapshots.snapshot_path(order.server_uuid, SNAPSHOT_ID)
    read = subprocess.run(["qemu-io", "-f", "qcow2", "-c", "read -P 0x6d 0 4096", path], capture_output=True,
                          text=True, check=True)
    assert "Pattern verification failed" not in read.stdout


@pytest.mark.parametrize(("text", "wanted"), [("", None), ("[libvirt]\nsnapshot_image_format = raw\n", "raw")])
def test_format_of_snapshots_is_read_from_the_file(tmp_path, text, wanted):
    assert read(tmp_path, text).snapshot_format == wanted
