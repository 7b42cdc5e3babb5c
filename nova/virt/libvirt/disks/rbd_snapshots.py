"""Snapshots of guests' disks made within Ceph: an image that shows nothing else, in a pool that Glance reads, too.

The image has the id of Glance's, and the snapshot that Glance makes clones of. It is whole once that snapshot is
protected. What is half made is known by the disk's snapshot, which has the same id for its name; it goes with the disk,
or with the next try. Whether Glance has taken an image that is whole, only the conductor knows.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from nova import errors
from nova.model.image.rbd_locations import SNAPSHOT, RbdLocation
from nova.privileged.rbd import Rbd


@dataclass(frozen=True)
class RbdSnapshots:
    """``disks``: the pool of the guests' disks; ``kept``: where snapshots go. Each call may be repeated."""

    disks: Rbd
    kept: Rbd

    def find(self, image_id: str) -> RbdLocation | None:
        """Of one that is whole."""
        found = self.kept.snapshot(self.kept.pool.name, image_id, SNAPSHOT)
        if found is None or not found.protected:
            return None
        return RbdLocation(fsid=self.kept.fsid(), pool=self.kept.pool.name, image=image_id, snapshot=SNAPSHOT)

    def make(self, disk: str, image_id: str, quiet: contextlib.AbstractContextManager[object]) -> None:
        """Of the disk as it is within ``quiet``. Nothing of it stays when it fails. HostRefused."""
        self.drop(disk, image_id)
        try:
            with quiet:
                self.disks.keep(disk, image_id)
            self.disks.freeze(disk, image_id)
            self.kept.clone_of(self.disks.pool.name, disk, image_id, image_id)
            self.kept.flatten(image_id)
            self.disks.thaw(disk, image_id)
            self.kept.freeze(image_id, SNAPSHOT)
        except BaseException:
            with contextlib.suppress(errors.NovaError):  # the first error is the one to tell
                self.drop(disk, image_id)
            raise

    def drop(self, disk: str, image_id: str) -> None:
        """Whole or not. Not for what Glance has taken."""
        if self.kept.size(image_id) is not None:
            self.kept.thaw(image_id, SNAPSHOT)
            self.kept.remove(image_id)
        self.disks.thaw(disk, image_id)

    def abandon(self, disk: str) -> None:
        """What is half made of a disk that goes."""
        for name in self.disks.frozen(disk):
            if self.kept.parent(name) == (self.disks.pool.name, disk, name):
                self.kept.remove(name)
            self.disks.thaw(disk, name)
