"""What may be asked of nova-objectstore, which has the bundles that images are made of."""

from __future__ import annotations

from nova.model.image.bundles import BundleFacts, RegisterBundle, RegisteredImage
from nova.rpc.interface import Contract, Timeout, call


class ObjectStoreRPC(Contract):
    """Images of bundles that clients put into their buckets."""

    topic, version = "objectstore", "1.0"

    @call(reads=True, timeout=Timeout.SHORT)  # asked first: clients wait for a minute, so that they hear of its absence
    def read_manifest(self, location: str, project_id: str) -> BundleFacts:
        """What the manifest at ``bucket/path`` says. NotFound: there is none, or the bucket is another project's.
        Invalid: it is no location, or no manifest that could be used."""

    @call()
    def register_image(self, order: RegisterBundle) -> RegisteredImage:
        """An image's record is made at once, and its data follow; its property ``image_state`` says how far they are.
        NotFound and Invalid as above; OverQuota: too many of the project's wait; Forbidden, Conflict, Unavailable: the
        image service's."""
