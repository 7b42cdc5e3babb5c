"""Disks in a pool that all hosts see, while their guest moves: nothing is copied, and all that changes is whose they
are (``nova.virt.libvirt.disks.backends.rbd`` tells how that is noted)."""

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

    # --- at the source

    def keep(self, folder: Folder) -> None:
        """As they are now, until the move is confirmed or reverted. Before the folder is the source copy."""
        for backend, disk in self._of(folder):
            backend.keep(folder, disk)

    def take_back(self, source_copy: Folder, made: Folder) -> None:
        """As they were. ``made``: the folder that the move made beside the source copy, on this same host."""
        places = {disk.place for disk in source_copy.disks()}
        for backend, disk in self._of(made):
            if disk.place not in places:
                backend.remove(made, disk)
        for backend, disk in self._of(source_copy):
            backend.take_back(source_copy, disk)

    def forget(self, source_copy: Folder, folder: Folder) -> None:
        """They are the destination's; what it does not use goes. ``folder``: the guest's, should it be here again."""
        used = {disk.place for disk in folder.disks()} if folder.owned else set()
        for backend, disk in self._of(source_copy):
            backend.let_go(source_copy, disk, disk.place in used)

    def hand_over(self, folder: Folder) -> None:
        """The guest runs elsewhere: this host has no record of them any more, and removes none."""
        gone = tuple(self._of(folder))
        folder.keep_disks(tuple(disk for disk in folder.disks() if not disk.pooled))
        for backend, disk in gone:
            backend.disown(folder, disk)

    # --- at the destination

    def check(self, server_uuid: str, disks: Sequence[DiskRecord]) -> None:
        """A source may name this guest's disks alone, in the pool that this host has. move.OtherPool."""
        has_pool = self.settings.store == "rbd"
        for disk in disks:
            if disk.pooled and not (has_pool and disk.place == kept(disk, server_uuid, self.settings).place):
                raise errors.move.OtherPool(name=disk.name, there=disk.place, here=self.settings.place or "none")

    def take(self, folder: Folder, wanted: WantedFile) -> DiskRecord:
        """A disk that the guest had, grown; its record here."""
        disk = msgspec.structs.replace(wanted.disk, size_bytes=max(wanted.disk.size_bytes, wanted.size_bytes))
        self.backends.pooled(disk).grow(folder, disk)
        return disk

    def make_way(self, folder: Folder, fresh: Sequence[DiskRecord]) -> None:
        """For disks that begin anew by the names of others."""
        for disk in fresh:
            if disk.pooled:
                self.backends.pooled(disk).renew(folder, disk)

    def own(self, folder: Folder) -> None:
        """They are this host's: the guest is here."""
        for backend, disk in self._of(folder):
            backend.own(folder, disk)

    def _of(self, folder: Folder) -> Iterator[tuple[PooledBackend, DiskRecord]]:
        return ((self.backends.pooled(disk), disk) for disk in folder.disks() if disk.pooled)
