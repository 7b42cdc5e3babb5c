"""Disks of fake guests, which are only records, and their snapshots, which are small real files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from nova import errors
from nova.devel.fake.hypervisor import Part, disk_name, file_name, knobbed
from nova.model.guest.orders import BuildOrder, DiskSnapshot, SnapshotOrder, boots_from_volume
from nova.virt.image_clones import CloneParent
from nova.virt.interface import LocalImages
from nova.virt.listings import files_of

BLOCK = 4096
GIB = 1 << 30


class FakeDisks(Part):
    in_pool = False  # guests' disks are in storage that all hosts see, whether this host has the guest or not

    @knobbed
    def create_disks(self, order: BuildOrder, images: LocalImages | None, parent: CloneParent | None = None) -> None:
        with self._hypervisor.changed(order) as guest:
            sizes = {disk_name(disk): disk.size_gb for disk in order.disks} or (
                {} if boots_from_volume(order) else {"root": 0})
            guest.disks = [*sizes, *(["config"] if "config" in guest.disks else [])]
            guest.sizes, guest.disk_gb, guest.packing = sizes, sum(sizes.values()), order.packing

    @knobbed
    def remove_disks(self, server_uuid: str, keep: frozenset[str] = frozenset(), spare_pooled: bool = False) -> None:
        room = self._hypervisor.room
        if room is not None and not keep:
            for kept in files_of(room / "snapshots", f"{file_name(server_uuid)}."):
                kept.unlink(missing_ok=True)
        if not (spare_pooled and self.in_pool):
            with self._hypervisor.changed(server_uuid) as guest:
                guest.drop_disks(keep)

    def pooled(self, order: BuildOrder) -> bool:
        return self.in_pool

    def leave_disks(self, server_uuid: str) -> None:
        """Do nothing: the disks may be shared."""

    def drop_images(self, names: Sequence[str]) -> None:
        """Do nothing: fake disks do not use images."""

    @knobbed
    def write_config_drive(self, order: BuildOrder, files: Mapping[str, bytes]) -> None:
        with self._hypervisor.changed(order) as guest:
            guest.config_drive = dict(files)
            guest.disks = [*(disk for disk in guest.disks if disk != "config"), "config"]


class FakeSnapshots(Part):
    @knobbed
    def take_snapshot(self, order: SnapshotOrder) -> DiskSnapshot:
        path, guest = self._snapshot(order.server_uuid, order.image_id), self._hypervisor.store.find(order.server_uuid)
        if guest is None or "root" not in guest.disks:
            raise errors.guest.NoDisks(uuid=order.server_uuid, names="all")
        if not path.exists():
            text = f"fake root disk of {guest.uuid}\n{guest.marks.get('root', '')}\n".encode()
            fresh = path.with_suffix(".new")
            fresh.write_bytes(text + bytes(-len(text) % BLOCK))
            os.replace(fresh, path)
        size = path.stat().st_size
        return DiskSnapshot(format="raw", size_bytes=size, virtual_size_bytes=guest.sizes.get("root", 0) * GIB or size)

    def snapshot_path(self, server_uuid: str, image_id: str) -> str | None:
        path = self._snapshot(server_uuid, image_id)
        return str(path) if path.exists() else None

    @knobbed
    def drop_snapshot(self, server_uuid: str, image_id: str, given: bool = False) -> None:
        self._snapshot(server_uuid, image_id).unlink(missing_ok=True)

    def _snapshot(self, server_uuid: str, image_id: str) -> Path:
        return self._hypervisor.folder("snapshots") / f"{file_name(server_uuid)}.{file_name(image_id)}"
