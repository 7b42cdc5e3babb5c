"""Disks in logical volumes, for real: a volume group on a loop device. It needs a kernel with a device-mapper."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from pathlib import Path

import msgspec
import pytest

from nova import errors
from nova.model.guest.orders import Disk
from nova.privileged.lvm import Clearing, Lvm
from nova.privileged.qemu_img import QemuImg
from nova.privileged.runner import SystemRunner
from nova.virt.libvirt.disks import plan
from nova.virt.libvirt.disks.folders import Folder
from nova.virt.libvirt.disks.maker import DiskMaker
from tests.contract.driver_conformance import make_order
from tests.unit.virt.libvirt.orders import settings

MIB = 1 << 20


def unable() -> str | None:
    if os.geteuid() != 0:
        return "needs root"
    if missing := [name for name in ("lvcreate", "dmsetup", "losetup", "qemu-img") if not shutil.which(name)]:
        return f"{', '.join(missing)} not installed"
    done = subprocess.run(["dmsetup", "version"], capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else "this kernel has no device-mapper"


pytestmark = [pytest.mark.in_turn(4, 5),
              pytest.mark.skipif(unable() is not None, reason=f"no logical volumes here: {unable()}")]


@pytest.fixture
def group(tmp_path):
    """An empty volume group of 500 MiB, its name."""
    backing, name = tmp_path / "physical", f"nova-test-{uuid.uuid4().hex[:8]}"
    with open(backing, "wb") as target:
        target.truncate(500 * MIB)
    loop = subprocess.run(["losetup", "-f", "--show", str(backing)], capture_output=True, text=True,
                          check=True).stdout.strip()
    try:
        subprocess.run(["vgcreate", "-q", name, loop], check=True, capture_output=True)
        yield name
        subprocess.run(["vgremove", "-q", "-f", name], check=True, capture_output=True)
    finally:
        subprocess.run(["losetup", "-d", loop], check=True)


def test_disks_are_made_read_grown_and_removed(group, tmp_path):
    base = tmp_path / "base"
    base.write_bytes(b"mark" * 1024 + bytes(8 * MIB - 4096))
    cached, kept = plan.Base(str(base), "raw", 8 * MIB), settings(cow=False, store="lvm", place=group)
    order = make_order(disks=(Disk(kind="root"), Disk(kind="swap", size_mb=8)))
    folder, disks = Folder(tmp_path / order.server_uuid), plan.plan(order, kept, cached)
    folder.make()
    folder.keep_disks(disks)
    maker = DiskMaker(kept, QemuImg(), SystemRunner())
    maker.make(order, folder, disks, cached)
    device = Path(maker.source(folder, disks[0]))
    with open(device, "rb") as root:
        assert root.read(8) == b"markmark"
    swap = subprocess.run(["blkid", "-p", "-o", "value", "-s", "LABEL", maker.source(folder, disks[1])],
                          capture_output=True, text=True, check=True)
    assert swap.stdout.strip() == "swap"
    maker.backends.of(disks[0]).grow(folder, msgspec.structs.replace(disks[0], size_bytes=32 * MIB))
    assert Lvm(group, SystemRunner()).volumes()[f"{order.server_uuid}_disk"] == 32 * MIB
    maker.remove(folder)
    maker.remove(folder)
    assert Lvm(group, SystemRunner()).volumes() == {}


@pytest.mark.parametrize(("way", "left"), [("zero", bytes(4)), ("none", b"mark")])
def test_what_a_removed_volume_held_is_read_by_nobody_but_where_the_operator_says_so(group, way, left):
    lvm = Lvm(group, SystemRunner(), Clearing(way))
    lvm.create("first", 8 * MIB)
    with open(lvm.device("first"), "r+b") as device:
        device.seek(MIB)
        device.write(b"mark")
    lvm.remove("first")
    lvm.create("second", 8 * MIB)
    with open(lvm.device("second"), "rb") as device:
        device.seek(MIB)
        assert device.read(4) == left
    lvm.remove("second")


def test_full_group_refuses(group):
    with pytest.raises(errors.host.DiskFull):
        Lvm(group, SystemRunner()).create("large", 10_000 * MIB)
