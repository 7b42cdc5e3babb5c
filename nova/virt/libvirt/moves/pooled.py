"""Moves of disks in a pool that all hosts share: nothing is copied, only the owner changes
(``nova.virt.libvirt.disks.backends.rbd`` describes the ownership metadata)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from nova import errors
from nova.virt.libvirt.disks.backends import Backends, PooledBackend
from nova.virt.libvirt.disks.folders import Folder
from nova.virt.libvirt.disks.plan import kept
from nova.virt.libvirt.disks.records import DiskRecord
from nova.virt.libvirt.moves.file_transfer import WantedFile
from nova.virt.libvirt.settings import LibvirtSettings


@dataclass(frozen=True)
class PooledDisks:
    backends: Backends
    settings: LibvirtSettings

    # --- source

    def keep(self, folder: Folder) -> None:
        """Keep the disks' current state until the move is confirmed or reverted. Call before the source copy is
        made."""
        for backend, disk in self._of(folder):
            backend.keep(folder, disk)

    def take_back(self, source_copy: Folder, made: Folder) -> None:
        """Restore the kept state. ``made``: the folder that the move created on this same host, next to the source
        copy."""
        places = {disk.place for disk in source_copy.disks()}
        for backend, disk in self._of(made):
            if disk.place not in places:
                backend.remove(made, disk)
        for backend, disk in self._of(source_copy):
            backend.take_back(source_copy, disk)

    def forget(self, source_copy: Folder, folder: Folder) -> None:
        """Leave the disks to the destination, and remove unused ones. ``folder``: the guest's, if it is here again."""
        used = {disk.place for disk in folder.disks()} if folder.owned else set()
        for backend, disk in self._of(source_copy):
            backend.release(source_copy, disk, disk.place in used)

    def hand_over(self, folder: Folder) -> None:
        """Drop this host's records of the disks, because the guest runs on another host; none is removed."""
        gone = tuple(self._of(folder))
        folder.keep_disks(tuple(disk for disk in folder.disks() if not disk.pooled))
        for backend, disk in gone:
            backend.clear_owner(folder, disk)

    # --- destination

    def check(self, server_uuid: str, disks: Sequence[DiskRecord]) -> None:
        """Check that a source names only this guest's disks, in the pool of this host. Raises move.OtherPool."""
        has_pool = self.settings.store == "rbd"
        for disk in disks:
            if disk.pooled and not (has_pool and disk.place == kept(disk, server_uuid, self.settings).place):
                raise errors.move.OtherPool(name=disk.name, there=disk.place, here=self.settings.place or "none")

    def take(self, folder: Folder, wanted: WantedFile) -> DiskRecord:
        """Take over a disk of the guest, and grow it; return its record."""
        disk = msgspec.structs.replace(wanted.disk, size_bytes=max(wanted.disk.size_bytes, wanted.size_bytes))
        self.backends.pooled(disk).grow(folder, disk)
        return disk

    def make_way(self, folder: Folder, fresh: Sequence[DiskRecord]) -> None:
        """Remove disks of another size, whose names new disks need."""
        for disk in fresh:
            if disk.pooled:
                self.backends.pooled(disk).renew(folder, disk)

    def own(self, folder: Folder) -> None:
        """Make this host the owner of the disks: the guest has arrived."""
        for backend, disk in self._of(folder):
            backend.own(folder, disk)

    def _of(self, folder: Folder) -> Iterator[tuple[PooledBackend, DiskRecord]]:
        return ((self.backends.pooled(disk), disk) for disk in folder.disks() if disk.pooled)
