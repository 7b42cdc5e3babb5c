"""Check which images in Ceph a disk may be a clone of (``nova.virt.image_clones.ImageClones``).

The image service's locations are checked, because its users may be able to set them: a disk is cloned only from an
image that is named by its own id, and never from another guest's disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nova import errors
from nova.model.image.images import Image
from nova.model.image.rbd_locations import RbdLocation
from nova.privileged.rbd import Rbd
from nova.virt.image_clones import CloneParent


@dataclass(frozen=True)
class RbdImageClones:
    """Image clones. ``rbd``: the pool of the guests' disks."""

    rbd: Rbd

    def parent(self, image: Image, locations: Sequence[RbdLocation]) -> CloneParent:
        """Return the parent. Queries Ceph only about an image whose record and locations are valid."""
        if image.disk_format != "raw":
            raise _refused(image, f"its disk format is {image.disk_format}, not raw")
        if not locations:
            raise _refused(image, "the image service has no location of it in Ceph")
        reasons = []
        for location in locations:
            reason = self._unfit(image, location)
            if not reason:
                found = self.rbd.snapshot(location.pool, location.image, location.snapshot)
                if found is not None and found.protected:
                    return CloneParent(location, found.size_bytes)
                reason = f"{location.url} does not exist" if found is None else f"{location.url} is not protected"
            reasons.append(reason)
        raise _refused(image, "; ".join(reasons))

    def _unfit(self, image: Image, location: RbdLocation) -> str:
        """Return why the location cannot be used; empty if it can."""
        if location.image != image.id:
            return f"{location.url} does not have the image's id as its name"
        if location.pool == self.rbd.pool.name:
            return f"{location.url} is in the pool of the guests' disks"
        if location.fsid != self.rbd.fsid():
            return f"{location.url} is not in the Ceph cluster of the guests' disks"
        return ""


def _refused(image: Image, reason: str) -> errors.NovaError:
    return errors.image.NotCloneable(image_id=image.id, reason=reason)
