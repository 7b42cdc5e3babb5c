"""A guest writes the header of an image over its raw disk, with a file of the host behind it: the disk stays raw bytes.

For whoever believed the header, the disk would show the host's file (OSSA-2014-009, OSSA-2016-001, OSSA-2016-007), or
be taken apart as an image (OSSA-2026-002).
"""

from __future__ import annotations

import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from nova.model.guest.orders import BuildOrder, SnapshotOrder
from tests.contract.driver_conformance import build, make_order
from tests.contract.driver_move_cases import grown, move_order, off_and_left
from tests.unit.compute import crafted
from tests.unit.virt.libvirt.acting import FENCE, SNAPSHOT_ID, folder, tools
from tests.unit.virt.libvirt.test_libvirt_driver import Rig
from tests.unit.virt.libvirt.test_rescue import rescue, rescue_images

pytestmark = [pytest.mark.one_in(2), tools]

SECRET = b"a secret of the host" * 200
MIB = 1 << 20


def header_of(tmp_path: Path) -> bytes:
    """What such a guest writes: an image over a file of the host, with as many bytes as that has."""
    hidden = tmp_path / "shadow"
    hidden.write_bytes(SECRET.ljust(MIB, b"s"))
    made = crafted.qcow2_with_backing_file(tmp_path / "evil", str(hidden))
    subprocess.run(["qemu-img", "info", "-U", str(made)], check=True, capture_output=True)  # a good one
    return made.read_bytes()


@pytest.fixture
def rig(raw_rig: Rig) -> Rig:
    return raw_rig


@pytest.fixture
def order(rig: Rig, tmp_path: Path) -> BuildOrder:
    """Of a guest that has written it, over the beginning of its root disk."""
    made = make_order(rig.bridge)
    overwrite(rig, made, tmp_path)
    return made


def overwrite(rig: Rig, order: BuildOrder, tmp_path: Path) -> None:
    build(rig, order)
    with open(folder(rig, order) / "disk", "r+b") as disk:
        disk.write(header_of(tmp_path))


def snapshot(rig: Rig, order: BuildOrder) -> Path:
    rig.driver.snapshots.take_snapshot(SnapshotOrder(
        server_uuid=order.server_uuid, instance_name=order.instance_name, fence=FENCE, image_id=SNAPSHOT_ID,
        quiesce=False, build=order))
    return Path(rig.driver.snapshots.snapshot_path(order.server_uuid, SNAPSHOT_ID))


def as_bytes(path: Path, image_format: str, to: Path) -> bytes:
    """What a guest would read from the beginning of it."""
    subprocess.run(["qemu-img", "convert", "-f", image_format, "-O", "raw", str(path), str(to)], check=True)
    with open(to, "rb") as shown:
        return shown.read(4 * MIB)


def described(rig: Rig, order: BuildOrder, name: str) -> ET.Element:
    """The disk of this file, as libvirt was told of it."""
    return next(disk for disk in ET.fromstring(rig.hypervisor.xml[order.server_uuid]).iterfind("devices/disk")
                if Path(disk.find("source").get("file")).name == name)


@pytest.mark.parametrize("off", [True, False], ids=["stopped", "running"])
def test_snapshot_when_a_guest_wrote_an_images_header_then_it_has_that_and_nothing_of_the_host(
        rig, order, tmp_path, off):
    if off:
        rig.driver.lifecycle.shut_down(order.server_uuid, 0)
    shown = snapshot(rig, order).read_bytes()[:4 * MIB]
    assert shown.startswith(header_of(tmp_path)) and SECRET[:100] not in shown


@pytest.mark.parametrize("off", [True, False], ids=["stopped", "running"])
def test_snapshot_in_another_format_when_a_guest_wrote_an_images_header_then_the_same(tmp_path, links, off):
    rig = Rig(tmp_path, links, cow=False, snapshot_format="qcow2")
    rig.driver.connect()
    order = make_order(rig.bridge)
    overwrite(rig, order, tmp_path)
    if off:
        rig.driver.lifecycle.shut_down(order.server_uuid, 0)
    shown = as_bytes(snapshot(rig, order), "qcow2", tmp_path / "shown")
    rig.close()
    assert shown.startswith(header_of(tmp_path)) and SECRET[:100] not in shown


def test_rescue_when_a_guest_wrote_an_images_header_then_its_disk_is_raw_to_the_rescue_system(rig, order, tmp_path):
    rescue_images(rig, tmp_path)
    rescue(rig, order)
    own = described(rig, order, "disk")
    assert own.find("driver").get("type") == "raw" and own.find("backingStore/source") is None
    rig.driver.rescuing.unrescue(order)
    assert described(rig, order, "disk").find("driver").get("type") == "raw"


def test_resize_when_a_guest_wrote_an_images_header_then_the_disk_grows_as_bytes(rig, order, tmp_path):
    before = (folder(rig, order) / "disk").stat().st_size
    rig.driver.lifecycle.shut_down(order.server_uuid, 0)
    larger = grown(order)
    rig.driver.cold_moves.fetch(move_order(larger, off_and_left(rig, order)), rig.images)
    disk = folder(rig, order) / "disk"
    assert disk.stat().st_size > before and disk.read_bytes()[:MIB].startswith(header_of(tmp_path))
