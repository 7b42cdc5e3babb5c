"""Guests' disks in a pool that all hosts see: who may remove them, at each moment of a move; what is busy; which part
of the pool is whose."""

from __future__ import annotations

import base64
from pathlib import Path

import msgspec
import pytest

from nova import errors
from nova.privileged.qemu_img import ImageFile, QemuImg, ToolLimits
from nova.privileged.rbd import CephPool, Rbd
from nova.virt.libvirt.ceph_secrets import ensure_secret, keyrings
from nova.virt.libvirt.disks import plan
from nova.virt.libvirt.disks.backends import Space
from nova.virt.libvirt.disks.backends.pool import COUNTED_FOR_S, SILENT_S, PoolHosts, PoolTrash
from nova.virt.libvirt.disks.folders import Folder
from nova.virt.libvirt.disks.records import DiskRecord
from nova.virt.libvirt.moves.file_transfer import WantedFile
from nova.virt.libvirt.moves.pooled import PooledDisks
from tests.contract.driver_conformance import eventually
from tests.fakes.ceph import FakeCeph, FakeImage
from tests.fakes.hypervisor import FakeHypervisor
from tests.unit.virt.libvirt.orders import UUID, settings
from tests.unit.virt.libvirt.test_backends import GIB, MIB, ONE, RAW, RBD, maker

ROOT, EPHEMERAL, SWAP = plan.plan(ONE, RBD, RAW)
AT = f"vms/{UUID}_disk"
SECRET = "457eb676-33da-42ec-9a8c-9293d545c337"


class Host:
    """A host's folders of the guest, and what it does with the pool."""

    def __init__(self, path: Path, name: str, ceph: FakeCeph) -> None:
        self.folder, self.copy = Folder(path / name / UUID, name), Folder(path / name / f"{UUID}_resize", name)
        self.name, self.maker = name, maker(RBD, ceph)
        self.moves = PooledDisks(self.maker.backends, RBD)

    def build(self) -> Host:
        self.folder.make()
        self.folder.keep_disks((ROOT, EPHEMERAL, SWAP))
        self.maker.make(ONE, self.folder, self.folder.disks(), RAW)
        return self

    def leave(self) -> None:
        self.moves.keep(self.folder)
        self.folder.path.rename(self.copy.path)

    def fetch(self, root_gb: int = 1, swap: DiskRecord = SWAP) -> None:
        self.folder.make()
        kept = [self.moves.take(self.folder, WantedFile(ROOT, root_gb * GIB)),
                self.moves.take(self.folder, WantedFile(EPHEMERAL))]
        self.moves.make_way(self.folder, (swap,))
        self.folder.keep_disks((*kept, swap))
        self.maker.make(ONE, self.folder, self.folder.disks(), None)

    def restore(self) -> None:
        self.moves.take_back(self.copy, self.folder)
        self.copy.path.rename(self.folder.path)

    def forget(self) -> None:
        self.moves.forget(self.copy, self.folder)
        self.copy.remove()

    def remove(self) -> None:
        self.maker.remove(self.folder)
        self.folder.remove()


@pytest.fixture
def ceph():
    return FakeCeph()


@pytest.fixture
def source(tmp_path, ceph):
    return Host(tmp_path, "source", ceph).build()


@pytest.fixture
def destination(tmp_path, ceph):
    return Host(tmp_path, "destination", ceph)


def of_guest(ceph: FakeCeph) -> set[str]:
    return {name.removeprefix(f"vms/{UUID}_") for name in ceph.images if UUID in name}


ALL = {"disk", "disk.eph0", "disk.swap"}


def test_cold_move_when_it_is_confirmed_then_the_disks_are_the_destinations(ceph, source, destination):
    for _ in range(2):
        source.moves.keep(source.folder)
    source.leave()
    for _ in range(2):
        destination.fetch(root_gb=2)
    assert ceph.images[AT].size == 2 * GIB and "nova-resize" in ceph.images[AT].snapshots
    source.forget()
    assert ceph.images[AT].notes == {"nova-host": "destination"} and not ceph.images[AT].snapshots
    assert of_guest(ceph) == ALL
    destination.remove()
    assert of_guest(ceph) == set()


def test_cold_move_when_it_is_reverted_then_the_disks_are_as_they_were_and_the_sources(ceph, source, destination):
    ceph.images[AT].content = "before"
    source.leave()
    destination.fetch(root_gb=2)
    ceph.images[AT].content = "after"
    destination.remove()
    assert "disk" in of_guest(ceph)
    source.restore()
    assert (ceph.images[AT].content, ceph.images[AT].size) == ("before", GIB)
    assert ceph.images[AT].notes == {"nova-host": "source"} and not ceph.images[AT].snapshots
    source.remove()
    assert of_guest(ceph) == set()


def test_cold_move_when_the_destination_is_told_late_that_it_was_reverted_then_it_removes_nothing(
        ceph, source, destination):
    source.leave()
    destination.fetch()
    source.restore()
    destination.remove()
    assert of_guest(ceph) == ALL


@pytest.mark.parametrize("destination_first", [True, False])
def test_delete_of_a_moved_server_when_its_hosts_are_told_in_any_order_then_nothing_is_left(
        ceph, source, destination, destination_first):
    source.leave()
    destination.fetch()
    for end in (destination.remove, source.forget) if destination_first else (source.forget, destination.remove):
        end()
    assert of_guest(ceph) == set()


def test_delete_when_the_destination_never_had_the_disks_then_the_source_removes_them(ceph, source):
    source.leave()
    source.forget()
    assert of_guest(ceph) == set()


def test_leave_when_an_earlier_one_was_cut_off_then_the_disk_is_kept_as_it_is_now(ceph, source):
    source.moves.keep(source.folder)
    ceph.images[AT].content = "written since"
    source.leave()
    source.restore()
    assert ceph.images[AT].content == "written since"


@pytest.mark.parametrize("reverted", [True, False])
def test_resize_on_one_host_when_it_ends_then_the_disks_of_one_side_are_left(ceph, source, reverted):
    another = msgspec.structs.replace(SWAP, size_bytes=16 * MIB)
    source.leave()
    source.fetch(root_gb=3, swap=another)
    if reverted:
        source.moves.take_back(source.copy, source.folder)
        source.folder.discard()
        source.copy.path.rename(source.folder.path)
    else:
        source.forget()
    assert of_guest(ceph) == ALL
    assert ceph.images[f"{AT}.swap"].size == (8 if reverted else 16) * MIB
    assert ceph.images[AT].size == (1 if reverted else 3) * GIB and not ceph.images[AT].snapshots
    source.remove()
    assert of_guest(ceph) == set()


def test_revert_when_the_destination_made_and_removed_another_swap_then_the_old_one_is_made_anew(
        ceph, source, destination):
    source.leave()
    destination.fetch(swap=msgspec.structs.replace(SWAP, size_bytes=16 * MIB))
    destination.remove()
    assert "disk.swap" not in of_guest(ceph)
    source.restore()
    assert of_guest(ceph) == ALL


def test_live_migration_when_it_ends_then_the_source_knows_of_no_disk_and_removes_none(ceph, source, destination):
    destination.folder.make()
    destination.folder.keep_disks(source.folder.disks())
    for _ in range(2):
        source.moves.hand_over(source.folder)
    source.remove()
    assert of_guest(ceph) == ALL and ceph.images[AT].notes["nova-host"] == "-"
    destination.moves.own(destination.folder)
    assert ceph.images[AT].notes["nova-host"] == "destination"
    destination.remove()
    assert of_guest(ceph) == set()


def test_live_migration_when_it_fails_then_the_destination_removes_no_disk(ceph, source, destination):
    destination.folder.make()
    destination.folder.keep_disks(source.folder.disks())
    destination.remove()
    assert of_guest(ceph) == ALL


def test_evacuation_when_it_is_undone_then_the_disks_stay_and_are_the_old_hosts_again(ceph, source, destination):
    destination.build()
    assert ceph.images[AT].notes["nova-host"] == "destination"
    destination.maker.remove(destination.folder, spare_pooled=True)
    assert of_guest(ceph) == ALL
    source.remove()
    assert of_guest(ceph) == set()


@pytest.mark.parametrize("place", ["vms/11111111-2222-3333-4444-555555555555_disk", "volumes/volume-1",
                                   f"other/{UUID}_disk", f"vms/{UUID}_disk.swap"])
def test_source_that_names_an_image_that_is_not_the_guests_own_is_refused(source, place):
    with pytest.raises(errors.move.OtherPool, match="in the pool vms"):
        source.moves.check(UUID, [msgspec.structs.replace(ROOT, place=place)])
    source.moves.check(UUID, [ROOT, EPHEMERAL, SWAP])


def test_host_without_a_pool_takes_no_guest_of_one(tmp_path, ceph):
    with pytest.raises(errors.move.OtherPool):
        PooledDisks(maker(settings(), ceph).backends, settings()).check(UUID, [ROOT])


# --- what is busy

class Hasty:
    """Time passes at once; at the ``ends``-th look whoever had the image open lets go of it."""

    def __init__(self, ceph: FakeCeph, ends: int) -> None:
        self.ceph, self.ends, self.slept = ceph, ends, 0

    def sleep(self, seconds: float) -> None:
        self.slept += 1
        if self.slept == self.ends:
            self.ceph.open.clear()

    def now(self) -> float:
        return 0.0


def pool(ceph: FakeCeph) -> Rbd:
    return Rbd(CephPool("vms", "nova", "/etc/ceph/c.conf", 5), ceph)


def test_image_that_is_open_when_it_is_removed_then_its_name_is_free_and_it_goes_later(ceph, source):
    ceph.open.add(AT)
    assert pool(ceph).remove(f"{UUID}_disk") is False
    assert "disk" not in of_guest(ceph) and list(ceph.trash) == [f"{UUID}_disk"]
    clock = Hasty(ceph, 2)
    PoolTrash(5, 5.0, clock).empty(pool(ceph))
    assert ceph.trash == {} and clock.slept == 2


def test_trash_when_an_image_stays_open_then_it_is_given_up_and_said(ceph, source, caplog):
    ceph.open.add(AT)
    pool(ceph).remove(f"{UUID}_disk")
    PoolTrash(3, 5.0, Hasty(ceph, 99)).empty(pool(ceph))
    assert "rbd trash ls vms" in caplog.text and len(ceph.trash) == 1
    ceph.open.clear()
    PoolTrash(3, 5.0, Hasty(ceph, 99)).empty(pool(ceph))
    assert ceph.trash == {}


def test_trash_when_others_put_something_there_then_it_is_left_alone(ceph):
    ceph.trash["somebodys"] = FakeImage(MIB)
    PoolTrash(1, 5.0, Hasty(ceph, 1)).empty(pool(ceph))
    assert list(ceph.trash) == ["somebodys"]


def test_trash_when_ceph_is_away_then_the_thread_says_so_and_another_may_begin(ceph, caplog):
    ceph.fails["trash ls"] = (110, "rbd: couldn't connect to the cluster!")
    trash = PoolTrash(1, 0.0, Hasty(ceph, 1))
    for number in (1, 2):
        assert eventually(lambda wanted=number: trash.watch(pool(ceph)) or caplog.text.count(
            "could not empty the trash") >= wanted, 10)


def test_removal_of_a_server_when_its_disk_is_open_then_it_succeeds_at_once(ceph, source):
    ceph.open.add(AT)
    source.remove()
    assert of_guest(ceph) == set() and list(ceph.trash) == [f"{UUID}_disk"]


# --- the part of a host

def test_space_when_hosts_share_a_pool_then_each_has_an_equal_part_and_silent_ones_none(ceph):
    now = [1000.0]
    first, second = (PoolHosts(lambda name=name: name, lambda: now[0]) for name in ("one", "two"))
    assert first.count(pool(ceph)) == 1 and second.count(pool(ceph)) == 2
    assert first.count(pool(ceph)) == 1  # it believes that for a while
    now[0] += COUNTED_FOR_S
    assert first.count(pool(ceph)) == 2
    now[0] += SILENT_S
    assert first.count(pool(ceph)) == 1


def test_space_of_a_host_is_its_part_of_the_pool(ceph):
    ceph.run(["rbd", *ceph.options, "create", "--size", "1", "vms/nova-hosts"])
    ceph.images["vms/nova-hosts"].notes["another"] = "99999999999"
    assert maker(RBD, ceph).space() == Space(50, 35)


# --- keys

def keyring(folder: Path, text: str, user: str = "nova") -> str:
    (folder / f"ceph.client.{user}.keyring").write_text(text)
    return str(folder / "ceph.conf")


def test_secret_when_libvirt_has_none_then_it_is_made_of_the_keyring_and_shown_to_nobody(tmp_path):
    hypervisor, defined = FakeHypervisor(), []
    keep = hypervisor.keep_secret
    hypervisor.keep_secret = lambda uuid, xml, value: (defined.append(xml), keep(uuid, xml, value))
    key = base64.b64encode(b"not this one").decode()
    conf = keyring(tmp_path, f"[client.other]\n\tkey = {key}\n[client.nova]\n\tkey = AQBq3vJkAAAAABAAq1Wc3g==\n")
    for _ in range(2):
        ensure_secret(hypervisor, "nova", SECRET, conf)
    assert hypervisor.secrets[SECRET] == base64.b64decode("AQBq3vJkAAAAABAAq1Wc3g==") and len(defined) == 1
    assert 'private="yes"' in defined[0] and "AQBq" not in defined[0]


@pytest.mark.parametrize("text", [None, "", "[client.other]\nkey = AQBq3vJkAAAAABAAq1Wc3g==\n",
                                  "[client.nova]\nkey = !!\n"])
def test_secret_when_there_is_no_usable_keyring_then_the_error_says_what_to_do(tmp_path, text):
    conf = keyring(tmp_path, text) if text is not None else str(tmp_path / "ceph.conf")
    with pytest.raises(errors.host.CephSecret, match=r"ceph\.client\.nova\.keyring"):
        ensure_secret(FakeHypervisor(), "nova", SECRET, conf)


def test_keyrings_when_a_configuration_is_named_then_those_beside_it_come_first():
    assert [str(path) for path in keyrings("nova", "/srv/ceph.conf")] == [
        "/srv/ceph.client.nova.keyring", "/etc/ceph/ceph.client.nova.keyring"]
    assert [str(path) for path in keyrings("nova")] == ["/etc/ceph/ceph.client.nova.keyring"]


def test_tool_that_reads_an_image_then_it_sees_the_users_keyring_and_no_other(tmp_path):
    ceph = FakeCeph()
    seen: list[list[str]] = []
    ceph.run = lambda argv, **_: (seen.append(list(argv)), FakeCeph.run(ceph, argv))[1]  # type: ignore[method-assign]
    uri = CephPool("vms", "nova", "/srv/a:b.conf").uri("disk")
    QemuImg(ToolLimits(), runner_of=lambda timeout_s: ceph).convert(ImageFile(uri, "raw"),
                                                                    ImageFile(str(tmp_path / "out"), "raw"))
    bound = {word for word, before in zip(seen[0][1:], seen[0], strict=False) if before == "--ro-bind-try"}
    assert {"/srv/a:b.conf", "/srv/ceph.client.nova.keyring", "/etc/ceph"} <= bound and "/srv" not in bound
