from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from nova import errors
from nova.model.guest.orders import Disk
from nova.model.image.images import Image
from nova.privileged import config_drives, filesystems
from nova.privileged.qemu_img import ImageFile, QemuImg, ToolLimits
from nova.privileged.runner import Completed, SystemRunner
from nova.virt import image_files
from nova.virt.libvirt.disks import config_drive, plan
from nova.virt.libvirt.disks.folders import Folder
from nova.virt.libvirt.disks.maker import DiskMaker
from tests.unit.virt.libvirt.acting import tool_of
from tests.unit.virt.libvirt.orders import flavor, order, settings

GIB, MIB = 1 << 30, 1 << 20
BASE = plan.Base("/cache/abc", "raw", 64 * MIB)


class Recorder:
    """Runs nothing; answers ``code`` and ``stderr``, and makes the file that the command names last."""

    def __init__(self, code: int = 0, stderr: str = "", makes: bool = True) -> None:
        self.ran: list[list[str]] = []
        self._answer, self._makes = Completed(code, "", stderr), makes

    def run(self, argv, *, stdin=None, ok=(0,), environment=None):
        self.ran.append(list(argv))
        if self._makes:
            for word in argv:
                if ".part" in word and not word.startswith("-") and not os.path.exists(word):
                    open(word, "wb").close()
        return self._answer


def tool(recorder: Recorder) -> QemuImg:
    return QemuImg(ToolLimits(), runner_of=lambda timeout_s: recorder)


def words(recorder: Recorder) -> list[str]:
    """Each command without its limits and folders."""
    found = []
    for argv in recorder.ran:
        rest = tool_of(argv)
        found.append(" ".join(word.rsplit("/", 1)[-1] if word.startswith("/") else word for word in rest))
    return found


# --- which disks

def test_plan_of_overlays_lies_over_the_cached_image():
    root, ephemeral, swap = plan.plan(order(), settings(), BASE)
    assert (root.name, root.format, root.size_bytes, root.backing, root.backing_format) == (
        "disk", "qcow2", GIB, "/cache/abc", "raw")
    assert (ephemeral.name, ephemeral.format, ephemeral.size_bytes) == ("disk.eph0", "qcow2", GIB)
    assert ephemeral.backing is None
    assert (swap.name, swap.size_bytes) == ("disk.swap", 512 * MIB)


def test_plan_without_cow_has_raw_files_alone():
    disks = plan.plan(order(), settings(cow=False), BASE)
    assert {disk.format for disk in disks} == {"raw"} and not any(disk.backing for disk in disks)


def test_plan_of_a_flavor_without_a_root_size_takes_the_images():
    (root,) = plan.plan(order(disks=(Disk(kind="root"),)), settings(), BASE._replace(size_bytes=64 * MIB + 1))
    assert root.size_bytes == 64 * MIB + 512  # whole sectors


def test_plan_of_an_iso_is_a_cd_of_its_own_size():
    iso = order(image=Image(id="i", disk_format="iso"), disks=(Disk(kind="root", size_gb=1),))
    (root,) = plan.plan(iso, settings(), BASE)
    assert (root.device, root.size_bytes) == ("cdrom", 64 * MIB)


def test_plan_of_several_ephemeral_disks_keeps_their_order():
    disks = (Disk(kind="ephemeral", index=1, size_gb=2), Disk(kind="swap", size_mb=8), Disk(kind="root", size_gb=1),
             Disk(kind="ephemeral", index=0, size_gb=1))
    assert [disk.name for disk in plan.plan(order(disks=disks), settings(), BASE)] == [
        "disk", "disk.eph0", "disk.eph1", "disk.swap"]


def test_plan_of_an_order_that_names_no_disks_follows_its_flavor():
    assert [disk.kind for disk in plan.wanted_disks(order(disks=(), flavor=flavor(ephemeral_gb=0)))] == ["root", "swap"]


# --- the commands, as data

def test_commands_for_overlays_state_every_format(tmp_path):
    recorder, folder = Recorder(), Folder(tmp_path)
    disks = plan.plan(order(), settings(), BASE)
    DiskMaker(settings(), tool(recorder), recorder).make(order(), folder, disks, BASE)
    assert words(recorder) == [
        f"qemu-img create -q -f qcow2 -F raw -b abc disk.part {GIB}",
        "mkfs.ext4 -q -F -L ephemeral0 disk.eph0.raw.part",
        "qemu-img convert -f raw -O qcow2 -S 64k disk.eph0.raw.part disk.eph0.part",
        "mkswap -L swap disk.swap.raw.part",
        "qemu-img convert -f raw -O qcow2 -S 64k disk.swap.raw.part disk.swap.part"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["disk", "disk.eph0", "disk.swap"]


def test_commands_for_raw_disks_copy_and_grow(tmp_path):
    recorder, raw = Recorder(), settings(cow=False, preallocate=True)
    one = order(disks=(Disk(kind="root", size_gb=1),))
    DiskMaker(raw, tool(recorder), recorder).make(one, Folder(tmp_path), plan.plan(one, raw, BASE), BASE)
    assert words(recorder) == ["qemu-img convert -f raw -O raw -S 64k abc disk.part",
                               f"qemu-img resize -q -f raw disk.part {GIB}", f"fallocate -l {GIB} disk.part"]


def test_commands_of_the_image_tool_are_limited(tmp_path):
    recorder, target = Recorder(), str(tmp_path / "b")
    tool(recorder).convert(ImageFile("/a", "vhd"), ImageFile(target, "raw"), max_bytes=1000)
    [argv] = recorder.ran
    assert argv[0] == "bwrap" and argv[argv.index("prlimit"):] == [
        "prlimit", "--cpu=600", f"--as={4096 << 20}", "--core=0", "--fsize=1000", "--", "qemu-img", "convert", "-f",
        "vpc", "-O", "raw", "-S", "64k", "/a", target]


def test_disks_that_are_there_are_not_made_again(tmp_path):
    recorder, folder = Recorder(), Folder(tmp_path)
    for disk in (disks := plan.plan(order(), settings(), BASE)):
        folder.file(disk.name).write_text("guest data")
    DiskMaker(settings(), tool(recorder), recorder).make(order(), folder, disks, BASE)
    assert recorder.ran == []


@pytest.mark.parametrize(("stderr", "error"), [("qemu-img: ...: No space left on device", errors.host.DiskFull),
                                               ("qemu-img: Disk quota exceeded", errors.host.DiskFull),
                                               ("qemu-img: something", errors.host.ImageTool)])
def test_disk_that_cannot_be_made_leaves_no_part(tmp_path, stderr, error):
    recorder = Recorder(1, stderr)
    with pytest.raises(error):
        DiskMaker(settings(), tool(recorder), recorder).make(
            order(), Folder(tmp_path), plan.plan(order(), settings(), BASE), BASE)
    assert list(tmp_path.iterdir()) == []


def test_preallocation_on_a_full_disk_is_refused(tmp_path):
    full = Recorder(1, "fallocate: fallocate failed: No space left on device")
    one, space = order(disks=(Disk(kind="root", size_gb=1),)), settings(preallocate=True)
    with pytest.raises(errors.host.DiskFull):
        DiskMaker(space, tool(Recorder()), full).make(one, Folder(tmp_path), plan.plan(one, space, BASE), BASE)


def test_preallocation_where_the_file_system_cannot_is_left_out(tmp_path):
    unable = Recorder(1, "fallocate: fallocate failed: Operation not supported")
    one, space = order(disks=(Disk(kind="root", size_gb=1),)), settings(preallocate=True)
    DiskMaker(space, tool(Recorder()), unable).make(one, Folder(tmp_path), plan.plan(one, space, BASE), BASE)
    assert (tmp_path / "disk").exists()


@pytest.mark.parametrize(("kind", "asked", "configured", "os_type", "expected"), [
    ("swap", "ext4", "xfs", None, "swap"), ("ephemeral", None, None, None, "ext4"),
    ("ephemeral", None, None, "windows", "vfat"), ("ephemeral", None, "xfs", "windows", "xfs"),
    ("ephemeral", "ext3", "xfs", None, "ext3"), ("ephemeral", None, None, "../../etc", "ext4"),
])
def test_filesystem_is_the_requests_the_operators_or_the_systems(kind, asked, configured, os_type, expected):
    assert filesystems.choose(kind, asked, configured, os_type) == expected


def test_filesystem_outside_the_closed_set_is_refused():
    with pytest.raises(errors.guest.DiskFilesystem):
        filesystems.argv("reiserfs; rm -rf /", "x", "/x")


needs_tools = pytest.mark.skipif(not all(map(shutil.which, ("qemu-img", "xorrisofs", "isoinfo", "mformat"))),
                                 reason="needs qemu-img, xorrisofs, isoinfo and mtools")


@needs_tools
def test_disks_made_for_real_have_their_sizes(tmp_path):
    base = tmp_path / "base"
    base.write_bytes(b"x" + bytes(MIB))
    cached = plan.Base(str(base), "raw", MIB + 1)
    disks = plan.plan(order(disks=(Disk(kind="root", size_gb=1), Disk(kind="swap", size_mb=4))), settings(), cached)
    DiskMaker(settings(), QemuImg(), SystemRunner()).make(order(), Folder(tmp_path), disks, cached)
    sizes = [image_files.virtual_bytes(f"{tmp_path}/{name}.qcow2") for name in _linked(tmp_path, disks)]
    assert sizes == [GIB, 4 * MIB]
    assert all((tmp_path / disk.name).stat().st_mode & 0o777 == 0o600 for disk in disks)


def _linked(folder, disks):
    for disk in disks:
        os.link(folder / disk.name, folder / f"{disk.name}.qcow2")
        yield disk.name


# --- the config drive

FILES = {"openstack/latest/meta_data.json": b'{"uuid": "x"}', "openstack/2012-08-10/user_data": bytes(range(256)),
         "ec2/latest/meta-data.json": b"{}", "openstack/content/0000": b"file"}


@needs_tools
def test_config_drive_as_a_cd_has_the_label_and_the_files(tmp_path):
    target = tmp_path / "disk.config"
    assert config_drive.ConfigDrive("iso9660", 64, SystemRunner()).write(target, FILES) == target.stat().st_size
    header = subprocess.run(["isoinfo", "-d", "-i", str(target)], capture_output=True, text=True, check=True).stdout
    assert "Volume id: config-2" in header and "Joliet" in header and "Rock Ridge" in header
    for path, content in FILES.items():
        read = subprocess.run(["isoinfo", "-R", "-i", str(target), "-x", f"/{path}"], capture_output=True, check=True)
        assert read.stdout == content
    assert target.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["disk.config"]


@needs_tools
def test_config_drive_as_a_disk_has_the_label_and_the_files(tmp_path):
    target = tmp_path / "disk.config"
    config_drive.ConfigDrive("vfat", 64, SystemRunner()).write(target, FILES)
    assert target.stat().st_size == config_drives.VFAT_BYTES
    label = subprocess.run(["mlabel", "-s", "-i", str(target), "::"], capture_output=True, text=True, check=True).stdout
    assert "Volume label is config-2" in label, "as guests look for it: names of labels are not folded"
    for path, content in FILES.items():
        read = subprocess.run(["mcopy", "-n", "-i", str(target), f"::/{path}", "-"], capture_output=True, check=True)
        assert read.stdout == content


@needs_tools
def test_config_drive_written_again_replaces_the_old_one(tmp_path):
    drive, target = config_drive.ConfigDrive("iso9660", 64, SystemRunner()), tmp_path / "disk.config"
    drive.write(target, {"a": b"old"})
    drive.write(target, {"a": b"new"})
    read = subprocess.run(["isoinfo", "-R", "-i", str(target), "-x", "/a"], capture_output=True, check=True)
    assert read.stdout == b"new"


def test_config_drive_with_too_much_in_it_is_refused(tmp_path):
    with pytest.raises(errors.guest.ConfigDriveTooBig):
        config_drive.ConfigDrive("iso9660", 1, Recorder()).write(tmp_path / "d", {"a": bytes(MIB + 1)})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["/nowhere/at/all", "../up", "a/../../up", ""])
def test_config_drive_with_a_path_that_leaves_it_is_refused(tmp_path, path):
    with pytest.raises(errors.guest.ConfigDrivePath):
        config_drive.ConfigDrive("iso9660", 1, Recorder()).write(tmp_path / "d", {path: b""})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("image_format", "device"), [("vfat", "disk"), ("iso9660", "cdrom")])
def test_config_drive_is_a_disk_or_a_cd(image_format, device):
    record = plan.config_drive(settings(config_drive_format=image_format), 5)
    assert (record.device, record.format, record.size_bytes) == (device, "raw", 5)
