"""Images in a Ceph pool: ``place`` of a record is pool/image. A root disk is a clone of its image: of the image
service's own image if that is in the same cluster, else of the pool's single copy. Every host sees the same disks.

So each disk names its owner: ``nova-host`` is the host that may remove it (``-``: any host with a record of it may).
When a guest leaves a host in a cold migration, the snapshot ``nova-resize`` keeps the disk's state for that host. Until
the move is confirmed, ``nova-kept`` names that host, and no other host removes the disk.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from nova.privileged import filesystems
from nova.privileged.qemu_img import ImageFile, QemuImg
from nova.privileged.rbd import SNAPSHOT, Rbd
from nova.privileged.runner import CommandRunner
from nova.virt.image_clones import CloneParent
from nova.virt.libvirt.disks.backends.files import format_file, scratch
from nova.virt.libvirt.disks.backends.interface import Format, Space
from nova.virt.libvirt.disks.backends.pool import PoolHosts, PoolTrash
from nova.virt.libvirt.disks.folders import Folder
from nova.virt.libvirt.disks.plan import Base
from nova.virt.libvirt.disks.rbd_snapshots import RbdSnapshots
from nova.virt.libvirt.disks.records import DiskRecord

PART = ".part"
BASE = "nova-base-"
OWNER, KEPT, AS_IT_WAS = "nova-host", "nova-kept", "nova-resize"
NOBODY = "-"


class RbdDisks:
    """Disks in a Ceph pool. ``snapshots``: made within Ceph, if so configured."""

    shared = True

    def __init__(self, rbd: Rbd, tool: QemuImg, runner: CommandRunner, hosts: PoolHosts, trash: PoolTrash,
                 snapshots: RbdSnapshots | None = None) -> None:
        self._rbd, self._tool, self._runner, self._hosts, self._trash = rbd, tool, runner, hosts, trash
        self._snapshots = snapshots

    def exists(self, folder: Folder, disk: DiskRecord) -> bool:
        return self._rbd.size(_name(disk)) is not None

    def create_root(self, folder: Folder, disk: DiskRecord, base: Base | None) -> None:
        part = self._old_part_gone(disk)
        if base is None:
            self._rbd.create(part, disk.size_bytes)
        else:
            self._rbd.clone(self._base(folder, base), part)
            if disk.size_bytes > base.size_bytes:
                self._rbd.resize(part, disk.size_bytes)
        self._rbd.rename(part, _name(disk))

    def create_clone(self, folder: Folder, disk: DiskRecord, parent: CloneParent, whole: bool) -> None:
        part, location = self._old_part_gone(disk), parent.location
        self._rbd.clone_of(location.pool, location.image, location.snapshot, part)
        if whole:
            self._rbd.flatten(part)
        if disk.size_bytes > parent.size_bytes:
            self._rbd.resize(part, disk.size_bytes)
        self._rbd.rename(part, _name(disk))

    def create_empty(self, folder: Folder, disk: DiskRecord, wanted: Format) -> None:
        part = self._old_part_gone(disk)
        with scratch(folder, f"{disk.name}.raw{PART}") as raw:
            format_file(self._runner, raw, disk.size_bytes, wanted)
            self._rbd.bring(str(raw), part)
        self._rbd.rename(part, _name(disk))

    def own(self, folder: Folder, disk: DiskRecord) -> None:
        if folder.host and self._rbd.notes(_name(disk)).get(OWNER) != folder.host:
            self._rbd.note(_name(disk), OWNER, folder.host)

    def grow(self, folder: Folder, disk: DiskRecord) -> None:
        if (self._rbd.size(_name(disk)) or 0) < disk.size_bytes:
            self._rbd.resize(_name(disk), disk.size_bytes)

    def source(self, folder: Folder, disk: DiskRecord) -> str:
        return self._rbd.pool.uri(_name(disk))

    def remove(self, folder: Folder, disk: DiskRecord) -> None:
        """Remove the disk, unless another host keeps or owns it."""
        self._remove(_name(disk) + PART)
        notes = self._rbd.notes(_name(disk))
        if KEPT in notes:
            self.clear_owner(folder, disk)
        elif notes.get(OWNER, NOBODY) in (NOBODY, folder.host):
            if self._snapshots is not None:
                self._snapshots.abandon(_name(disk))
            self._remove(_name(disk))

    def space(self) -> Space:
        """Return an equal share of the pool for each host with disks in it; otherwise every host would report the whole
        pool."""
        total, free = self._rbd.space()
        count = self._hosts.count(self._rbd)
        return Space(total // count, free // count)

    def drop_base(self, file_name: str) -> bool:
        """Remove a copy of a cached image from the pool; False if guests' disks are clones of it."""
        name = f"{BASE}{file_name}"
        if self._rbd.size(name) is None:
            return True
        if not self._rbd.thaw(name):
            return False
        self._rbd.remove(name)
        return True

    # --- PooledBackend: the steps of a move

    def replace(self, folder: Folder, disk: DiskRecord, file: Path) -> None:
        part, notes = self._old_part_gone(disk), self._rbd.notes(_name(disk))
        self._rbd.bring(str(file), part)
        for key, value in notes.items():
            self._rbd.note(part, key, value)
        self._remove(_name(disk))
        self._rbd.rename(part, _name(disk))
        self.own(folder, disk)

    def keep(self, folder: Folder, disk: DiskRecord) -> None:
        self._rbd.drop(_name(disk), AS_IT_WAS)
        self._rbd.keep(_name(disk), AS_IT_WAS)
        self._rbd.note(_name(disk), KEPT, folder.host or NOBODY)

    def take_back(self, folder: Folder, disk: DiskRecord) -> None:
        size = self._rbd.size(_name(disk))
        if disk.kind == "swap" and size != disk.size_bytes:  # the destination created another one of the same name
            self._remove(_name(disk))
            self.create_empty(folder, disk, Format("swap", filesystems.label("swap", 0)))
        self.own(folder, disk)
        self._rbd.roll_back(_name(disk), AS_IT_WAS)
        self._forget(disk)

    def release(self, folder: Folder, disk: DiskRecord, used: bool) -> None:
        owner = self._rbd.notes(_name(disk)).get(OWNER, NOBODY)
        if owner in (NOBODY, folder.host) and not used:
            self._remove(_name(disk))
        else:
            self._forget(disk)

    def clear_owner(self, folder: Folder, disk: DiskRecord) -> None:
        if self._rbd.notes(_name(disk)).get(OWNER) == folder.host:
            self._rbd.note(_name(disk), OWNER, NOBODY)

    def renew(self, folder: Folder, disk: DiskRecord) -> None:
        if self._rbd.size(_name(disk)) not in (None, disk.size_bytes):
            self._remove(_name(disk))

    # --- internal

    def _forget(self, disk: DiskRecord) -> None:
        self._rbd.drop(_name(disk), AS_IT_WAS)
        self._rbd.drop_note(_name(disk), KEPT)

    def _remove(self, name: str) -> None:
        if not self._rbd.remove(name):
            self._trash.watch(self._rbd)

    def _base(self, folder: Folder, base: Base) -> str:
        """Return the pool's copy of the image, created by the first host that needs it; if several do, the first
        wins."""
        name = f"{BASE}{Path(base.path).name}"
        if SNAPSHOT in self._rbd.frozen(name):
            return name
        if self._rbd.size(name) is None:
            self._bring_base(folder, base, name)
        self._rbd.freeze(name)
        return name

    def _bring_base(self, folder: Folder, base: Base, name: str) -> None:
        part = f"{name}.{folder.path.name}{PART}"  # unique to this guest: other hosts may import the same image
        self._rbd.remove(part)
        with contextlib.ExitStack() as stack:
            path = Path(base.path)
            if base.format != "raw":
                path = stack.enter_context(scratch(folder, f"base.raw{PART}"))
                self._tool.convert(ImageFile(base.path, base.format), ImageFile(str(path), "raw"))
            self._rbd.bring(str(path), part)
        if not self._rbd.rename(part, name):
            self._rbd.remove(part)

    def _old_part_gone(self, disk: DiskRecord) -> str:
        part = _name(disk) + PART
        self._remove(part)
        return part


def _name(disk: DiskRecord) -> str:
    return disk.place.rpartition("/")[2]
