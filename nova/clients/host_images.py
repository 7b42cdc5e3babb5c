"""The image service for a compute host with credentials of its own, in upstream mode."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from nova import errors
from nova.clients import glance, image_data, session
from nova.clients.image_data import ImageData, Retries, SeekableFile, Upload
from nova.clients.image_locations import take
from nova.conf._options import Options
from nova.model.image.image_tickets import ImageTicket
from nova.model.image.images import Image
from nova.model.image.rbd_locations import RbdLocation, rbd_location


class HostImages:
    """Client with the interface of :class:`nova.clients.image_proxy.ImageProxy`, without tickets."""

    def __init__(self, images: glance.Glance, retries: Retries = image_data.USUAL) -> None:
        self._images, self._retries = images, retries

    def hold(self, tickets: Iterable[ImageTicket]) -> None:
        """Do nothing: this host needs no tickets."""

    def show(self, image_id: str) -> Image:
        """Return the image service's current record. Raises image.NotFound, Unavailable."""
        return self._images.show(image_id)

    def locations(self, image_id: str) -> tuple[RbdLocation, ...]:
        """Return where the image's data are in Ceph. Raises image.NotFound, Unavailable."""
        found = map(rbd_location, self._images.locations(image_id))
        return tuple(one for one in found if one is not None)

    def open(self, image_id: str, wanted: str = "") -> ImageData:
        """Open the data of an image (see ``nova.clients.image_data.ImageDataSource``)."""
        return self._images.open(image_id, wanted)

    def download(self, image: Image, path: str, limit_bytes: int | None = None) -> int:
        """Download an image (see ``nova.clients.image_data.download``)."""
        return image_data.download(self, image, path, limit_bytes, self._retries)

    def upload(self, image_id: str, source: SeekableFile | str) -> int:
        """Upload all data (a path, or a seekable file) of an image without data; return their length in bytes.

        An image that already has this much data counts as the result of the same upload. Raises image.NotFound if it
        was deleted meanwhile; Conflict if it has other data; Forbidden for the image service's quota; Unavailable; the
        original OSError from the disk.
        """
        with contextlib.ExitStack() as stack:
            data = Upload(stack.enter_context(open(source, "rb")) if isinstance(source, str) else source)
            try:
                self._images.send(image_id, data)
            except errors.Conflict:
                there = self._images.show(image_id)
                if there.status != "active" or there.size_bytes != len(data):
                    raise
            return len(data)

    def offer(self, image_id: str, location: RbdLocation) -> None:
        """Register a Ceph location as the image's data; return when the image service has accepted it. After
        Unavailable, it may or may not have accepted it; after any other error, it has not."""
        take(self._images, image_id, location.url)


def of_host(options: Options) -> HostImages | None:
    """Return a client for the host's ``[glance]``; None if the host has neither credentials nor an address for it."""
    credentials = session.load(options, "glance")
    group = options.glance
    if credentials.auth is None and not (group.endpoint_override or group.api_servers):
        return None
    return HostImages(glance.of_groups(group, credentials), Retries(group.num_retries))
