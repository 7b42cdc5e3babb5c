"""Calls to nova-objectstore, which stores the bundles that images are made from."""

from __future__ import annotations

from nova.model.image.bundles import BundleFacts, RegisterBundle, RegisteredImage
from nova.rpc.interface import Contract, Timeout, call


class ObjectStoreRPC(Contract):
    """Registration of images from bundles in clients' buckets."""

    topic, version = "objectstore", "1.0"

    @call(reads=True, timeout=Timeout.SHORT)  # called first: a failure reaches clients within their timeout
    def read_manifest(self, location: str, project_id: str) -> BundleFacts:
        """Return the contents of the manifest at ``bucket/path``. Raises NotFound if it does not exist, or the bucket
        belongs to another project. Raises Invalid if the location or the manifest is malformed."""

    @call()
    def register_image(self, order: RegisterBundle) -> RegisteredImage:
        """Create an image's record and return it; its data follow. Its property ``image_state`` shows the progress.
        Raises NotFound and Invalid as above; OverQuota if too many of the project's images wait; Forbidden, Conflict
        and Unavailable from the image service."""
