"""Two hosts of the libvirt driver with one pool of Ceph: the cases of every driver's moves, and what is the pool's
own."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from nova import errors
from nova.model.server.states import PowerState
from nova.privileged import disk_exports
from nova.privileged.runner import SystemRunner
from nova.virt.libvirt import LibvirtDriver
from nova.virt.libvirt.settings.moves import MoveSettings
from tests.contract.driver_conformance import build, make_order, unbuild
from tests.contract.driver_move_cases import MoveCases, move_order, off_and_left
from tests.fakes.ceph import FakeCeph
from tests.fakes.hypervisor import FakeHypervisor
from tests.unit.virt.libvirt.orders import settings
from tests.unit.virt.libvirt.test_libvirt_driver import Rig, links, sparse
from tests.unit.virt.libvirt.test_libvirt_moves import two

__all__ = ["links"]
pytestmark = [pytest.mark.one_in(2), pytest.mark.skipif(
    not all(map(shutil.which, ("xorrisofs", "qemu-img", "bwrap"))),
    reason="needs xorrisofs, qemu-img and bubblewrap")]
SECRET = "457eb676-33da-42ec-9a8c-9293d545c337"


class PooledRig(Rig):
    """A host. What it knows of its guests is in a directory of its own, their disks are in the pool."""

    def __init__(self, path: Path, links, ceph: FakeCeph) -> None:
        path.mkdir()
        self.gates, self.ceph = Path(tempfile.mkdtemp(prefix="gates")), ceph  # a socket's path is short
        self.hypervisor, self.links, self.root = FakeHypervisor(), links, path / "instances"
        self.hypervisor.secrets[SECRET] = b"key"
        told = settings(path, cow=False, store="rbd", place="vms", rbd_user="nova", rbd_conf="/etc/ceph/c.conf",
                        rbd_secret=SECRET, tpm_path=path / "swtpm", moves=MoveSettings(migrations_path=self.gates))
        self.driver = LibvirtDriver(told, self.hypervisor, lambda timeout_s: ceph)
        self.base = path / "base"
        sparse(self.base, 1 << 20)
        self.images = self
        self.driver.connect()

    def close(self) -> None:
        shutil.rmtree(self.gates)
        for folder in self.driver.tools.folders.all():
            disk_exports.withdraw(folder.path)
        self.driver.close()

    def mark(self, order, text: str) -> None:
        self.ceph.images[f"vms/{order.server_uuid}_disk"].content = text

    def marked(self, order) -> str:
        return self.ceph.images[f"vms/{order.server_uuid}_disk"].content

    def pool(self, order) -> set[str]:
        return {name.partition("_")[2] for name in self.ceph.images if order.server_uuid in name}


@pytest.fixture
def rig(tmp_path, links):
    ceph = FakeCeph(SystemRunner())
    made = two(PooledRig(tmp_path / "a", links, ceph), PooledRig(tmp_path / "b", links, ceph))
    yield made
    for host in (made, made.other):
        host.close()


@pytest.fixture
def order(rig):
    made = make_order(rig.bridge)
    yield made
    for host in (rig, rig.other):
        host.driver.cold_moves.forget(made.server_uuid)
        unbuild(host, made)
    assert rig.pool(made) == set()


class TestMovesWithAPool(MoveCases):
    """The usual cases, and at the end of each nothing of the guest is in the pool."""


def test_guest_when_it_is_built_then_all_its_disks_are_in_the_pool_and_its_drive_is_written_anew(rig, order):
    build(rig, order)
    assert rig.pool(order) == {"disk", "disk.eph0", "disk.swap", "disk.config"}
    assert not [path.name for path in (rig.root / order.server_uuid).iterdir() if path.name.startswith("disk.")
                and path.name != "disks.json"]
    rig.driver.disks.write_config_drive(order, {"openstack/latest/meta_data.json": b"{}"})
    assert rig.pool(order) == {"disk", "disk.eph0", "disk.swap", "disk.config"}
    text = rig.hypervisor.xml[order.server_uuid]
    assert f'name="vms/{order.server_uuid}_disk.config"' in text and f'secret type="ceph" uuid="{SECRET}"' in text


def test_drive_when_it_is_written_anew_after_a_move_then_a_revert_finds_it(rig, order):
    build(rig, order)
    source = off_and_left(rig, order)
    there = rig.other.driver
    there.cold_moves.fetch(move_order(order, source), rig.other.images)
    there.disks.write_config_drive(order, {"openstack/latest/meta_data.json": b"{}"})
    there.disks.remove_disks(order.server_uuid)
    assert "disk.config" in rig.pool(order)
    assert rig.driver.cold_moves.restore_source(order.server_uuid) and "disk.config" in rig.pool(order)


def test_live_migration_when_blocks_shall_be_copied_then_it_is_refused(rig, order):
    build(rig, order)
    source = rig.driver.live_moves.describe(order.server_uuid)
    with pytest.raises(errors.move.SharedStorage):
        rig.other.driver.live_moves.prepare_arrival(move_order(order, source, block=True), rig.images)


def test_evacuated_guest_when_its_host_is_back_then_only_what_lies_beside_the_disks_goes(rig, order):
    build(rig, order)
    rig.mark(order, "precious")
    there = rig.other.driver
    assert there.disks.pooled(order) and rig.driver.disks.pooled(order)
    there.disks.create_disks(order, rig.other.images)
    there.disks.write_config_drive(order, {"openstack/latest/meta_data.json": b"{}"})
    assert there.lifecycle.start_new(order) == PowerState.RUNNING
    rig.driver.lifecycle.destroy(order.server_uuid)
    rig.driver.interfaces.unplug(order.server_uuid, order)
    for _ in range(2):
        rig.driver.disks.leave_disks(order.server_uuid)
    assert rig.left_over(order) == [] and rig.marked(order) == "precious"
    rig.driver.disks.remove_disks(order.server_uuid)
    assert len(rig.pool(order)) == 4


def test_evacuation_when_it_is_undone_then_the_disks_are_as_they_were(rig, order):
    build(rig, order)
    rig.mark(order, "precious")
    there = rig.other.driver
    there.disks.create_disks(order, rig.other.images)
    for _ in range(2):
        there.disks.remove_disks(order.server_uuid, frozenset(), True)
    assert rig.other.left_over(order) == [] and rig.marked(order) == "precious"


def test_guest_that_was_never_built_has_nothing_in_the_pool(rig, order):
    assert not rig.driver.disks.pooled(order)


def test_image_when_it_leaves_the_cache_then_its_copy_in_the_pool_goes_with_the_last_guest(rig, order):
    build(rig, order)
    rig.driver.disks.drop_images(("base",))
    assert "vms/nova-base-base" in rig.ceph.images
    unbuild(rig, order)
    rig.driver.disks.drop_images(("base", "another"))
    assert "vms/nova-base-base" not in rig.ceph.images


def test_driver_when_its_secret_cannot_be_made_then_it_does_not_start(rig):
    rig.hypervisor.secrets.clear()
    with pytest.raises(errors.host.CephSecret):
        rig.driver.connect()
