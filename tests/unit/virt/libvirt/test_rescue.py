"""Rescue: on a fake hypervisor, with real files and real image tools."""

from __future__ import annotations

import json
import subprocess
import xml.etree.ElementTree as ET

import pytest

from nova import errors
from nova.model.guest.orders import BuildOrder, RescueOrder
from nova.model.image.images import Image
from nova.model.server.states import PowerState
from tests.contract.driver_conformance import IMAGE_ID, build, make_order, unbuild
from tests.unit.virt.libvirt.acting import (
    FENCE,
    KERNEL_ID,
    RESCUE_ID,
    RUNNING,
    disks_of,
    folder,
    tools,
)

pytestmark = [pytest.mark.one_in(2), tools]


def rescue_images(rig, tmp_path) -> None:
    for name in (RESCUE_ID, KERNEL_ID):
        subprocess.run(["qemu-img", "create", "-q", "-f", "raw", str(tmp_path / name), "2M"], check=True)
    paths = {RESCUE_ID: str(tmp_path / RESCUE_ID), KERNEL_ID: str(tmp_path / KERNEL_ID), IMAGE_ID: str(rig.base)}
    rig.path = lambda image_id: paths[image_id]


def rescue_order(order: BuildOrder, image_id: str = RESCUE_ID, **properties: str) -> RescueOrder:
    return RescueOrder(server_uuid=order.server_uuid, instance_name=order.instance_name, fence=FENCE, build=order,
                       image=Image(id=image_id, disk_format="raw", properties=properties))


def rescue(rig, order: BuildOrder, files: dict[str, bytes] | None = None, **properties: str) -> PowerState:
    rig.driver.lifecycle.shut_down(order.server_uuid, 0)
    return rig.driver.rescuing.rescue(rescue_order(order, **properties), rig.images, files)


def test_rescue_disk_is_first_and_the_own_disks_follow(rig, order, tmp_path):
    rescue_images(rig, tmp_path)
    own = disks_of(rig, order)
    assert rescue(rig, order, {"a": b"1"}) == RUNNING
    assert disks_of(rig, order) == [("disk.rescue", "vda", "disk", "1"), ("disk", "vdb", "disk", None),
                                    ("disk.eph0", "vdc", "disk", None), ("disk.swap", "vdd", "disk", None),
                                    ("disk.config.rescue", "hda", "cdrom", None)]
    assert RESCUE_ID in rig.driver.image_users.images_in_use() and IMAGE_ID in rig.driver.image_users.images_in_use()
    assert rig.driver.rescuing.unrescue(order) == RUNNING
    assert disks_of(rig, order) == own
    assert not [path.name for path in folder(rig, order).iterdir() if "rescue" in path.name]
    assert RESCUE_ID not in rig.driver.image_users.images_in_use()


@pytest.mark.parametrize(("properties", "target", "device", "bus"), [
    ({"hw_rescue_device": "disk"}, "vdd", "disk", "virtio"), ({"hw_rescue_bus": "scsi"}, "sda", "disk", "scsi"),
    ({"hw_rescue_device": "cdrom"}, "hdb", "cdrom", "ide"), ({"hw_rescue_device": "floppy"}, "fda", "floppy", "fdc"),
    ({"hw_rescue_device": "cdrom", "hw_rescue_bus": "usb"}, "sda", "cdrom", "usb")])
def test_stable_rescue_leaves_the_own_disks_in_their_places(rig, order, tmp_path, properties, target, device, bus):
    rescue_images(rig, tmp_path)
    own = [(name, place, kind) for name, place, kind, _boot in disks_of(rig, order)]
    rescue(rig, order, **properties)
    shown = disks_of(rig, order)
    assert [one[:3] for one in shown[:-1]] == own and shown[-1] == ("disk.rescue", target, device, "1")
    assert [boot for *_rest, boot in shown[:-1]] == [None] * len(own)
    assert f'bus="{bus}"' in rig.hypervisor.xml[order.server_uuid]


@pytest.mark.parametrize("properties", [{"hw_rescue_device": "lun"}, {"hw_rescue_bus": "xen"},
                                        {"hw_rescue_device": "floppy", "hw_rescue_bus": "virtio"}])
def test_rescue_device_that_cannot_be_is_refused_before_anything_is_made(rig, order, tmp_path, properties):
    rescue_images(rig, tmp_path)
    with pytest.raises(errors.Invalid):
        rescue(rig, order, **properties)
    assert not [path.name for path in folder(rig, order).iterdir() if "rescue" in path.name]


def test_rescue_image_with_a_kernel_boots_from_it_and_the_own_kernel_never(rig, tmp_path):
    rescue_images(rig, tmp_path)
    order = make_order(rig.bridge, kernel=Image(id=IMAGE_ID, disk_format="aki"))
    build(rig, order)
    rescue(rig, order, kernel_id=KERNEL_ID, ramdisk_id=KERNEL_ID, os_command_line="rescue=1")
    xml = ET.fromstring(rig.hypervisor.xml[order.server_uuid])
    assert [xml.findtext(f"os/{name}") for name in ("kernel", "initrd", "cmdline")] == [
        str(folder(rig, order) / "kernel.rescue"), str(folder(rig, order) / "ramdisk.rescue"), "rescue=1"]
    rig.driver.rescuing.unrescue(order)
    rescue(rig, order)
    assert ET.fromstring(rig.hypervisor.xml[order.server_uuid]).find("os/kernel") is None


def test_rescue_repeated_changes_nothing_and_with_another_image_begins_anew(rig, order, tmp_path):
    rescue_images(rig, tmp_path)
    rescue(rig, order)
    made = (folder(rig, order) / "disk.rescue").stat().st_ino
    assert rig.driver.rescuing.rescue(rescue_order(order), rig.images, None) == RUNNING
    assert (folder(rig, order) / "disk.rescue").stat().st_ino == made
    rig.driver.lifecycle.shut_down(order.server_uuid, 0)
    rig.driver.rescuing.rescue(rescue_order(order, IMAGE_ID), rig.images, None)
    record = json.loads((folder(rig, order) / "rescue.json").read_text())
    assert record["image_ids"] == [IMAGE_ID] and record["disk"]["backing"] == str(rig.base)


class Killed(BaseException):
    """In place of a kill: nothing may catch it."""


def test_rescue_that_dies_while_its_disk_is_made_is_written_down_and_leaves_nothing(rig, order, tmp_path, monkeypatch):
    rescue_images(rig, tmp_path)
    rig.driver.lifecycle.shut_down(order.server_uuid, 0)

    def die(folder, disk, base):
        folder.file(disk.name).touch()
        raise Killed
    monkeypatch.setattr(rig.driver.rescuing.disks, "make_root", die)
    with pytest.raises(Killed):
        rig.driver.rescuing.rescue(rescue_order(order), rig.images, None)
    assert rig.driver.rescuing.unrescue(order) == RUNNING
    assert not list(folder(rig, order).glob("*rescue*"))


@pytest.mark.parametrize("call", ["define", "start"])
def test_rescue_that_dies_on_its_way_is_cleaned_by_unrescue_and_goes_on_when_repeated(rig, order, tmp_path, call):
    rescue_images(rig, tmp_path)
    rig.driver.lifecycle.shut_down(order.server_uuid, 0)
    real = getattr(rig.hypervisor, call)

    def die(*_args: object) -> None:
        raise Killed
    for end in (rig.driver.rescuing.unrescue,
                lambda _order: rig.driver.rescuing.rescue(rescue_order(order), rig.images, None),
                rig.driver.rescuing.unrescue):
        setattr(rig.hypervisor, call, die)
        with pytest.raises(Killed):
            rig.driver.rescuing.rescue(rescue_order(order), rig.images, {"a": b"1"})
        setattr(rig.hypervisor, call, real)
        assert (folder(rig, order) / "rescue.json").exists()
        assert end(order) == RUNNING
        rig.driver.lifecycle.shut_down(order.server_uuid, 0)
    assert [name for name, *_rest in disks_of(rig, order)] == ["disk", "disk.eph0", "disk.swap", "disk.config"]
    assert rig.driver.rescuing.unrescue(order) == RUNNING == rig.driver.rescuing.unrescue(order)


@pytest.mark.parametrize("call", ["power_off", "undefine", "define", "start"])
def test_unrescue_that_dies_on_its_way_ends_when_repeated(rig, order, tmp_path, call):
    rescue_images(rig, tmp_path)
    rescue(rig, order)
    real = getattr(rig.hypervisor, call)

    def die(*_args: object) -> None:
        raise Killed
    setattr(rig.hypervisor, call, die)
    with pytest.raises(Killed):
        rig.driver.rescuing.unrescue(order)
    setattr(rig.hypervisor, call, real)
    assert rig.driver.rescuing.unrescue(order) == RUNNING
    assert [name for name, *_rest in disks_of(rig, order)] == ["disk", "disk.eph0", "disk.swap", "disk.config"]
    assert not [path.name for path in folder(rig, order).iterdir() if "rescue" in path.name]


def test_rescue_that_fails_leaves_a_guest_whose_next_start_is_its_own(rig, order, tmp_path):
    rescue_images(rig, tmp_path)
    rig.driver.lifecycle.shut_down(order.server_uuid, 0)
    rig.hypervisor.refuse = "no memory"
    with pytest.raises(errors.HostRefused, match="no memory"):
        rig.driver.rescuing.rescue(rescue_order(order), rig.images, None)
    assert not [path.name for path in folder(rig, order).iterdir() if "rescue" in path.name]
    assert rig.driver.lifecycle.start(order.server_uuid) == RUNNING
    assert [name for name, *_rest in disks_of(rig, order)] == ["disk", "disk.eph0", "disk.swap", "disk.config"]


def test_rescued_guest_that_is_started_anew_stays_rescued(rig, order, tmp_path):
    rescue_images(rig, tmp_path)
    rescue(rig, order)
    rig.driver.lifecycle.destroy(order.server_uuid)
    rig.driver.lifecycle.start_new(order)
    assert disks_of(rig, order)[0][0] == "disk.rescue"


def test_rescued_guest_that_is_removed_leaves_nothing(rig, order, tmp_path):
    rescue_images(rig, tmp_path)
    rescue(rig, order)
    unbuild(rig, order)
    assert rig.left_over(order) == []


def test_rescue_disk_of_a_host_with_raw_disks_is_a_copy(raw_rig, tmp_path):
    rescue_images(raw_rig, tmp_path)
    order = make_order(raw_rig.bridge)
    build(raw_rig, order)
    rescue(raw_rig, order)
    assert (folder(raw_rig, order) / "disk.rescue").stat().st_size == 2 << 20


def test_rescue_image_that_is_not_here_refuses_the_host(rig, order):
    with pytest.raises(errors.HostRefused, match="not in this host's image cache"):
        rescue(rig, order)
