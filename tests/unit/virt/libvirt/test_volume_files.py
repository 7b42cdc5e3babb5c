"""A volume that is a file, and in use: files come on top of it, and files below are merged; and what goes wrong."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import pytest

from nova import errors
from nova.model.volumes import VolumeConnection
from nova.virt.libvirt.disks import volume_files
from nova.virt.libvirt.xml import disks as disk_xml
from tests.contract.driver_conformance import build, make_order, unbuild
from tests.contract.driver_volume_cases import attach, of_file, snapshot_order
from tests.fakes.clocks import QuickClock
from tests.unit.virt.libvirt.test_libvirt_driver import Rig

pytestmark = pytest.mark.one_in(2)  # one of two runs has each

MIB = 1 << 20


@pytest.fixture
def quick(tmp_path, links):
    made = Rig(tmp_path, links, clock=QuickClock())
    made.driver.connect()
    yield made
    made.driver.close()


@pytest.fixture
def guest(quick):
    order = make_order(quick.bridge)
    build(quick, order)
    yield order
    quick.driver.lifecycle.destroy(order.server_uuid)
    quick.driver.volumes.disconnect(order.server_uuid)
    unbuild(quick, order)


@pytest.fixture
def one(quick, guest, tmp_path):
    """A volume that the guest has, in the file ``base``."""
    made = of_file(tmp_path / "base")
    attach(quick.driver, guest, made)
    return made


def overlay(path: Path, base: str | None = "base", base_format: str | None = "raw") -> Path:
    words = ["-b", base, *(["-F", base_format] if base_format else [])] if base else []
    subprocess.run(["qemu-img", "create", "-q", "-u", "-f", "qcow2", *words, str(path), str(2 * MIB)], check=True)
    return path


def snapshot(rig, guest, one, *names):
    for name in names:
        rig.driver.volumes.snapshot_volume(snapshot_order(guest, one, new_file=name))


def merge(rig, guest, one, **words):
    return rig.driver.volumes.merge_volume_snapshot(snapshot_order(guest, one, **words), lambda: False)


def files(rig, guest):
    [record] = rig.driver.tools.folders.of(guest.server_uuid).volumes()
    return [Path(each.path).name for each in volume_files.chain(record.path, record.format)]


def defined(rig, guest, one):
    """The file, as the guest runs (None where it does not) and as it starts next."""
    return [Path(disk_xml.source_of(disk_xml.find(text, one.device.volume_id))).name if text else None
            for text in rig.driver.tools.hypervisor.definitions_of(guest.server_uuid)]


@pytest.fixture
def three(quick, guest, one, tmp_path):
    """Two files over the volume's."""
    overlay(tmp_path / "s1")
    overlay(tmp_path / "s2", "s1", "qcow2")
    snapshot(quick, guest, one, "s1", "s2", "s2")
    return one


def test_snapshot_then_guest_definition_and_record_have_the_new_file(quick, guest, three):
    assert files(quick, guest) == ["s2", "s1", "base"] and defined(quick, guest, three) == ["s2", "s2"]
    [record] = quick.driver.tools.folders.of(guest.server_uuid).volumes()
    assert record.format == "qcow2"


def test_snapshot_when_it_is_made_then_libvirt_is_told_of_this_disk_alone(quick, guest, one, tmp_path):
    told = []
    overlay(tmp_path / "s1")
    quick.driver.tools.hypervisor.snapshot_disk = lambda uuid, text: told.append(text)
    snapshot(quick, guest, one, "s1")
    [text] = told
    assert text.count('snapshot="no"') == text.count("<disk ") - 1 and text.count('snapshot="external"') == 1


@pytest.mark.parametrize("runs", [True, False])
@pytest.mark.parametrize(("words", "left"), [
    ({"file_to_merge": "base"}, ["s2", "base"]), ({"file_to_merge": None}, ["s2"]),
    ({"file_to_merge": "s1", "merge_target_file": "base"}, ["s2", "base"])])
def test_merge_then_the_file_is_out_of_the_chain_for_good(quick, guest, three, words, left, runs):
    if not runs:
        quick.driver.lifecycle.shut_down(guest.server_uuid, 0)
        if "merge_target_file" in words:
            with pytest.raises(errors.guest.NotRunning):
                merge(quick, guest, three, **words)
            return
    for _ in range(2):
        merge(quick, guest, three, **words)
        assert files(quick, guest) == left and defined(quick, guest, three)[1] == "s2"


def test_snapshot_when_the_guest_is_off_then_it_starts_with_the_new_file(quick, guest, one, tmp_path):
    quick.driver.lifecycle.shut_down(guest.server_uuid, 0)
    overlay(tmp_path / "s1")
    snapshot(quick, guest, one, "s1")
    assert defined(quick, guest, one) == [None, "s1"]
    quick.driver.lifecycle.start(guest.server_uuid)
    assert defined(quick, guest, one) == ["s1", "s1"]


@pytest.mark.parametrize("name", ["missing", "../base", "", "link"])
def test_snapshot_when_the_file_is_not_there_or_elsewhere_then_refused_and_the_guest_has_what_it_had(
        quick, guest, one, tmp_path, name):
    (tmp_path / "link").symlink_to("/etc/passwd")
    with pytest.raises(errors.guest.NoVolumeFile):
        snapshot(quick, guest, one, name)
    assert files(quick, guest) == ["base"] and defined(quick, guest, one) == ["base", "base"]


def test_change_when_libvirt_refuses_then_nothing_is_changed_and_it_can_be_tried_again(
        quick, guest, three, tmp_path):
    overlay(tmp_path / "s3", "s2", "qcow2")
    for again in (lambda: snapshot(quick, guest, three, "s3"),
                  lambda: merge(quick, guest, three, file_to_merge="base")):
        before = files(quick, guest)
        quick.driver.tools.hypervisor.block_fails = "no"
        with pytest.raises(errors.HostRefused):
            again()
        assert files(quick, guest) == before
        again()
        assert files(quick, guest) != before


def test_merge_when_its_job_ends_early_or_is_stopped_then_that_is_an_error(quick, guest, three):
    hypervisor = quick.driver.tools.hypervisor
    hypervisor.begin_block_pull = lambda *args: None
    with pytest.raises(errors.host.LibvirtRefused, match="ended early"):
        merge(quick, guest, three, file_to_merge="base")
    hypervisor.block_hangs = True
    hypervisor.begin_block_pull = lambda uuid, target, base: hypervisor.begin_block_copy(uuid, target, "<disk/>")
    with pytest.raises(errors.guest.DiskJobStopped):
        quick.driver.volumes.merge_volume_snapshot(snapshot_order(guest, three, file_to_merge="base"), lambda: True)
    assert not hypervisor.block_jobs


def test_merge_when_a_file_is_none_of_the_chain_then_refused(quick, guest, three, tmp_path):
    overlay(tmp_path / "other")
    with pytest.raises(errors.guest.NoVolumeFile):
        merge(quick, guest, three, file_to_merge="other")
    with pytest.raises(errors.guest.NoVolumeFile):
        merge(quick, guest, three, file_to_merge="s1", merge_target_file="other")


def test_snapshot_of_a_volume_that_is_no_file_is_refused(quick, guest):
    odd = msgspec.structs.replace(of_file(Path("/dev/null").parent / "shm" / "unused"),
                                  connection=VolumeConnection(kind="rbd"))
    Path("/dev/shm/unused").unlink()
    with pytest.raises(errors.guest.NoVolumeFile):
        snapshot(quick, guest, odd, "s1")


# --- the files' headers

def test_chain_when_a_raw_file_holds_a_header_then_it_is_not_believed(tmp_path):
    overlay(tmp_path / "evil", "/etc/passwd")
    assert [one.path for one in volume_files.chain(str(tmp_path / "evil"), "raw")] == [str(tmp_path / "evil")]
    made = volume_files.chain(str(overlay(tmp_path / "top", "evil")), "qcow2")
    assert [(Path(one.path).name, one.format) for one in made] == [("top", "qcow2"), ("evil", "raw")]


@pytest.mark.parametrize(("base", "base_format"), [("/etc/passwd", "raw"), ("sub/file", "raw"), ("nbd://x/y", "raw")])
def test_chain_when_a_file_lies_over_another_elsewhere_then_it_is_unsafe(tmp_path, base, base_format):
    with pytest.raises(errors.guest.DiskUnsafe):
        volume_files.chain(str(overlay(tmp_path / "top", base, base_format)), "qcow2")


def test_chain_when_files_lie_over_one_another_or_are_not_what_they_are_said_to_be_then_it_is_unsafe(tmp_path):
    overlay(tmp_path / "one", "two", "qcow2")
    overlay(tmp_path / "two", "one", "qcow2")
    with pytest.raises(errors.guest.DiskUnsafe, match="has a loop"):
        volume_files.chain(str(tmp_path / "one"), "qcow2")
    (tmp_path / "raw").write_bytes(bytes(4096))
    with pytest.raises(errors.guest.DiskUnsafe, match="not in qcow2 format"):
        volume_files.chain(str(tmp_path / "raw"), "qcow2")
