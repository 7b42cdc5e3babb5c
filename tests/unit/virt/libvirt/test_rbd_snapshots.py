"""Snapshots made within Ceph: whole or not there, wherever it breaks off."""

from __future__ import annotations

import contextlib

import pytest

from nova import errors
from nova.virt.libvirt.disks.folders import Folder
from nova.virt.libvirt.disks.plan import plan
from nova.virt.libvirt.disks.rbd_snapshots import RbdSnapshots
from tests.fakes.ceph import FSID, FakeCeph
from tests.unit.virt.libvirt.orders import UUID
from tests.unit.virt.libvirt.test_backends import ONE, RAW, RBD, maker

IMAGE = "0f5f3f3e-6d0b-4c7e-9a55-9c4e5f0a1b2c"
DISK, AT, KEPT = f"{UUID}_disk", f"vms/{UUID}_disk", f"snapshots/{IMAGE}"
DIRECT = type(RBD)(**{**{name: getattr(RBD, name) for name in RBD.__dataclass_fields__}, "snapshot_pool": "snapshots"})
STEPS = ("snap create", "snap protect", "clone", "flatten", "snap unprotect", "snap rm")


class Host:
    def __init__(self, path) -> None:
        self.ceph = FakeCeph()
        self.maker, self.folder = maker(DIRECT, self.ceph), Folder(path / UUID, "host1")
        self.folder.make()
        self.folder.keep_disks(plan(ONE, DIRECT, RAW))
        self.maker.make(ONE, self.folder, self.folder.disks(), RAW)
        self.ceph.images[AT].content = "what the guest wrote"

    @property
    def snapshots(self) -> RbdSnapshots:
        found = self.maker.backends.snapshots()
        assert found is not None
        return found

    def make(self) -> None:
        self.snapshots.make(DISK, IMAGE, contextlib.nullcontext())

    def traces(self) -> tuple[list[str], list[str]]:
        """Of snapshots: in their pool, and at the disk."""
        of_disk = self.ceph.images[AT].snapshots if AT in self.ceph.images else ()
        return [name for name in self.ceph.images if name.startswith("snapshots/")], list(of_disk)


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


def test_snapshot_when_made_then_it_is_an_image_of_its_own_and_the_disk_has_nothing_more(host):
    host.make()
    made = host.ceph.images[KEPT]
    assert (made.content, made.parent, made.protected) == ("what the guest wrote", None, {"snap"})
    assert host.snapshots.find(IMAGE).url == f"rbd://{FSID}/snapshots/{IMAGE}/snap" and host.traces() == ([KEPT], [])


@pytest.mark.parametrize("step", STEPS)
def test_snapshot_when_a_step_fails_then_nothing_is_left_once_ceph_is_well(host, step):
    host.ceph.fails[step] = (5, "rbd: Input/output error")
    with pytest.raises(errors.NovaError, match="Input/output"):
        host.make()
    host.ceph.fails.clear()
    assert host.snapshots.find(IMAGE) is None
    host.snapshots.drop(DISK, IMAGE)
    assert host.traces() == ([], [])


@pytest.mark.parametrize("end", ["again", "dropped", "deleted"])
@pytest.mark.parametrize("number", range(7))
def test_snapshot_when_the_process_dies_after_any_step_then_a_retry_a_drop_or_the_delete_leaves_nothing_half(
        host, number, end):
    class Killed(BaseException):
        pass

    class Dying:
        left = number

        def run(self, argv, **options):
            changes = any(" ".join(argv).find(word) >= 0 for word in STEPS)
            if self.left < 0 or changes and self.left == 0:
                self.left = -1  # and nothing is undone
                raise Killed
            self.left -= changes
            return host.ceph.run(argv, **options)
    dying = maker(DIRECT, Dying()).backends.snapshots()
    with contextlib.suppress(Killed):
        dying.make(DISK, IMAGE, contextlib.nullcontext())
    whole = host.snapshots.find(IMAGE) is not None
    if end == "again":
        host.make()
        assert host.traces() == ([KEPT], []) and host.ceph.images[KEPT].content == "what the guest wrote"
    elif end == "dropped":
        host.snapshots.drop(DISK, IMAGE)
        assert host.traces() == ([], [])
    else:
        host.maker.remove(host.folder)
        flat = KEPT in host.ceph.images and host.ceph.images[KEPT].parent is None
        assert AT not in host.ceph.images and host.traces()[0] == ([KEPT] if flat or whole else [])
        host.snapshots.drop(DISK, IMAGE)  # as the conductor's delete says, when no image has it
        assert host.traces() == ([], [])


def test_snapshots_when_the_operator_names_no_pool_then_they_are_files():
    assert maker(RBD, FakeCeph()).backends.snapshots() is None
