"""The part of ``ConductorRPC`` for the EC2 API only."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.image.images import Image, NewImage
from nova.rpc.interface import call


class Ec2Calls:
    """Ids in EC2's form, and images as EC2 creates and changes them."""

    @call(since="1.8")
    def assign_ec2_numbers(self, kind: str, ids: tuple[str, ...]) -> Mapping[str, int]:
        """Return the numbers in EC2's ids for objects of a kind (``nova.model.ec2``). They never change; missing ones
        are assigned."""

    @call(reads=True, since="1.8")
    def get_ec2_ids(self, kind: str, wanted: tuple[int, ...]) -> Mapping[int, str]:
        """Return the ids for such numbers; numbers that were never assigned are left out."""

    @call(since="1.8")
    def register_image(self, new: NewImage) -> Image:
        """Register an image without data, whose block device mapping defines the boot device of its servers. Raises
        Forbidden and OverQuota; Invalid if the image service rejects it."""

    @call(since="1.8")
    def update_image(self, image_id: str, fields: Mapping[str, str]) -> Image:
        """Write fields of an image (``name``, ``visibility``) or its properties. Raises NotFound and Forbidden."""
