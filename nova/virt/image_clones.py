"""Root disks that are clones of images in the image service's storage: no image data passes through the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from nova.model.image.images import Image
from nova.model.image.rbd_locations import RbdLocation


class CloneParent(NamedTuple):
    """The parent of a cloned disk, and its size."""

    location: RbdLocation
    size_bytes: int


class ImageClones(Protocol):
    """Image clones of a driver whose disks can be in the same storage as the image service's images."""

    def parent(self, image: Image, locations: Sequence[RbdLocation]) -> CloneParent:
        """Return the first location that a root disk can be cloned from. Raises image.NotCloneable if there is none."""
