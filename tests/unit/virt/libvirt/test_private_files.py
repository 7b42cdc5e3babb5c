"""What a guest's disks hold is nobody else's on the host, also while it is being written (OSSA-2014-001)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from nova.model.guest.orders import SnapshotOrder
from nova.model.image.images import Image
from nova.privileged.runner import Completed, PrivateRunner
from nova.virt.libvirt import LibvirtDriver
from nova.virt.libvirt.disks import maker
from tests.contract.driver_conformance import IMAGE_ID, build, make_order
from tests.contract.driver_move_cases import grown, move_order, off_and_left
from tests.fakes.hypervisor import FakeHypervisor
from tests.unit.virt.libvirt.acting import FENCE, SNAPSHOT_ID, tools
from tests.unit.virt.libvirt.orders import settings
from tests.unit.virt.libvirt.test_libvirt_driver import Rig
from tests.unit.virt.libvirt.test_rescue import rescue, rescue_images

pytestmark = tools


class Watched(Rig):
    """Looks at all files right after each program, and each copy, has ended: ``open_to_others`` are those that others
    could have read."""

    def __init__(self, tmp_path: Path, links: object, **changes: object) -> None:
        super().__init__(tmp_path, links, **changes)  # type: ignore[arg-type]
        self.open_to_others: set[str] = set()
        self.hypervisor = FakeHypervisor()
        self.driver = LibvirtDriver(settings(tmp_path, shutdown_retry_s=1, **changes), self.hypervisor,
                                    runner_of=lambda timeout_s: Watching(self, timeout_s))

    def look(self) -> None:
        for folder, below, names in os.walk(self.root):
            if not os.stat(folder).st_mode & 0o007:
                below.clear()  # nobody gets there
                continue
            found = [name for name in names if os.stat(os.path.join(folder, name)).st_mode & 0o077]
            self.open_to_others |= set(found) - {"console.log"}  # which libvirt writes, as it is set


class Watching(PrivateRunner):
    def __init__(self, rig: Watched, timeout_s: float) -> None:
        super().__init__(timeout_s)
        self.rig = rig

    def run(self, argv: Sequence[str], *, stdin: str | None = None, ok: Collection[int] = (0,),
            environment: Mapping[str, str] | None = None) -> Completed:
        done = super().run(argv, stdin=stdin, ok=ok, environment=environment)
        self.rig.look()
        return done


@pytest.fixture(params=[True, False], ids=["overlays", "raw"])
def rig(request, tmp_path, links, monkeypatch) -> Iterator[Watched]:
    made = Watched(tmp_path, links, cow=request.param)
    made.driver.connect()
    copy = shutil.copyfile

    def copied(source: object, target: object) -> object:
        done = copy(source, target)  # type: ignore[arg-type, type-var]
        made.look()
        return done
    monkeypatch.setattr(maker.shutil, "copyfile", copied)
    before = os.umask(0o022)
    yield made
    os.umask(before)
    made.close()


def test_disks_when_a_guest_lives_then_no_file_was_ever_readable_by_others(rig, tmp_path):
    rescue_images(rig, tmp_path)
    order = make_order(rig.bridge, kernel=Image(id=IMAGE_ID, disk_format="aki"))
    build(rig, order)
    rescue(rig, order, {"openstack/latest/meta_data.json": b"secret"})
    rig.driver.rescuing.unrescue(order)
    rig.driver.lifecycle.shut_down(order.server_uuid, 0)
    rig.driver.snapshots.take_snapshot(SnapshotOrder(
        server_uuid=order.server_uuid, instance_name=order.instance_name, fence=FENCE, image_id=SNAPSHOT_ID,
        quiesce=False, build=order))
    rig.driver.cold_moves.fetch(move_order(grown(order), off_and_left(rig, order)), rig.images)
    assert rig.open_to_others == set()
