"""Snapshots of guests' disks, created within Ceph: an image without a parent, in a pool that Glance also reads.

The image is named by Glance's image id, with the snapshot from which Glance makes clones. It is complete once that
snapshot is protected. An incomplete one is found by the disk's snapshot, which is named by the same id, and removed
with the disk or by the next attempt. Only the conductor knows whether Glance has registered a complete image.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from nova import errors, failures
from nova.model.image.rbd_locations import SNAPSHOT, RbdLocation
from nova.privileged.rbd import Rbd


@dataclass(frozen=True)
class RbdSnapshots:
    """Snapshots in Ceph. ``disks``: the pool of the guests' disks; ``kept``: of snapshots. Calls are safe to repeat."""

    disks: Rbd
    kept: Rbd

    def find(self, image_id: str) -> RbdLocation | None:
        """Return the location of a complete snapshot; None if there is none."""
        found = self.kept.snapshot(self.kept.pool.name, image_id, SNAPSHOT)
        if found is None or not found.protected:
            return None
        return RbdLocation(fsid=self.kept.fsid(), pool=self.kept.pool.name, image=image_id, snapshot=SNAPSHOT)

    def make(self, disk: str, image_id: str, quiet: contextlib.AbstractContextManager[object]) -> None:
        """Snapshot the disk in its state within ``quiet``. A failed snapshot is removed. Raises HostRefused."""
        self.drop(disk, image_id)

        def undo() -> None:
            with contextlib.suppress(errors.NovaError):  # the first error is the one to report
                self.drop(disk, image_id)
        with failures.on_failure(undo, on=BaseException):
            with quiet:
                self.disks.keep(disk, image_id)
            self.disks.freeze(disk, image_id)
            self.kept.clone_of(self.disks.pool.name, disk, image_id, image_id)
            self.kept.flatten(image_id)
            self.disks.thaw(disk, image_id)
            self.kept.freeze(image_id, SNAPSHOT)

    def drop(self, disk: str, image_id: str) -> None:
        """Remove a snapshot, complete or not. Must not be called after Glance has registered the image."""
        if self.kept.size(image_id) is not None:
            self.kept.thaw(image_id, SNAPSHOT)
            self.kept.remove(image_id)
        self.disks.thaw(disk, image_id)

    def abandon(self, disk: str) -> None:
        """Remove the incomplete snapshots of a disk that will be removed."""
        for name in self.disks.frozen(disk):
            if self.kept.parent(name) == (self.disks.pool.name, disk, name):
                self.kept.remove(name)
            self.disks.thaw(disk, name)
