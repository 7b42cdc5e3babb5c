"""The part of ``ConductorRPC`` that only EC2's API asks for."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.image.images import Image, NewImage
from nova.rpc.interface import call


class Ec2Calls:
    """Ids, and images as EC2 makes and changes them."""

    @call(since="1.8")
    def assign_ec2_numbers(self, kind: str, ids: tuple[str, ...]) -> Mapping[str, int]:
        """The numbers in EC2's ids of things of a kind (``nova.model.ec2``): the same for ever, made where there is
        none."""

    @call(reads=True, since="1.8")
    def get_ec2_ids(self, kind: str, wanted: tuple[int, ...]) -> Mapping[int, str]:
        """The reverse; what was never given is left out."""

    @call(since="1.8")
    def register_image(self, new: NewImage) -> Image:
        """An image without data, whose block device mapping says what a server of it boots from. Forbidden,
        OverQuota; Invalid: what the image service takes for none."""

    @call(since="1.8")
    def update_image(self, image_id: str, fields: Mapping[str, str]) -> Image:
        """Write members of an image (``name``, ``visibility``) or its properties. NotFound; Forbidden."""
