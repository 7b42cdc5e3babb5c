"""Which of the image service's images in Ceph a disk may be a clone of (``nova.virt.image_clones.ImageClones``).

The image service's word is checked, because its users may have a say in where an image lies: a clone is made only of an
image that is named by its own id, and of no other guest's disk.
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
    """``rbd``: the pool of the guests' disks."""

    rbd: Rbd

    def parent(self, image: Image, locations: Sequence[RbdLocation]) -> CloneParent:
        """Asks Ceph only of an image whose record and locations are good."""
        if image.disk_format != "raw":
            raise _refused(image, f"its disk format is {image.disk_format}, not raw")
        if not locations:
            raise _refused(image, "the image service names no place of it in Ceph")
        reasons = []
        for location in locations:
            reason = self._unfit(image, location)
            if not reason:
                found = self.rbd.snapshot(location.pool, location.image, location.snapshot)
                if found is not None and found.protected:
                    return CloneParent(location, found.size_bytes)
                reason = f"{location.url} is not there" if found is None else f"{location.url} is not protected"
            reasons.append(reason)
        raise _refused(image, "; ".join(reasons))

    def _unfit(self, image: Image, location: RbdLocation) -> str:
        """Empty: it fits."""
        if location.image != image.id:
            return f"{location.url} has the name of something else"
        if location.pool == self.rbd.pool.name:
            return f"{location.url} is in the pool of the guests' disks"
        if location.fsid != self.rbd.fsid():
            return f"{location.url} is in another cluster than the guests' disks"
        return ""


def _refused(image: Image, reason: str) -> errors.NovaError:
    return errors.image.NotCloneable(image_id=image.id, reason=reason)
