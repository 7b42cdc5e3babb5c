"""Root disks as clones of the image service's own images in Ceph: of which ones, and of which never."""

from __future__ import annotations

import msgspec
import pytest

from nova import errors
from nova.model.image.images import Image
from nova.model.image.rbd_locations import RbdLocation
from nova.virt.image_clones import CloneParent
from nova.virt.libvirt.disks import plan
from nova.virt.libvirt.disks.folders import Folder
from nova.virt.libvirt.disks.image_clones import RbdImageClones
from tests.fakes.ceph import FSID, FakeCeph, FakeImage
from tests.unit.virt.libvirt.orders import UUID, settings
from tests.unit.virt.libvirt.test_backends import GIB, MIB, ONE, RBD, maker

IMAGE = "0f5f3f3e-6d0b-4c7e-9a55-9c4e5f0a1b2c"
RAW = Image(id=IMAGE, disk_format="raw")
THERE = RbdLocation(fsid=FSID, pool="images", image=IMAGE, snapshot="snap")
PARENT = CloneParent(THERE, 64 * MIB)
AT = f"vms/{UUID}_disk"


def other(**fields: str) -> RbdLocation:
    return msgspec.structs.replace(THERE, **fields)


@pytest.fixture
def ceph() -> FakeCeph:
    made = FakeCeph()
    for pool in ("images", "vms", "volumes"):
        kept = FakeImage(64 * MIB, "the image")
        kept.snapshots["snap"], kept.protected = FakeImage(64 * MIB, "the image"), {"snap"}
        made.images[f"{pool}/{IMAGE}"] = kept
        made.images[f"{pool}/another"] = kept
    return made


@pytest.fixture
def clones(ceph: FakeCeph) -> RbdImageClones:
    found = maker(RBD, ceph).backends.image_clones()
    assert found is not None
    return found


@pytest.fixture
def folder(tmp_path):
    made = Folder(tmp_path / UUID, "host1")
    made.make()
    return made


def test_parent_when_one_of_the_places_is_good_then_it_is_that_one_with_its_size(clones):
    assert clones.parent(RAW, [other(fsid=FSID.replace("4", "5")), THERE]) == PARENT


@pytest.mark.parametrize(("image", "locations", "reason"), [
    (Image(id=IMAGE, disk_format="qcow2"), [THERE], "qcow2, not raw"),
    (RAW, [], "has no location of it"),
    (RAW, [other(fsid="00000000-0000-0000-0000-000000000000")], "not in the Ceph cluster of the guests' disks"),
    (RAW, [other(image="another")], "the image's id as its name"),
    (RAW, [other(pool="vms")], "in the pool of the guests' disks"),
    (RAW, [other(snapshot="gone")], "does not exist"),
    (RAW, [other(pool="nopool")], "does not exist")])
def test_parent_when_a_place_is_not_the_images_own_or_not_here_then_the_reason_is_said(
        clones, image, locations, reason):
    with pytest.raises(errors.NovaError, match=reason) as error:
        clones.parent(image, locations)
    assert error.value.code == "image.not_cloneable"


def test_parent_when_its_snapshot_may_go_then_it_is_none(clones, ceph):
    ceph.images[f"images/{IMAGE}"].protected.clear()
    with pytest.raises(errors.NovaError, match="not protected"):
        clones.parent(RAW, [THERE])


def test_parent_when_the_key_may_not_read_the_pool_then_ceph_says_so(clones, ceph):
    ceph.fails["info"] = (1, "rbd: error opening pool 'images': (1) Operation not permitted")
    with pytest.raises(errors.NovaError, match="Operation not permitted"):
        clones.parent(RAW, [THERE])


def test_clones_when_disks_are_not_in_ceph_then_there_are_none():
    assert maker(settings(), FakeCeph()).backends.image_clones() is None


def test_disk_of_a_clone_then_it_shows_the_image_and_nothing_of_it_came_by_this_host(ceph, folder):
    disks = plan.plan(ONE, RBD, PARENT)
    for _ in range(2):
        maker(RBD, ceph).make(ONE, folder, disks, PARENT)
    made = ceph.images[AT]
    assert (made.parent, made.content, made.size) == (f"images/{IMAGE}@snap", "the image", GIB)
    assert not [words for words in ceph.ran if words.startswith("import") and UUID not in words]
    assert not [words for words in ceph.ran if words.startswith("flatten")]


def test_disk_of_an_image_that_goes_then_it_needs_the_image_no_more(ceph, folder):
    goes = msgspec.structs.replace(ONE, image_goes=True)
    maker(RBD, ceph).make(goes, folder, plan.plan(goes, RBD, PARENT), PARENT)
    assert ceph.images[AT].parent is None and ceph.images[AT].content == "the image"


def test_disk_when_its_making_is_cut_off_then_it_is_made_anew(ceph, folder):
    ceph.fails["flatten"] = (5, "rbd: flatten error: (5) Input/output error")
    goes = msgspec.structs.replace(ONE, image_goes=True)
    with pytest.raises(errors.NovaError, match="flatten"):
        maker(RBD, ceph).make(goes, folder, plan.plan(goes, RBD, PARENT), PARENT)
    assert AT not in ceph.images
    ceph.fails.clear()
    maker(RBD, ceph).make(goes, folder, plan.plan(goes, RBD, PARENT), PARENT)
    assert ceph.images[AT].parent is None and f"{AT}.part" not in ceph.images
