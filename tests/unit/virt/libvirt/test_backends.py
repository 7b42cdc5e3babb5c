"""Back ends of disks: what is run, in which order, and what is left when something fails or is cut off."""

from __future__ import annotations

import shutil

import msgspec
import pytest

from nova import errors
from nova.model.guest.orders import Disk
from nova.privileged.lvm import Clearing, Lvm, clearing_argvs
from nova.privileged.qemu_img import QemuImg, ToolLimits
from nova.privileged.rbd import CephPool, Rbd
from nova.privileged.runner import Completed, SystemRunner
from nova.virt.libvirt import LibvirtDriver
from nova.virt.libvirt.disks import plan
from nova.virt.libvirt.disks.backends import Backends, Space
from nova.virt.libvirt.disks.folders import Folder
from nova.virt.libvirt.disks.maker import DiskMaker
from nova.virt.libvirt.disks.records import DiskRecord
from nova.virt.libvirt.guest import disk_devices as disk_xml
from nova.virt.libvirt.properties import RequestedProperties
from nova.virt.libvirt.vifs import bridge
from nova.virt.libvirt.xml import running
from tests.contract.driver_conformance import build, make_order, unbuild
from tests.fakes.ceph import FakeCeph, FakeImage
from tests.fakes.hypervisor import FakeHypervisor
from tests.unit.virt.libvirt.acting import tool_of
from tests.unit.virt.libvirt.orders import FOLDER, UUID, order, settings

GIB, MIB = 1 << 30, 1 << 20
RAW, QCOW2 = plan.Base("/cache/abc", "raw", 64 * MIB), plan.Base("/cache/def.qcow2", "qcow2", 64 * MIB)
LVM = settings(cow=False, store="lvm", place="guests")
RBD = settings(cow=False, store="rbd", place="vms", rbd_user="nova", rbd_conf="/etc/ceph/c.conf", rbd_secret="s")


class FakeLvm:
    """Volumes of one group, by the commands that change them. ``fails``: word of a command -> (code, complaint)."""

    def __init__(self, free: int = 100 * GIB) -> None:
        self.volumes: dict[str, int] = {}
        self.ran: list[str] = []
        self.fails: dict[str, tuple[int, str]] = {}
        self.free = free

    def run(self, argv, *, stdin=None, ok=(0,), environment=None):
        words = tool_of(argv)
        tool, last = words[0], words[-1].rpartition("/")[2]
        if tool not in ("lvs", "vgs"):
            self.ran.append(" ".join(words))
        if tool in self.fails:
            return Completed(self.fails[tool][0], "", self.fails[tool][1])
        if tool == "lvs":
            return Completed(0, "".join(f"  {name},{size}\n" for name, size in self.volumes.items()))
        if tool == "vgs":
            return Completed(0, f"  {self.free},{self.free - sum(self.volumes.values())}\n")
        if tool == "lvcreate":
            self.volumes[words[words.index("-n") + 1]] = int(words[words.index("-L") + 1].rstrip("b"))
        if tool == "lvrename":
            self.volumes[last] = self.volumes.pop(words[-2])
        if tool == "lvextend":
            self.volumes[last] = int(words[words.index("-L") + 1].rstrip("b"))
        if tool == "lvremove":
            del self.volumes[last]
        return Completed(0)



def maker(settings_, runner) -> DiskMaker:
    return DiskMaker(settings_, QemuImg(ToolLimits(), runner_of=lambda timeout_s: runner), runner)


ONE = order(disks=(Disk(kind="root", size_gb=1), Disk(kind="ephemeral", size_gb=2), Disk(kind="swap", size_mb=8)))


@pytest.fixture
def folder(tmp_path):
    made = Folder(tmp_path / UUID)
    made.make()
    return made


# --- logical volumes

def test_volumes_are_made_filled_and_named_when_they_are_whole(folder):
    lvm, disks = FakeLvm(), plan.plan(ONE, LVM, RAW)
    maker(LVM, lvm).make(ONE, folder, disks, RAW)
    part = f"{UUID}_disk.part"
    assert lvm.ran[:3] == [
        f"lvcreate -q --yes --wipesignatures n -L {GIB}b -n {part} guests",
        f"qemu-img convert -n -f raw -O raw /cache/abc /dev/guests/{part}",
        f"lvrename -q guests {part} {UUID}_disk"]
    assert f"mkfs.ext4 -q -F -L ephemeral0 /dev/guests/{UUID}_disk.eph0.part" in lvm.ran
    assert lvm.volumes == {f"{UUID}_disk": GIB, f"{UUID}_disk.eph0": 2 * GIB, f"{UUID}_disk.swap": 8 * MIB}


def test_volumes_that_are_there_are_not_made_again(folder):
    lvm, disks = FakeLvm(), plan.plan(ONE, LVM, RAW)
    maker(LVM, lvm).make(ONE, folder, disks, RAW)
    before = len(lvm.ran)
    maker(LVM, lvm).make(ONE, folder, disks, RAW)
    assert len(lvm.ran) == before


def test_volume_that_was_cut_off_is_cleared_and_begun_anew(folder):
    lvm, disks = FakeLvm(), plan.plan(ONE, LVM, RAW)[:1]
    lvm.volumes[f"{UUID}_disk.part"] = GIB
    maker(LVM, lvm).make(ONE, folder, disks, RAW)
    assert lvm.ran[:2] == [f"blkdiscard --zeroout --length {GIB} /dev/guests/{UUID}_disk.part",
                           f"lvremove -q -f guests/{UUID}_disk.part"]
    assert lvm.volumes == {f"{UUID}_disk": GIB}


@pytest.mark.parametrize("cut_at", ["lvcreate", "qemu-img", "lvrename"])
def test_volume_that_failed_midway_is_gone_after_removal(folder, cut_at):
    lvm, disks = FakeLvm(), plan.plan(ONE, LVM, RAW)[:1]
    folder.keep_disks(disks)
    lvm.fails[cut_at] = (5, "something")
    with pytest.raises(errors.HostRefused):
        maker(LVM, lvm).make(ONE, folder, disks, RAW)
    lvm.fails.clear()
    for _ in range(2):
        maker(LVM, lvm).remove(folder)
        assert lvm.volumes == {}


def test_removal_clears_and_spares_what_is_kept(folder):
    lvm, disks = FakeLvm(), plan.plan(ONE, LVM, RAW)
    maker(LVM, lvm).make(ONE, folder, disks, RAW)
    folder.keep_disks((*disks, plan.config_drive(LVM)))
    maker(LVM, lvm).remove(folder, keep={"ephemeral"})
    assert lvm.volumes == {f"{UUID}_disk.eph0": 2 * GIB}
    assert f"blkdiscard --zeroout --length {GIB} /dev/guests/{UUID}_disk" in lvm.ran


def test_volume_that_cannot_be_cleared_is_not_given_away(folder):
    lvm, disks = FakeLvm(), plan.plan(ONE, LVM, RAW)[:1]
    maker(LVM, lvm).make(ONE, folder, disks, RAW)
    folder.keep_disks(disks)
    lvm.fails["blkdiscard"] = (1, "Input/output error")
    with pytest.raises(errors.host.Lvm, match="clear a volume"):
        maker(LVM, lvm).remove(folder)
    assert f"{UUID}_disk" in lvm.volumes


@pytest.mark.parametrize(("clearing", "expected"), [
    (Clearing(), [["blkdiscard", "--zeroout", "--length", "1000", "/dev/x"]]),
    (Clearing("zero", 100), [["blkdiscard", "--zeroout", "--length", "100", "/dev/x"]]),
    (Clearing("shred", 5000), [["shred", "-n", "3", "-s", "1000", "/dev/x"]]), (Clearing("none"), [])])
def test_clearing_is_as_the_operator_wants(clearing, expected):
    assert clearing_argvs(clearing, "/dev/x", 1000) == expected


def test_full_group_is_a_full_disk():
    lvm = FakeLvm()
    lvm.fails["lvcreate"] = (5, 'Volume group "guests" has insufficient free space (3 extents): 256 required.')
    with pytest.raises(errors.host.DiskFull):
        Lvm("guests", lvm).create("a", GIB)


def test_group_that_is_not_there_is_said():
    lvm = FakeLvm()
    lvm.fails["lvs"] = (5, '  Volume group "guests" not found\n  Cannot process volume group guests')
    with pytest.raises(errors.host.Lvm, match="Cannot process volume group guests"):
        Lvm("guests", lvm).volumes()


def test_volume_grows_and_never_shrinks(folder):
    lvm, (root, *_) = FakeLvm(), plan.plan(ONE, LVM, RAW)
    lvm.volumes[f"{UUID}_disk"] = GIB
    store = maker(LVM, lvm).backends.of(root)
    store.grow(folder, root)
    assert lvm.ran == []
    store.grow(folder, msgspec.structs.replace(root, size_bytes=2 * GIB))
    assert lvm.ran == [f"lvextend -q --yes -L {2 * GIB}b guests/{UUID}_disk"]


# --- Ceph

def test_pool_gets_each_image_once_and_guests_get_clones(folder, tmp_path):
    ceph, disks = FakeCeph(), plan.plan(ONE, RBD, RAW)[:1]
    maker(RBD, ceph).make(ONE, folder, disks, RAW)
    base, part = "vms/nova-base-abc", f"vms/{UUID}_disk.part"
    assert ceph.ran == [
        f"snap purge {part}", f"rm {part}",
        f"snap purge {base}.{UUID}.part", f"rm {base}.{UUID}.part", f"import abc {base}.{UUID}.part",
        f"mv {base}.{UUID}.part {base}", f"snap create {base}@base", f"snap protect {base}@base",
        f"clone {base}@base {part}", f"resize --size 1024 {part}", f"mv {part} vms/{UUID}_disk"]
    other = msgspec.structs.replace(disks[0], place="vms/other_disk")
    begin = len(ceph.ran)
    maker(RBD, ceph).make_root(folder, other, RAW)
    assert ceph.ran[begin:] == ["snap purge vms/other_disk.part", "rm vms/other_disk.part",
                                f"clone {base}@base vms/other_disk.part", "resize --size 1024 vms/other_disk.part",
                                "mv vms/other_disk.part vms/other_disk"]


def test_base_that_another_host_brought_meanwhile_is_taken(folder):
    class Race(FakeCeph):
        def _import(self, file, at):
            super()._import(file, at)
            self.images["vms/nova-base-abc"] = FakeImage(64 * MIB)
    ceph, disks = Race(), plan.plan(ONE, RBD, RAW)[:1]
    maker(RBD, ceph).make(ONE, folder, disks, RAW)
    assert set(ceph.images) == {"vms/nova-base-abc", f"vms/{UUID}_disk"}


def test_base_in_another_format_is_imported_as_raw(folder):
    ceph = FakeCeph()
    maker(RBD, ceph).make(ONE, folder, plan.plan(ONE, RBD, QCOW2)[:1], QCOW2)
    assert "qemu-img convert -f qcow2 -O raw -S 64k def.qcow2 base.raw.part" in ceph.ran
    assert [path.name for path in folder.path.iterdir()] == []


@pytest.mark.parametrize("cut_at", ["import", "snap create", "snap protect", "clone", "resize", "mv"])
def test_image_that_failed_midway_is_made_at_the_next_try_and_gone_after_removal(folder, cut_at):
    ceph, disks = FakeCeph(), plan.plan(ONE, RBD, RAW)[:1]
    folder.keep_disks(disks)
    ceph.fails[cut_at] = (5, "rbd: error: Input/output error")
    with pytest.raises(errors.host.Rbd, match="Input/output error"):
        maker(RBD, ceph).make(ONE, folder, disks, RAW)
    ceph.fails.clear()
    maker(RBD, ceph).make(ONE, folder, disks, RAW)
    assert set(ceph.images) == {"vms/nova-base-abc", f"vms/{UUID}_disk"}
    maker(RBD, ceph).remove(folder)
    assert set(ceph.images) == {"vms/nova-base-abc"}


def test_formatted_image_is_imported_from_a_sparse_file_that_goes(folder):
    ceph, (_root, ephemeral, _swap) = FakeCeph(), plan.plan(ONE, RBD, RAW)
    maker(RBD, ceph).make(ONE, folder, (ephemeral,), None)
    assert ceph.ran[-3:] == ["mkfs.ext4 -q -F -L ephemeral0 disk.eph0.raw.part",
                             f"import disk.eph0.raw.part vms/{UUID}_disk.eph0.part",
                             f"mv vms/{UUID}_disk.eph0.part vms/{UUID}_disk.eph0"]
    assert list(folder.path.iterdir()) == []


def test_base_goes_when_no_guest_needs_it(folder):
    ceph, disks = FakeCeph(), plan.plan(ONE, RBD, RAW)[:1]
    made = maker(RBD, ceph)
    made.make(ONE, folder, disks, RAW)
    folder.keep_disks(disks)
    pool = made.backends.of(disks[0])
    assert pool.drop_base("abc") is False and "vms/nova-base-abc" in ceph.images
    made.remove(folder)
    assert pool.drop_base("abc") is True and ceph.images == {} and pool.drop_base("abc") is True


def test_image_of_a_guest_that_another_host_has_now_is_not_removed(tmp_path):
    ceph, disks = FakeCeph(), plan.plan(ONE, RBD, RAW)[:1]
    old, new = Folder(tmp_path / "1" / UUID, "old-host"), Folder(tmp_path / "2" / UUID, "new-host")
    for folder in (old, new):
        folder.make()
        folder.keep_disks(disks)
        maker(RBD, ceph).make(ONE, folder, disks, RAW)
    assert sum(command.startswith("clone") for command in ceph.ran) == 1  # the second finds the disk
    maker(RBD, ceph).remove(old)
    assert f"vms/{UUID}_disk" in ceph.images
    maker(RBD, ceph).remove(new)
    assert f"vms/{UUID}_disk" not in ceph.images


def test_full_pool_is_a_full_disk():
    ceph = FakeCeph()
    ceph.fails["create"] = (28, "rbd: create error: (28) No space left on device")
    with pytest.raises(errors.host.DiskFull):
        Rbd(CephPool("vms", "nova", "/etc/ceph/c.conf", 5), ceph).create("a", GIB)


@pytest.mark.parametrize(("pool", "uri"), [
    (CephPool("vms"), "rbd:vms/a"), (CephPool("vms", "nova", "/etc/c.conf"), "rbd:vms/a:id=nova:conf=/etc/c.conf"),
    (CephPool("v:ms", "n@=x"), "rbd:v\\:ms/a:id=n\\@\\=x")])
def test_address_of_an_image_keeps_its_characters_apart(pool, uri):
    assert pool.uri("a") == uri


# --- all of them

def test_plan_says_where_disks_are_kept():
    assert [(disk.store, disk.place, disk.format, disk.backing) for disk in plan.plan(ONE, LVM, RAW)][:2] == [
        ("lvm", f"guests/{UUID}_disk", "raw", None), ("lvm", f"guests/{UUID}_disk.eph0", "raw", None)]
    assert {disk.store for disk in plan.plan(ONE, settings(), RAW)} == {"file"}


def test_record_stands_above_what_the_settings_say_now(folder):
    lvm, disks = FakeLvm(), plan.plan(ONE, LVM, RAW)
    made = maker(settings(), lvm)
    made.make(ONE, folder, disks, RAW)
    assert made.exists(folder, disks[0]) and made.source(folder, disks[0]) == f"/dev/guests/{UUID}_disk"


@pytest.mark.parametrize("record", [{"store": "floppy", "place": "a/b"}, {"store": "lvm"}])
def test_record_of_a_back_end_that_is_not_here_refuses_the_host(record):
    with pytest.raises(errors.host.NoBackend):
        Backends(settings(), None, None).of(DiskRecord(kind="root", name="disk", format="raw", size_bytes=1, **record))


def test_space_is_that_of_the_back_end(tmp_path):
    assert maker(LVM, FakeLvm(10 * GIB)).space() == Space(10 * GIB, 10 * GIB)
    assert maker(RBD, FakeCeph()).space() == Space(100, 70)
    files = settings(tmp_path)
    files.instances_path.mkdir()
    assert maker(files, FakeLvm()).space().total_bytes > 0


# --- in libvirt's words

def _spec(settings_, record=None, cache="none"):
    disk = record or plan.plan(ONE, settings_, RAW)[0]
    return disk_xml.disk_specs((disk,), FOLDER, RequestedProperties(), "ide", disk_xml.Storage.of(settings_, cache))[0]


@pytest.mark.parametrize(("changes", "host_cache", "io"), [
    ({}, "none", None), ({"cow": False}, "none", None), ({"cow": False, "preallocate": True}, "none", "native"),
    ({"cow": False, "preallocate": True}, "writeback", None),
    ({"store": "lvm", "place": "g", "cow": False}, "writeback", "native"),
    ({"store": "lvm", "place": "g", "cow": False, "block_cache_mode": "writeback"}, "none", None),
    ({"store": "lvm", "place": "g", "cow": False, "block_cache_mode": "directsync"}, "none", "native"),
    ({"store": "rbd", "place": "p", "cow": False, "network_cache_mode": "writeback"}, "none", None)])
def test_io_is_native_where_nothing_makes_the_guest_wait(changes, host_cache, io):
    assert _spec(settings(**changes), cache=host_cache).io == io


def test_disks_are_opened_as_what_they_are():
    lvm, rbd = _spec(LVM), _spec(RBD)
    assert (lvm.path, lvm.block, lvm.rbd, lvm.cache) == (f"/dev/guests/{UUID}_disk", True, None, "none")
    assert (rbd.path, rbd.block, rbd.rbd) == (f"vms/{UUID}_disk", False, disk_xml.RbdAccess("/etc/ceph/c.conf", "nova",
                                                                                           "s"))


@pytest.mark.parametrize(("source", "path"), [
    ('<source file="/a/disk"/>', "/a/disk"), ('<source dev="/dev/g/disk"/>', "/dev/g/disk"),
    ('<source protocol="rbd" name="vms/disk"/>', "vms/disk")])
def test_disk_of_a_running_guest_is_found_by_its_source(source, path):
    definition = f"<domain><devices><disk>{source}<target dev='vda'/></disk></devices></domain>"
    assert running.target_of(definition, path) == "vda" and running.target_of(definition, "/other") is None


# --- the driver as a whole, its disks in volumes

class LvmOrReal(FakeLvm):
    """Fakes what touches volumes; other tools are real."""

    def run(self, argv, *, stdin=None, ok=(0,), environment=None):
        if argv[0].startswith(("lv", "vg", "blkdiscard")) or any("/dev/guests" in word for word in argv):
            return super().run(argv, stdin=stdin, ok=ok, environment=environment)
        return SystemRunner().run(argv, stdin=stdin, ok=ok, environment=environment)


class NoLinks:
    """Bridges need root: see tests/machine for real ones."""

    LinkError = errors.host.Link

    def exists(self, device):
        return True

    def ensure_bridge(self, *_):
        pass

    def delete(self, device):
        pass


@pytest.fixture
def rig(tmp_path, monkeypatch):
    monkeypatch.setattr(bridge, "links", NoLinks())

    class Rig:
        bridge, lvm, hypervisor, images = "br100", LvmOrReal(), FakeHypervisor(), None
    made = Rig()
    made.images, base = made, tmp_path / "base"
    made.path = lambda image_id: str(base)
    with open(base, "wb") as target:
        target.truncate(MIB)
    made.driver = LibvirtDriver(settings(tmp_path, cow=False, store="lvm", place="guests"), made.hypervisor,
                                lambda timeout_s: made.lvm)
    made.driver.connect()
    yield made
    made.driver.close()


needs_tools = pytest.mark.skipif(not shutil.which("qemu-img") or not shutil.which("xorrisofs"),
                                 reason="needs qemu-img and xorrisofs")


@needs_tools
def test_guest_in_volumes_is_built_rebooted_and_removed_without_a_rest(rig):
    wanted = make_order(rig.bridge)
    build(rig, wanted)
    volumes = dict(rig.lvm.volumes)
    assert set(volumes) == {f"{wanted.server_uuid}_{name}" for name in ("disk", "disk.eph0", "disk.swap")}
    assert f'dev="/dev/guests/{wanted.server_uuid}_disk"' in rig.hypervisor.xml[wanted.server_uuid]
    rig.driver.lifecycle.destroy(wanted.server_uuid)
    build(rig, wanted)
    assert rig.lvm.volumes == volumes
    assert rig.driver.nodes()[0].local_gb == 100
    unbuild(rig, wanted)
    assert rig.lvm.volumes == {} and rig.driver.guests() == ()


@needs_tools
def test_rebuild_keeps_the_volumes_it_is_to_keep(rig):
    wanted = make_order(rig.bridge)
    build(rig, wanted)
    rig.driver.lifecycle.destroy(wanted.server_uuid)
    rig.driver.disks.remove_disks(wanted.server_uuid, keep=frozenset({"ephemeral"}))
    assert set(rig.lvm.volumes) == {f"{wanted.server_uuid}_disk.eph0"}
    build(rig, wanted)
    assert sum("disk.eph0.part" in command and command.startswith("lvcreate") for command in rig.lvm.ran) == 1
    unbuild(rig, wanted)


@needs_tools
def test_volume_that_is_gone_is_said_at_the_start(rig):
    wanted = make_order(rig.bridge)
    build(rig, wanted)
    rig.driver.lifecycle.destroy(wanted.server_uuid)
    del rig.lvm.volumes[f"{wanted.server_uuid}_disk"]
    with pytest.raises(errors.Conflict, match="isks of guest"):
        rig.driver.lifecycle.start_new(wanted)


@needs_tools
def test_removal_that_fails_can_be_repeated(rig):
    wanted = make_order(rig.bridge)
    build(rig, wanted)
    rig.lvm.fails["lvremove"] = (5, "Logical volume guests/x in use.")
    rig.driver.lifecycle.destroy(wanted.server_uuid)
    with pytest.raises(errors.HostRefused, match="in use"):
        rig.driver.disks.remove_disks(wanted.server_uuid)
    rig.lvm.fails.clear()
    rig.driver.disks.remove_disks(wanted.server_uuid)
    assert rig.lvm.volumes == {} and rig.driver.guests() == ()
