"""Root disks that begin as clones of the image service's own images: no byte of such an image passes the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from nova.model.image.images import Image
from nova.model.image.rbd_locations import RbdLocation


class CloneParent(NamedTuple):
    """What a disk is made a clone of, and how large that is."""

    location: RbdLocation
    size_bytes: int


class ImageClones(Protocol):
    """Of a driver whose disks lie where the image service's images may lie, too."""

    def parent(self, image: Image, locations: Sequence[RbdLocation]) -> CloneParent:
        """The first of these that a root disk can be a clone of. image.NotCloneable says why none is."""
